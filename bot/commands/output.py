"""What commands print: aligned lines for people, JSON with --json; and the one way to run a coroutine."""

import asyncio
import dataclasses
import json
import os
import signal
from collections.abc import Coroutine, Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer

from agent.legible import visible
from bot.logs import configure
from bot.settings import Settings

T = TypeVar("T")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines for people.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]


class CommandFailed(Exception):
    """The command could not do it; the text is one sentence that says what to do."""


def read_settings(*, quiet: bool = False) -> Settings:
    """The settings of this process's environment; log lines follow LOG_LEVEL from here on.

    `quiet`: without LOG_LEVEL only errors, for commands whose own lines are what is read.
    """
    settings = Settings.read(os.environ)
    configure("ERROR" if quiet and "LOG_LEVEL" not in os.environ else settings.log_level)
    return settings


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end.

    Ctrl-C and SIGTERM cancel it, so that it puts down what it holds; then the exit code is 130 or 143.
    """
    return asyncio.run(_until_terminated(work))


async def _until_terminated(work: Coroutine[Any, Any, T]) -> T:
    """Like Ctrl-C, which asyncio.run turns into a cancellation, but for SIGTERM."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asked = asyncio.Event()

    def cancel() -> None:
        asked.set()
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if asked.is_set():
            raise typer.Exit(128 + signal.SIGTERM) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def plain(value: Any) -> Any:
    """Records as JSON values: dataclasses as objects, times in ISO 8601, statuses as their names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def print_json(value: Any) -> None:
    """Print one value as JSON, for programs."""
    typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Print rows under their columns, or the sentence `empty` when there are none."""
    if not rows:
        typer.echo(empty)
        return
    heads = [_cell(column).upper() for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(columns))]
    for line in [heads, *cells]:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one a line; values that are None or empty are left out."""
    shown = [(name, _cell(value)) for name, value in fields if value not in (None, "", (), [])]
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        typer.echo(f"{name.ljust(width)}  {text}")


def print_line(text: str) -> None:
    """Print one line for people."""
    typer.echo(_cell(text))


def moment(value: datetime | None) -> str:
    """A time for people, in the zone of this machine."""
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def shorten(text: str, length: int = 60) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _cell(value: object) -> str:
    # people and tools wrote some of it, and a terminal would obey what is hidden in it
    return visible(_text(value))


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Enum):
        return str(value.value)
    return "" if value is None else str(value)
