"""Whoever shows progress hears of every step, in time, and is asked for nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent.progress import Count
from agent.scripted import call, say, script, step
from agent.tool import Context, ToolError
from agent.worker import Worker
from store.records import RunId
from tests.databases import Database
from tests.integration.agent.office import NoPublisher, Office, office
from tests.integration.agent.till import World

PAY = script(step(call("pay", {"bills": ["b1", "b2"]})), step(say("Paid.")))
TRY = script(step(call("pay", {"bills": ["b1"]})), step(say("It failed."), optional=True))


@dataclass
class Heard:
    """What was told, in order: a step of a run, or that a call is inside its tool and no longer."""

    told: list[str] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)

    def moved(self, run_id: RunId) -> None:
        self.told.append("moved")

    @contextmanager
    def counting(self, run_id: RunId, count: Count) -> Iterator[None]:
        self.told.append("inside")
        self.counts.append(count)
        try:
            yield
        finally:
            self.told.append("outside")


def listening(o: Office) -> Heard:
    """Let the office's worker tell."""
    heard = Heard()
    o.worker = Worker(replace(o.house, progress=heard), NoPublisher(), name="w1")
    return heard


async def test_every_step_of_a_run_is_told_and_what_is_told_last_is_told_after_the_end(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, PAY) as o:
        heard = listening(o)
        asked = await o.propose()
        assert heard.told == ["moved"] * 3  # it thinks, looks at its call, waits
        heard.told.clear()
        await o.approve(asked)
        await o.work()
        assert heard.told[:2] == ["inside", "outside"]
        assert heard.told[2:] == ["moved"] * 3  # it thinks, has ended, the call's worker is free


@pytest.mark.parametrize("error", [ToolError("No."), ValueError("nobody knows")])
async def test_what_fails_is_told_to_be_over(database: Database, tmp_path: Path, error: Exception) -> None:
    world = World(refuse=[error])
    async with office(database, tmp_path, TRY, world=world, repeatable=False) as o:
        heard = listening(o)
        await o.approve(await o.propose())
        await o.work()
        assert heard.told.count("inside") == heard.told.count("outside") == 1
        assert heard.told[-1] == "moved"


async def test_a_tools_count_is_read_while_it_is_still_inside(database: Database, tmp_path: Path) -> None:
    inside, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(ctx: Context) -> None:
        ctx.progress(12, 41)
        loop.call_soon_threadsafe(inside.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(20)

    async with office(database, tmp_path, PAY, world=World(watch=watch)) as o:
        heard = listening(o)
        await o.approve(await o.propose())
        working = asyncio.create_task(o.work())
        await asyncio.wait_for(inside.wait(), 20)
        assert [count.said for count in heard.counts] == [(12, 41)]
        go_on.set()
        await working
