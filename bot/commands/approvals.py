"""`vistobueno approvals`: what waits for people, and one approval with all that became of it."""

from typing import Annotated

import typer

from bot.commands.output import (
    CommandFailed,
    JsonOption,
    LimitOption,
    complete,
    print_fields,
    print_json,
    print_line,
    print_table,
    read_settings,
    shorten,
)
from bot.databases import existing
from store import approvals
from store.records import Approval


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    group = typer.Typer(no_args_is_help=True, help="What waited, or waits, for people's say.")
    group.command("list")(list_approvals)
    group.command("show")(show_approval)
    cli.add_typer(group, name="approvals")


def list_approvals(
    everything: Annotated[bool, typer.Option("--all", help="Those that have ended too.")] = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List approvals, the newest first."""
    found = complete(_listed(everything, limit))
    if as_json:
        return print_json(found)
    rows = [
        (a.id, a.status, a.shown.preview["title"], ", ".join(a.rule.approvers), a.expires_at) for a in found
    ]
    return print_table(
        ("id", "status", "title", "approvers", "expires"),
        rows,
        "No approvals." if everything else "Nothing waits.",
    )


def show_approval(
    approval_id: Annotated[str, typer.Argument(metavar="ID", help="The approval's id.")],
    as_json: JsonOption = False,
) -> None:
    """Show one approval: what its current revision shows, who decided, what became of it."""
    approval = complete(_shown(approval_id))
    if as_json:
        return print_json(approval)
    print_fields(_fields(approval))
    for line in approval.shown.preview["impact"]:
        print_line(f"  {line}")
    sample = approval.shown.preview["sample"]
    return print_table(approval.shown.preview["columns"], sample, "") if sample else None


async def _listed(everything: bool, limit: int) -> list[Approval]:
    async with existing(read_settings()) as db:
        return await approvals.listed(db, open_only=not everything, limit=limit)


async def _shown(approval_id: str) -> Approval:
    async with existing(read_settings()) as db:
        approval = await approvals.read(db, approval_id)
    if approval is None:
        raise CommandFailed(
            f"There is no approval {approval_id}: `vistobueno approvals list --all` shows them."
        )
    return approval


def _fields(approval: Approval) -> list[tuple[str, object]]:
    decided_by = approval.decided_by
    return [
        ("approval", approval.id),
        ("status", approval.status),
        ("title", approval.shown.preview["title"]),
        ("tool", approval.tool),
        ("input", shorten(str(approval.shown.input), 300)),
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
        ("outcome", (approval.outcome or {}).get("text")),
    ]
