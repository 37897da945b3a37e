"""`vistobueno approvals`: what waits for people, and one approval with all that became of it."""

from collections.abc import Mapping
from typing import Annotated

import typer

from agent.gaps import lack
from agent.policy import Policy, PolicyError, load_policy
from agent.tool import Risk, Tool
from agent.toolbox import ToolsError, load_tools
from bot.blocks import details
from bot.blocks.as_text import as_text
from bot.blocks.card import CardContext, rationale, what_happened, what_is_asked, who_decides
from bot.blocks.people import deciding_roles
from bot.commands.output import (
    LOOKING,
    TERMINAL,
    CommandFailed,
    JsonOption,
    LimitOption,
    complete,
    in_part,
    json_line,
    moment,
    print_fields,
    print_json,
    print_line,
    print_table,
    read_settings,
    shorten,
)
from bot.databases import existing
from bot.fields import field_titles
from bot.settings import Settings
from bot.texts import texts
from store import approvals
from store.engine import Database
from store.records import Approval, NobodyKnows


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    group = typer.Typer(no_args_is_help=True, help="What waits for people to decide, and what became of it.")
    group.command("list")(list_approvals)
    group.command("show")(show_approval)
    cli.add_typer(group, name="approvals", rich_help_panel=LOOKING)


def list_approvals(
    everything: Annotated[
        bool,
        typer.Option("--all", help="Those that have ended too; without it, only those still open."),
    ] = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List approvals, the newest first."""
    found = complete(_listed(everything, limit))
    if as_json:
        return print_json(found)
    rows = [
        (
            a.id,
            a.status,
            shorten(a.shown.preview["title"]),
            ", ".join(a.rule.approvers),
            None if NobodyKnows.of(a) else a.expires_at,  # nobody has to decide it any more
        )
        for a in found
    ]
    print_table(
        ("id", "status", "title", "approvers", "expires"),
        rows,
        "There are no approvals yet." if everything else "Nothing waits; --all shows what has ended.",
    )
    return print_unknown(found)


def print_unknown(found: list[Approval]) -> None:
    """Print a line for each approval of which nobody knows whether its call ran."""
    for approval in found:
        if NobodyKnows.of(approval) is not None:
            show = f"`vistobueno approvals show {approval.id}`"
            print_line(f"Nobody knows whether {approval.id} ran: {show} says what to do.")


def show_approval(
    approval_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The approval's id, as `approvals list --all` shows it, like apr_3f9c…"
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show one approval: what its current revision shows and why, who decided, what became of it."""
    settings = read_settings()
    if as_json:
        return print_json(complete(_read(settings, approval_id)))
    approval, context, is_here = complete(_shown(settings, approval_id))
    print_fields(_fields(approval))
    for line in what_to_do(approval):
        print_line(line)
    _print_card(approval, context)
    if not is_here:
        print_line(
            f"{approval.tool} is none of the tools here (VISTOBUENO_TOOLS): whether it can be undone is not "
            "known."
        )
    return None


def what_to_do(approval: Approval) -> list[str]:
    """Of a call whose outcome nobody knows: what is known, and what a person can do; else nothing."""
    known = NobodyKnows.of(approval)
    if known is None:
        return []
    times = "once" if known.attempts == 1 else f"{known.attempts} times"
    again = ""
    if known.retry_until > approval.now:
        again = f", and until {moment(known.retry_until)} Try again where it is offered"
    return [
        f"Nobody knows whether it ran: {known.why}",
        f"Tried {times}, first at {moment(known.first_attempt_at)}, under the key {known.key}.",
        f"Look at what really happened, then say it on its card in Slack: It ran, It did not run{again}.",
        f"Roles that may say it: {', '.join(deciding_roles(approval))}.",
    ]


def _print_card(approval: Approval, context: CardContext) -> None:
    """Print in the card's words what became of the call, what it is, and why."""
    blocks = what_is_asked(approval, context)
    if NobodyKnows.of(approval) is None:  # or it was said above, with what to do
        blocks = [*what_happened(approval, context), *blocks, *who_decides(approval, context)]
    blocks += details.sample(approval.shown, context.texts, as_table=True)
    typer.echo()
    typer.echo(as_text([*blocks, *rationale(approval, context.texts)], TERMINAL))


async def _listed(everything: bool, limit: int) -> list[Approval]:
    async with existing(read_settings()) as db:
        return await approvals.listed(db, open_only=not everything, limit=limit)


async def _read(settings: Settings, approval_id: str) -> Approval:
    async with existing(settings) as db:
        return await _there(db, approval_id)


async def _shown(settings: Settings, approval_id: str) -> tuple[Approval, CardContext, bool]:
    """The approval, what its card needs beside it, and whether its tool is known here."""
    async with existing(settings) as db:
        approval = await _there(db, approval_id)
        tools, policy = _house(settings)
        tool = tools.get(approval.tool)
        return approval, await _context(settings, db, approval, tool, policy), tool is not None


async def _there(db: Database, approval_id: str) -> Approval:
    approval = await approvals.read(db, approval_id)
    if approval is None:
        raise CommandFailed(
            f"There is no approval {approval_id}: `vistobueno approvals list --all` shows them."
        )
    return approval


async def _context(
    settings: Settings, db: Database, approval: Approval, tool: Tool | None, policy: Policy | None
) -> CardContext:
    """What its card needs beside the row, without Slack's links."""
    return CardContext(
        texts=texts(settings.locale),
        irreversible=tool is not None and tool.risk is Risk.IRREVERSIBLE,
        lack=lack(policy.at_home(approval.conversation.team_id), approval) if policy is not None else None,
        overlaps=tuple(await approvals.overlaps(db, approval)),
        earlier_refusal=await approvals.earlier_refusal(db, approval),
        replaced=await approvals.read(db, approval.replaces) if approval.replaces else None,
        field_titles=field_titles(tool.input) if tool is not None else {},
    )


def _house(settings: Settings) -> tuple[Mapping[str, Tool], Policy | None]:
    """The tools and the policy, as far as they can be loaded here: what is recorded can be read without."""
    tools: Mapping[str, Tool] = {}
    try:
        tools = load_tools(settings.tools)
        return tools, load_policy(settings.policy, tools)
    except (ToolsError, PolicyError):
        return tools, None


def _fields(approval: Approval) -> list[tuple[str, object]]:
    decided_by = approval.decided_by
    return [
        ("approval", approval.id),
        ("status", approval.status),
        ("title", approval.shown.preview["title"]),
        ("tool", approval.tool),
        ("input", in_part(json_line(approval.shown.input), 300)),
        ("revision", approval.revision),
        ("requester", approval.requester.name),
        ("run", approval.run_id),
        ("asked", approval.created_at),
        ("expires", approval.expires_at),
        ("approvers", ", ".join(approval.rule.approvers)),
        ("votes", ", ".join(vote.person.name for vote in approval.votes)),
        ("decided", approval.decided_at),
        ("by", decided_by and (decided_by.name or decided_by.user_id)),
        ("reason", approval.reason),
        ("replaces", approval.replaces),
        ("replaced by", approval.replaced_by),
        ("ended", approval.ended_at),
        ("went through", _went_through(approval)),
    ]


def _went_through(approval: Approval) -> str | None:
    """Which of its items, where the tool itself said so."""
    done = (approval.outcome or {}).get("done")
    if done is None:
        return None
    count = f"{len(done)} of {len(approval.shown.items)}"
    return f"{count}: {in_part(', '.join(done), 300)}" if done else count
