"""How long after a decision the tool begins, in another process whose worker was idle."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from statistics import median
from typing import TypeVar, cast

from store.embedded import Embedded
from tests.bench.product import Product, product

GOAL_MS = 20.0
DEADLINE_SECONDS = 20.0
IDLE_SECONDS = (0.05, 0.15)
WARM_UP = 5
LOOK_SECONDS = 0.05

Found = TypeVar("Found")


@dataclass(frozen=True)
class Delay:
    """Milliseconds from the time in the decision's row to the moment at which the tool was called."""

    p50_ms: float
    p95_ms: float
    max_ms: float
    decisions: int


async def measure_delay(server: Embedded, *, times: int, progress: Callable[[str], None]) -> Delay:
    """Decide `times` approvals one after the other, each when the other process has nothing to do."""
    chance, found = random.Random(20), []
    async with product(server.url, server.owner_url) as house, _other_process(server):
        for number in range(1, WARM_UP + times + 1):
            found.append(await _one(house, chance.uniform(*IDLE_SECONDS)))
            if number % 10 == 0:
                progress(f"decision {number} of {WARM_UP + times}: {found[-1]:.1f} ms")
    counted = sorted(found[WARM_UP:])
    return Delay(
        p50_ms=round(median(counted), 1),
        p95_ms=round(counted[int(0.95 * (times - 1))], 1),
        max_ms=round(counted[-1], 1),
        decisions=times,
    )


@asynccontextmanager
async def _other_process(server: Embedded) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.idle_worker", server.url, server.owner_url),
        stdin=asyncio.subprocess.PIPE,
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _one(house: Product, idle: float) -> float:
    await house.start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        approval_id = await _look(house.waiting)
        await asyncio.sleep(idle)  # the other worker has come to rest, at any phase of its own clock
        decided = await house.approve(approval_id)
        begun = await _look(partial(_begun, house, approval_id))
    assert decided.decided_at is not None
    return (begun - decided.decided_at).total_seconds() * 1000


async def _look(find: Callable[[], Found | None]) -> Found:
    """Look until it is there, seldom enough not to disturb what is measured."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = find()
        if found is not None:
            return found


def _begun(house: Product, approval_id: str) -> datetime | None:
    """When the tool was called for this approval: its key is the approval's id."""
    row = house.desk.execute("SELECT at FROM bench.begun WHERE key = %s", [approval_id]).fetchone()
    return None if row is None else cast(datetime, row[0])
