"""What one approval costs through the product, against the floor: alternating blocks, median ratio."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter, process_time

import psycopg

from store.embedded import Embedded, admin_url
from tests.bench.counters import Connection, Counts, count
from tests.bench.floor import Floor
from tests.bench.product import Parts, Product, product
from tests.bench.steps import Spent, Steps

LIMIT = 4.0
LATER = 2.6
WARM_UP = 30
COUNTED = 20


@dataclass(frozen=True)
class Ratio:
    """The median over the rounds of the product's median to the floor's, and its range."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Cost:
    """One approval; times are medians in ms."""

    floor_ms: float
    floor_range_ms: tuple[float, float]
    """The least and the most of its rounds: far apart, they say that the machine was busy."""
    steps_ms: float
    read_ms: float
    """The approval, before it is decided."""
    approval_ms: float
    run_ms: float
    parts_ms: dict[str, float]
    steps: Ratio
    """The steps of an approval that are committed, through the store: what has a limit."""
    steps_and_reads: Ratio
    approval: Ratio
    """The whole way from the model's answer to the last words."""
    run: Ratio
    client_cpu_ms: float
    floor_counts: Counts
    steps_counts: Counts
    run_counts: Counts
    approvals: int


@dataclass(frozen=True)
class Round:
    """One block of each side, in seconds."""

    floor: list[float]
    steps: list[Spent]
    product: list[Parts]
    cpu: float


async def measure_cost(server: Embedded, *, rounds: int, n: int, progress: Callable[[str], None]) -> Cost:
    """Measure `rounds` blocks of `n` approvals for each side."""
    with (
        closing(Floor(server.owner_url)) as floor,
        psycopg.connect(admin_url(server), autocommit=True) as admin,
    ):
        async with product(server.url, server.owner_url) as house:
            steps = Steps(house.house.db, house.shop, house.house.tools["refund"])
            progress("warming up")
            for _ in range(WARM_UP):
                floor.one()
                await steps.one()
                await house.one()
            progress("counting statements, commits and WAL")
            floor_counts = await count(
                admin, partial(asyncio.to_thread, floor.one), floor.connections(), COUNTED
            )
            ours: list[Connection] = [*house.house.db.pool.idle, house.shop.connection]
            steps_counts = await count(admin, steps.one, ours, COUNTED)
            run_counts = await count(admin, house.one, ours, COUNTED)
            measured = []
            for number in range(1, rounds + 1):
                measured.append(await _round(floor, steps, house, n))
                ratio = _ratio_of(measured[-1], "written")
                progress(f"round {number} of {rounds}: {ratio:.2f} times the floor")
    return _cost(measured, floor_counts, steps_counts, run_counts)


async def _round(floor: Floor, steps: Steps, house: Product, n: int) -> Round:
    base = []
    for _ in range(n):
        begun = perf_counter()
        floor.one()
        base.append(perf_counter() - begun)
    written = [await steps.one() for _ in range(n)]
    cpu = process_time()
    parts = [await house.one() for _ in range(n)]
    return Round(base, written, parts, (process_time() - cpu) / n)


def _ratio_of(measured: Round, what: str) -> float:
    return float(median(_times(measured, what)) / median(measured.floor))


def _times(measured: Round, what: str) -> list[float]:
    """Seconds of each approval: of its steps, or of a part of the whole run."""
    of = measured.steps if what in ("written", "read", "both") else measured.product
    return [getattr(each, what) for each in of]


def _ratio(measured: list[Round], what: str) -> Ratio:
    ratios = [_ratio_of(each, what) for each in measured]
    return Ratio(*(round(value, 2) for value in (median(ratios), min(ratios), max(ratios))))


def _cost(measured: list[Round], floor_counts: Counts, steps_counts: Counts, run_counts: Counts) -> Cost:
    def ms(what: str) -> float:
        return float(round(median(value for block in measured for value in _times(block, what)) * 1000, 2))

    floors = [round(median(block.floor) * 1000, 2) for block in measured]

    return Cost(
        floor_ms=round(median(value for block in measured for value in block.floor) * 1000, 2),
        floor_range_ms=(min(floors), max(floors)),
        steps_ms=ms("written"),
        read_ms=ms("read"),
        approval_ms=ms("approval"),
        run_ms=ms("run"),
        parts_ms={what: ms(what) for what in ("start", "ask", "decide", "act")},
        steps=_ratio(measured, "written"),
        steps_and_reads=_ratio(measured, "both"),
        approval=_ratio(measured, "approval"),
        run=_ratio(measured, "run"),
        client_cpu_ms=round(median(block.cpu for block in measured) * 1000, 2),
        floor_counts=floor_counts,
        steps_counts=steps_counts,
        run_counts=run_counts,
        approvals=sum(len(block.product) for block in measured),
    )
