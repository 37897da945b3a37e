"""`vistobueno runs`: what the agent works on, what it waits for, stop it, try it again."""

from datetime import datetime
from typing import Annotated, Any

import typer

from agent.gaps import waited_for
from agent.start import WrongStatus, cancel_run, retry_run
from bot.blocks.card import title
from bot.commands.approvals import print_unknown, what_to_do
from bot.commands.output import (
    LOOKING,
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
from bot.house import build_house
from store import approvals, calls, runs
from store.engine import Database
from store.records import Actor, Approval, Call, NobodyKnows, Run
from store.transitions import OPEN_APPROVALS, ApprovalStatus

_FOR_PEOPLE = {ApprovalStatus.PENDING, ApprovalStatus.UNKNOWN}
"""What somebody has to say something about; all else that is open is the worker's."""

RunIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The run's id, as `runs list --all` shows it, like run_3f9c…")
]
OPERATOR = Actor("operator", name="operator")


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    group = typer.Typer(no_args_is_help=True, help="What the agent works on: list, show, stop, try again.")
    group.command("list")(list_runs)
    group.command("show")(show_run)
    group.command("cancel")(cancel)
    group.command("retry")(retry)
    cli.add_typer(group, name="runs", rich_help_panel=LOOKING)


def list_runs(
    everything: Annotated[
        bool, typer.Option("--all", help="Finished runs too; without it, only unfinished ones.")
    ] = False,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List runs, the newest first."""
    found = complete(_listed(everything, limit))
    if as_json:
        return print_json(found)
    rows = [(run.id, run.status, run.created_at, run.requester.name, shorten(run.task)) for run in found]
    return print_table(
        ("id", "status", "begun", "requester", "task"),
        rows,
        "There are no runs yet."
        if everything
        else "No run is unfinished; --all shows those that have ended.",
    )


def show_run(run_id: RunIdArgument, as_json: JsonOption = False) -> None:
    """Show one run: its task, its calls, and what it waits for, on whom, since when."""
    run, made, asked, waits = complete(_shown(run_id))
    if as_json:
        return print_json({"run": run, "waits_for": waits, "calls": made, "approvals": asked})
    print_fields(_fields(run))
    for line in waits:
        print_line(f"waits for: {line['what']}, on {line['on']}, since {moment(line['since'])}")
    for approval in asked:
        if NobodyKnows.of(approval) is not None:
            print_line(f"{approval.id}: {title(approval)}")
            for known in what_to_do(approval):
                print_line(f"  {known}")
    rows = [
        (
            call.turn,
            call.tool,
            call.status,
            call.attempts,
            _went_through(call, asked),
            shorten(json_line(call.input), 50),
        )
        for call in made
    ]
    return print_table(
        ("turn", "tool", "status", "attempts", "went through", "input"),
        rows,
        "The agent has asked for nothing yet.",
    )


def _went_through(call: Call, asked: list[Approval]) -> str:
    """How many of its items, where the tool itself said so: "20 of 38"."""
    if call.done_items is None:
        return ""
    shown = next((len(approval.shown.items) for approval in asked if approval.call_id == call.id), 0)
    return f"{len(call.done_items)} of {shown or len(call.items)}"


def cancel(run_id: RunIdArgument) -> None:
    """Stop a run: what waits is cancelled; what is being executed is let finish."""
    run, asked = complete(_stop(run_id))
    typer.echo(f"{run.id} is {run.status.value}")
    for approval in asked:
        if approval.status is ApprovalStatus.EXECUTING:
            print_line(f"{approval.id} is running: it is let finish, and its card says how it ended.")
    print_unknown(asked)


def retry(run_id: RunIdArgument) -> None:
    """Let a failed run go on from its last turn; only while its conversation has no other."""
    run = complete(_again(run_id))
    typer.echo(f"{run.id} is {run.status.value}")


async def _listed(everything: bool, limit: int) -> list[Run]:
    async with existing(read_settings()) as db:
        return await runs.listed(db, unfinished_only=not everything, limit=limit)


async def _shown(run_id: str) -> tuple[Run, list[Call], list[Approval], list[dict[str, Any]]]:
    async with existing(read_settings()) as db:
        run = _there(await runs.read(db, run_id), run_id)
        asked = await approvals.of_run(db, run_id)
        return run, await calls.of_run(db, run_id), asked, await _waits(db, run, asked)


async def _stop(run_id: str) -> tuple[Run, list[Approval]]:
    settings = read_settings(quiet=True)
    async with existing(settings) as db, build_house(settings, db.url) as house:
        try:
            run = _there(await cancel_run(house, run_id, OPERATOR), run_id)
            return run, await approvals.of_run(db, run_id)
        except WrongStatus as error:
            by = f" by {_named(error.stopped_by)}" if error.stopped_by else ""
            raise CommandFailed(
                f"{run_id} has ended already ({error.run.status.value}{by}): "
                f"`vistobueno runs show {run_id}` says how."
            ) from error


def _named(actor: Actor) -> str:
    return "the operator" if actor.kind == "operator" else actor.name or actor.user_id or actor.kind


async def _again(run_id: str) -> Run:
    settings = read_settings(quiet=True)
    async with existing(settings) as db, build_house(settings, db.url) as house:
        try:
            return _there(await retry_run(house, run_id, OPERATOR), run_id)
        except WrongStatus as error:
            raise CommandFailed(
                f"{run_id} is {error.run.status.value} and cannot be tried again: "
                "only a failed run can, while its conversation has no other."
            ) from error


def _there(run: Run | None, run_id: str) -> Run:
    if run is None:
        raise CommandFailed(f"There is no run {run_id}: `vistobueno runs list --all` shows them.")
    return run


async def _waits(db: Database, run: Run, asked: list[Approval]) -> list[dict[str, Any]]:
    """What the run waits for, on whom, since when: people, or an earlier run of its conversation."""
    waits: list[dict[str, Any]] = [
        _wait(f"approval {a.id} ({a.status.value})", _asked_of(a), a.created_at)
        for a in asked
        if a.status in OPEN_APPROVALS
    ]
    found = await runs.in_the_way(db, run.id)
    if found is not None:
        earlier, its_approvals = found
        roles = sorted({role for one in waited_for(earlier, its_approvals) for role in _asked_of(one)})
        waits.append(_wait(f"run {earlier.id} ({earlier.status.value})", roles, run.created_at))
    return waits


def _asked_of(approval: Approval) -> tuple[str, ...]:
    return approval.rule.approvers if approval.status in _FOR_PEOPLE else ()


def _wait(what: str, roles: tuple[str, ...] | list[str], since: datetime) -> dict[str, Any]:
    return {"what": what, "on": ", ".join(roles) or "the worker", "since": since}


def _fields(run: Run) -> list[tuple[str, object]]:
    return [
        ("run", run.id),
        ("status", run.status),
        ("agent", run.agent),
        ("requester", run.requester.name),
        ("task", in_part(run.task, 500)),
        ("begun", run.created_at),
        ("ended", run.ended_at),
        ("steps", run.steps),
        ("tokens", run.input_tokens + run.output_tokens),
        ("error", run.error),
        ("answer", None if run.answer is None else in_part(run.answer, 500)),
    ]
