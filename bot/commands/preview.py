"""`vistobueno preview`: what the approvers would see if the agent called a tool with this input now."""

from datetime import datetime
from typing import Annotated, Any

import typer

from agent.tool import Risk
from agent.toolbox import load_tools
from agent.verdict import Verdict
from bot.aligned import broken
from bot.blocks.as_text import as_text
from bot.blocks.phrases import When
from bot.commands.call_input import InputOption, read_input
from bot.commands.foreseen import Foreseen, foresee
from bot.commands.output import (
    TERMINAL,
    TRYING,
    CommandFailed,
    JsonOption,
    complete,
    duration,
    print_fields,
    print_json,
    print_line,
    read_settings,
)
from bot.commands.slack_ids import expect_user
from store.records import Actor, Approval, Rule

UNDO = {
    Risk.IRREVERSIBLE: "no, this cannot be undone",
    Risk.REVERSIBLE: "yes, this can be undone",
    Risk.READ_ONLY: "nothing to undo, this only reads",
}


def register(cli: typer.Typer) -> None:
    """Add the command to `vistobueno`."""
    cli.command(rich_help_panel=TRYING)(preview)


def preview(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name, like refund_payments.")],
    given: InputOption,
    user: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="USER_ID",
            help="Slack id of the person who asks the agent, like U0LEO; default: the operator.",
        ),
    ] = None,
    as_json: JsonOption = False,
    on_page: Annotated[
        bool,
        typer.Option("--open", help="Show the card on the page of a local Slack too, until Ctrl-C."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --open: port of that page; 0: any free one.")
    ] = 0,
) -> None:
    """Show what the approvers would see if the agent called TOOL with this input now.

    The tool's own facts, preview and precondition are made, within its time limit, and the policy says what
    would happen: run, ask or refuse. Nothing is executed, recorded or posted. It uses the database that
    DATABASE_URL names, like that of a running `vistobueno demo`, else the one that `vistobueno dev` made.

    With --open the card is also shown where people would see it, on the page of a local Slack: its buttons
    answer that nothing was decided.

    Example: `vistobueno preview send_email --input @mail.json --as U0LEO`
    """
    if as_json and on_page:
        raise typer.BadParameter("--json is for programs and --open for people: give one of them")
    expect_user("--as", user)
    settings = read_settings(quiet=True)
    tools = load_tools(settings.tools)
    if tool not in tools:
        known = ", ".join(sorted(tools)) or "none yet"
        raise CommandFailed(f"There is no tool {tool!r}: the tools are {known}.")
    raw = read_input(given)
    requester = Actor("operator", name="the operator")
    if user is not None:
        requester = Actor("person", None, user, user)
    found = complete(foresee(settings, tools[tool], raw, requester))
    if as_json:
        return print_json(_as_json(found))
    _print(found)
    return _open(found, port) if on_page else None


# ---- for people


def _print(found: Foreseen) -> None:
    _say(_sentence(found))
    if found.shown is not None:
        typer.echo()
        typer.echo(as_text(found.shown.blocks, TERMINAL))
    typer.echo()
    print_fields(_fields(found))
    asked = found.asked
    if asked is not None and len(found.deciders(asked.rule.approvers)) < asked.rule.quorum:
        _say(
            f"warning: {asked.rule.quorum} must approve, and too few may decide what "
            f"{found.requester.name} asks for: name more approvers in {found.policy.file}"
        )
    if asked is not None and not found.requester_is_named:
        _say(f"note: {found.requester.user_id} is not known here yet: the real card has the name from Slack")


def _open(found: Foreseen, port: int) -> None:
    from bot.demo.showing import open_browser, show  # the local Slack, which only this needs

    asked, shown = found.asked, found.shown
    if asked is None or shown is None:
        raise CommandFailed("There is no card to open: nobody would be asked.")

    def opened(url: str) -> None:
        typer.echo(f"\nOpen {url}")
        typer.echo("to see the card in a local Slack; its buttons decide nothing. Ctrl-C ends it.")
        open_browser(url)

    complete(show(shown, found.deciders(asked.rule.approvers), port=port, opened=opened))


def _say(text: str) -> None:
    for line in broken(text, TERMINAL):
        print_line(line)


def _sentence(found: Foreseen) -> str:
    because = f": {found.why}" if found.why else ""
    match found.verdict:
        case Verdict.ASK:
            return f"{found.tool.name} would ask first{because}. This is the card:"
        case Verdict.ALLOW:
            return f"{found.tool.name} would run at once, and nobody is asked{because}."
        case Verdict.FORBID:
            return f"{found.tool.name} would be refused, and nobody is asked{because}."


def _fields(found: Foreseen) -> list[tuple[str, object]]:
    undo = ("undo", UNDO[found.tool.risk])
    asked = found.asked
    if asked is None:
        return [("verdict", found.verdict), undo]
    rule = asked.rule
    return [
        ("verdict", found.verdict),
        ("who decides", _people(found, rule.approvers)),
        ("not", _kept_out(found, rule)),
        ("deadline", f"{_utc(asked.expires_at)}, in {duration(rule.expires_after)}; then it is not done"),
        ("asked too", _further(found, asked)),
        ("card goes to", rule.channel),
        undo,
    ]


def _people(found: Foreseen, roles: tuple[str, ...]) -> str:
    return f"{', '.join(roles)}: {', '.join(found.deciders(roles)) or 'nobody'}"


def _kept_out(found: Foreseen, rule: Rule) -> str:
    user = found.requester.user_id
    if not rule.four_eyes or user not in found.policy.users_of((*rule.approvers, *rule.escalate_to)):
        return ""
    return f"{user}, who asks for it (four_eyes)"


def _further(found: Foreseen, asked: Approval) -> str:
    at = found.escalates_at
    return "" if at is None else f"{_people(found, asked.rule.escalate_to)}, from {_utc(at)}"


def _utc(at: datetime) -> str:
    return When(at, "").plain()


# ---- for programs


def _as_json(found: Foreseen) -> dict[str, Any]:
    shown, approval, asked = found.shown, found.approval, found.asked
    measured = None if approval is None else approval.shown
    return {
        "tool": found.tool.name,
        "risk": found.tool.risk,
        "reversible": found.tool.risk is not Risk.IRREVERSIBLE,
        "verdict": found.verdict,
        "why": found.why,
        "input": measured and measured.input,
        "rationale": approval and approval.rationale,
        "facts": measured and measured.facts,
        "precondition": measured and measured.precondition,
        "preview": measured and measured.preview,
        "decides": asked and _group(found, asked.rule.approvers),
        "quorum": asked and asked.rule.quorum,
        "four_eyes": asked and asked.rule.four_eyes,
        "expires_at": asked and asked.expires_at,
        "escalates_at": asked and found.escalates_at,
        "escalates_to": asked and _group(found, asked.rule.escalate_to),
        "channel": asked and asked.rule.channel,
        "card": shown.arguments() if shown is not None and asked is not None else None,
        "told": found.told,
    }


def _group(found: Foreseen, roles: tuple[str, ...]) -> dict[str, Any]:
    return {"roles": roles, "people": found.deciders(roles)}
