"""How a stretch of the loop ended."""

from dataclasses import dataclass
from typing import TypeAlias

from agent.why import Why


@dataclass(frozen=True)
class Finished:
    """The agent said its last words, `text`, and the run is completed."""

    text: str


@dataclass(frozen=True)
class Paused:
    """Calls of the turn are still open: everything is in the database and nothing waits in memory."""


@dataclass(frozen=True)
class Exhausted:
    """The budget of steps or tokens is used up; `text` are the closing words."""

    text: str


@dataclass(frozen=True)
class Failed:
    """The run cannot go on; people are told why."""

    why: Why


@dataclass(frozen=True)
class Retry:
    """A transient fault: the run goes back to the queue for `after_seconds`."""

    after_seconds: float
    error: str


Outcome: TypeAlias = Finished | Paused | Exhausted | Failed | Retry
