"""What is told of the work while it goes on: kept in memory only, and whoever is told may lose it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from store.records import RunId


class Count:
    """How far a tool says that it is: (done, total or None), or None before it says anything.

    Written by the tool's thread and read by the house's; one assignment, so neither waits for the other.
    """

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said: tuple[int, int | None] | None = None


class Progress(Protocol):
    """Whoever shows people how far a run is; must return at once and never raise."""

    def moved(self, run_id: RunId) -> None:
        """The run's rows are no longer what they were."""

    def counting(self, run_id: RunId, count: Count) -> AbstractContextManager[None]:
        """A call of the run is inside its tool, which writes to `count`, as long as the block lasts."""


class Untold:
    """The progress of a house in which nobody looks."""

    def moved(self, run_id: RunId) -> None:
        """See Progress."""

    def counting(self, run_id: RunId, count: Count) -> AbstractContextManager[None]:
        """See Progress."""
        return nullcontext()
