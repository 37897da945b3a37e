"""`vistobueno audit`: the record of a run or an approval, and whether it was tampered with."""

from typing import Annotated

import typer

from bot.commands.output import (
    LOOKING,
    CommandFailed,
    JsonOption,
    complete,
    json_line,
    print_json,
    print_table,
    read_settings,
    shorten,
)
from bot.databases import existing
from store import audit
from store.records import AuditEvent, Verified


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    group = typer.Typer(
        no_args_is_help=True, help="The record: who did what, when, on what, and whether it is whole."
    )
    group.command("show")(show)
    group.command("verify")(verify)
    cli.add_typer(group, name="audit", rich_help_panel=LOOKING)


def show(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A run's id, or an approval's, as `runs list` and `approvals list` show them.",
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show the events of a run or of an approval, in order."""
    events = complete(_events(subject))
    if as_json:
        return print_json(events)
    rows = [(event.seq, event.at, event.kind, _who(event), _data(event)) for event in events]
    return print_table(("seq", "at", "kind", "who", "data"), rows, "Nothing is on record.")


def verify(as_json: JsonOption = False) -> None:
    """Recompute the hash of every event; exit 1 if one was changed or is missing.

    Cut off at its end with its head set back, or gone with the row of its run, by the owner of the tables, a
    chain is not missed: who needs proof against the owner keeps a copy of the table audit_heads elsewhere.
    """
    found = complete(_verified())
    if as_json:
        print_json(found)
    else:
        typer.echo(f"{_counted(found.events, 'event')} in {_counted(found.chains, 'chain')}")
    if found.broken:
        raise CommandFailed(f"the record was tampered with: {'; '.join(found.broken)}")
    if not as_json:
        typer.echo("the record is whole")


async def _events(subject: str) -> list[AuditEvent]:
    async with existing(read_settings()) as db:
        events = await audit.of(db, subject)
    if not events:
        raise CommandFailed(f"Nothing is on record for {subject}: give the id of a run or of an approval.")
    return events


async def _verified() -> Verified:
    async with existing(read_settings()) as db:
        return await audit.verify(db)


def _counted(n: int, name: str) -> str:
    return f"{n} {name}" if n == 1 else f"{n} {name}s"


def _data(event: AuditEvent) -> str:
    return "redacted" if event.data is None else shorten(json_line(event.data), 70)


def _who(event: AuditEvent) -> str:
    if event.actor is None:
        return "redacted"
    return event.actor.name or event.actor.user_id or event.actor.kind
