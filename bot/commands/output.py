"""What commands print: aligned lines for people, JSON with --json; and the one way to run a coroutine."""

import asyncio
import dataclasses
import json
import os
import shutil
import signal
import sys
from collections.abc import Collection, Coroutine, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer

from agent.legible import visible
from bot.aligned import aligned, broken, columns, joined
from bot.blocks.characters import cut
from bot.logs import configure
from bot.settings import Settings

T = TypeVar("T")

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs instead of lines for people.")
]
LimitOption = Annotated[
    int, typer.Option("--limit", min=1, max=1000, help="How many rows at most, the newest of them.")
]
# The parts of `vistobueno --help`, in the order in which somebody new comes by them.
TRYING, RUNNING, LOOKING = "Try it", "Run it", "Look, stop, try again"
TERMINAL = 80  # columns
NARROWEST = 30  # that a sentence is broken to
COLOURS = {
    "awaiting_approval": typer.colors.YELLOW,
    "pending": typer.colors.YELLOW,
    "completed": typer.colors.GREEN,
    "executed": typer.colors.GREEN,
    "done": typer.colors.GREEN,
    "exhausted": typer.colors.RED,
    "failed": typer.colors.RED,
    "ok": typer.colors.GREEN,
    "warning": typer.colors.YELLOW,
    "unknown": typer.colors.RED,
}
"""Of statuses, on a terminal; their words say the same."""


class CommandFailed(Exception):
    """The command could not do it: one sentence that says what to do, and `details`, lines below it."""

    def __init__(self, sentence: str, details: Sequence[str] = ()) -> None:
        self.details = tuple(details)
        super().__init__(sentence)


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


def json_line(value: Any) -> str:
    """A value as JSON on one line, for people to look at."""
    return json.dumps(plain(value), ensure_ascii=False)


def print_table(names: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> None:
    """Print rows under their columns, numbers to the right; without rows, the sentence `empty`."""
    if not rows:
        typer.echo(empty)
        return
    right = {at for at, cells in enumerate(zip(*rows, strict=True)) if _are_numbers(cells)}
    texts = [[_cell(value) for value in row] for row in rows]
    head, *body = aligned([[name.upper() for name in names], *texts], right=right)
    paints = _has_colours()
    typer.echo(joined([typer.style(name, bold=True) for name in head] if paints else head), color=paints)
    for row, cells in zip(rows, body, strict=True):
        typer.echo(joined(list(map(_painted, row, cells)) if paints else cells), color=paints)


def print_findings(findings: Sequence[tuple[Sequence[str], str]]) -> None:
    """Print lines of short words and a sentence; on a terminal it is broken to its width, below itself.

    The first of the words is a status and gets its colour.
    """
    heads = aligned([[_cell(word) for word in words] for words, _ in findings])
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    paints = _has_colours()
    for head, (words, sentence) in zip(heads, findings, strict=True):
        indent = columns(joined([*head, "|"])) - 1
        room = None if width is None else max(width - indent, NARROWEST)
        lines = [_cell(sentence)] if room is None else list(broken(_cell(sentence), room))
        colour = COLOURS.get(words[0]) if paints else None
        first = [typer.style(head[0], fg=colour) if colour else head[0], *head[1:], lines[0]]
        typer.echo(joined(first), color=paints)
        for line in lines[1:]:
            typer.echo(" " * indent + line)


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one a line; values that are None or empty are left out."""
    shown = [(name, _cell(value)) for name, value in fields if value not in (None, "", (), [])]
    names = aligned([[name] for name, _ in shown]) if shown else []
    for (name,), (_, text) in zip(names, shown, strict=True):
        typer.echo(joined([name, text]))


def print_line(text: str) -> None:
    """Print one line for people."""
    typer.echo(_cell(text))


def moment(value: datetime | None) -> str:
    """A time for people, in UTC like those of a card in a terminal and of the log."""
    return "" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """A time that passes, in the largest unit that says it whole: "2 h", "90 min", "7 d"."""
    for unit, length, least in (("d", 86400, 2), ("h", 3600, 1), ("min", 60, 1)):
        if seconds >= least * length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def shorten(text: str, length: int = 60) -> str:
    """One line of at most so many columns of a terminal."""
    return cut(" ".join(text.split()), length, columns)


def in_part(text: str, length: int) -> str:
    """One line of a text; of one that is longer, the beginning, and how to have all of it."""
    whole = " ".join(text.split())
    short = shorten(text, length)
    return short if short == whole else f"{short} (--json prints all of it)"


def _has_colours() -> bool:
    # https://no-color.org
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _painted(value: object, cell: str) -> str:
    colour = COLOURS.get(str(value.value)) if isinstance(value, Enum) else None
    return typer.style(cell, fg=colour) if colour else cell


def _are_numbers(values: Collection[object]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _cell(value: object) -> str:
    # people and tools wrote some of it, and a terminal would obey what is hidden in it
    return visible(_text(value))


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Enum):
        return str(value.value)
    return "" if value is None else str(value)
