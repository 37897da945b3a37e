"""The cells: which there are, several played at a time, and what became of each."""

import asyncio
import random
import tempfile
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tests import databases
from tests.crash import moments
from tests.crash.cell import expected, play, truth_of
from tests.crash.kinds import AT_STRIPE, KINDS, WITHOUT_KEYS, Kind
from tests.crash.points import Decision, Phase, Point
from tests.crash.scene import scene

CELL_SECONDS = 400.0
QUICK_AT_STRIPE = "halfway"
"""The point that the quick matrix has at Stripe, too: it has one refund that the shop has not heard of."""


@dataclass(frozen=True)
class Cell:
    """A point, a decision, a kind of tool."""

    point: Point
    decision: Decision
    kind: Kind

    @property
    def name(self) -> str:
        return f"{self.point.name} / {self.decision} / {self.kind.name}"


@dataclass(frozen=True)
class Played:
    """What became of a cell; `problem` is None if all that must hold did."""

    name: str
    problem: str | None
    details: str
    seconds: float
    hit: tuple[str, ...] = ()
    """Where the run was at each random kill."""


def every_cell(points: Sequence[Point]) -> list[Cell]:
    """All that can occur with the shop's own provider."""
    return [
        Cell(point, decision, kind)
        for point in points
        for decision in Decision
        for kind in KINDS
        if decision not in point.impossible
    ]


def cells_at_stripe(points: Sequence[Point], kinds: Sequence[Kind] = AT_STRIPE) -> list[Cell]:
    """Each point at each stand-in for Stripe, approved if that can be, else with its telling decision."""
    return [Cell(point, refunding(point), kind) for point in points for kind in kinds]


def refunding(point: Point) -> Decision:
    """What is decided at a stand-in for Stripe."""
    return point.quick if Decision.APPROVE in point.impossible else Decision.APPROVE


def quick_cells(points: Sequence[Point]) -> list[Cell]:
    """Each point once, with its telling decision and kind of tool; and one at a Stripe that forgets keys."""
    repeatable, once = KINDS
    cells = [Cell(point, point.quick, once if point.once else repeatable) for point in points]
    half = [point for point in points if point.name == QUICK_AT_STRIPE]
    return [*cells, *cells_at_stripe(half, [WITHOUT_KEYS])]


@dataclass(frozen=True)
class Place:
    """The server, the migrated template, and the process that the others are forked from."""

    server: databases.Server
    template: databases.Database
    forks: ForkServerContext

    @asynccontextmanager
    async def database(self) -> AsyncIterator[databases.Database]:
        """A database of a cell's own."""
        making = self.server.database(self.template)
        made = await asyncio.to_thread(making.__enter__)
        try:
            yield made
        finally:
            await asyncio.to_thread(making.__exit__, None, None, None)


async def _play_cell(place: Place, cell: Cell) -> Sequence[str]:
    """Play it on a stage of its own; raises what is wrong."""
    wanted = expected(cell.point, cell.decision, cell.kind)
    with tempfile.TemporaryDirectory(prefix="vistobueno-crash-") as folder:
        async with (
            asyncio.timeout(CELL_SECONDS),
            place.database() as database,
            scene(
                database,
                place.forks,
                Path(folder),
                cell.decision,
                cell.kind,
                truth_of(wanted),
                escalates=cell.point.phase is Phase.ESCALATING,
            ) as made,
        ):
            await play(made, cell.point, wanted)
            return ()


async def _judged(name: str, playing: Awaitable[Sequence[str]]) -> Played:
    """What became of it."""
    began = time.monotonic()
    try:
        hit = await playing
    except Exception as error:
        # whatever went wrong, the cell is red and the others are played
        details = "".join(traceback.format_exception(error))
        return Played(name, str(error) or type(error).__name__, details, time.monotonic() - began)
    return Played(name, None, "", time.monotonic() - began, tuple(hit))


async def play_cells(
    place: Place, cells: Sequence[Cell], jobs: int, ended: Callable[[Played], None], stop: asyncio.Event
) -> list[Played]:
    """Play cells, so many at a time; once `stop` is set, no more are begun. Gives them as they ended."""
    waiting, played = deque(cells), list[Played]()

    async def play_some() -> None:
        while waiting and not stop.is_set():
            cell = waiting.popleft()
            one = await _judged(cell.name, _play_cell(place, cell))
            played.append(one)
            ended(one)

    await asyncio.gather(*(play_some() for _ in range(jobs)))
    return played


async def play_moments(
    place: Place, kills: int, seed: int, jobs: int, say: Callable[[str], None]
) -> list[Played]:
    """Play runs until so many kills hit one that was not over; each run has its own chance from the seed."""
    played = list[Played]()
    numbers = iter(range(2 * kills))

    async def play_some() -> None:
        for number in numbers:
            if sum(len(one.hit) for one in played) >= kills:
                return
            decision, kind = list(Decision)[number % len(Decision)], KINDS[number // len(Decision) % 2]
            name = f"run {number} / {decision} / {kind.name}"
            one = await _judged(name, _play_moments(place, decision, kind, random.Random(f"{seed} {number}")))
            played.append(one)
            outcome = "ok" if one.problem is None else f"RED: {one.problem}"
            say(f"{sum(len(each.hit) for each in played):4}/{kills} {one.seconds:6.1f} s  {name}  {outcome}")

    await asyncio.gather(*(play_some() for _ in range(jobs)))
    return played


async def _play_moments(place: Place, decision: Decision, kind: Kind, chance: random.Random) -> Sequence[str]:
    truth = moments.truth_of(decision, kind)
    with tempfile.TemporaryDirectory(prefix="vistobueno-crash-") as folder:
        async with (
            asyncio.timeout(CELL_SECONDS),
            place.database() as database,
            scene(database, place.forks, Path(folder), decision, kind, truth) as made,
        ):
            return await moments.play(made, chance)
