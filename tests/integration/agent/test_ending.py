"""A worker that is asked to end begins nothing more, and hands on what it has claimed."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.scripted import call, say, script, step
from agent.tool import Context
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, approved, office, until, with_tool

TIPS = [call("tip", {"bills": ["b1"]}), call("tip", {"bills": ["b2"]})]


class Gate:
    """A tool of the house that is entered, and goes on when it is let."""

    def __init__(self, o: Office, name: str) -> None:
        self.entered, self._go = threading.Event(), threading.Event()
        execute = o.house.tools[name].execute

        def held(input: Any, ctx: Context) -> Any:
            self.entered.set()
            assert self._go.wait(20)
            return execute(input, ctx)

        o.house = with_tool(o.house, name, execute=held)

    async def is_entered(self) -> bool:
        return self.entered.is_set()

    def open(self) -> None:
        self._go.set()


async def asked_to_end_inside(o: Office, gate: Gate) -> None:
    """A worker is asked to end while it is inside the tool, and ends."""
    stop = asyncio.Event()
    leaving = o.another_worker("leaving", o.house)
    worker = asyncio.create_task(leaving.run(stop))
    await until(gate.is_entered, "the tool is entered")
    stop.set()

    async def is_closing() -> bool:
        return leaving.leases.closing

    await until(is_closing, "it begins nothing more")
    gate.open()
    async with asyncio.timeout(20):
        await worker


@pytest.mark.parametrize("at_once", [True, False], ids=["one turn", "two turns"])
async def test_the_call_that_runs_is_finished_and_the_next_one_is_another_worker_s(
    database: Database, tmp_path: Path, at_once: bool
) -> None:
    turns = [step(*TIPS)] if at_once else [step(TIPS[0]), step(TIPS[1])]
    async with office(database, tmp_path, script(*turns, step(say("Done.")))) as o:
        usual = o.house
        run = await o.start()
        await asked_to_end_inside(o, Gate(o, "tip"))
        assert (o.world.paid, len(o.model.requests)) == (["b1"], len(turns))
        assert (await o.run(run.id)).status is RunStatus.QUEUED
        assert (await o.events(run.id)).count("call.claimed") == 1
        assert [one.attempts for one in await o.calls(run.id)] == [1, 0]
        o.house = usual
        await o.work()
        assert o.world.paid == ["b1", "b2"]
        assert await o.statuses(run.id) == ["done", "done"]
        assert (await o.run(run.id)).faults == 0


async def test_an_approved_call_whose_facts_were_just_checked_again_goes_back(
    database: Database, tmp_path: Path
) -> None:
    async with office(
        database, tmp_path, script(step(call("pay", {"bills": ["b1"]})), step(say("Done.")))
    ) as o:
        asked = await approved(o)
        o.worker.leases.closing = True
        assert await o.worker.work_one()
        [waits] = await o.calls(asked.run_id)
        assert (waits.status, waits.attempts, o.world.paid) == (CallStatus.ASKED, 0, [])
        assert (await o.approval(asked.id)).status is ApprovalStatus.APPROVED
        released = [event for event in await o.record(asked.id) if event.kind == "call.released"]
        assert [event.data["why"] for event in released] == ["Its worker was asked to end before it began."]
        o.worker.leases.closing = False
        await o.work()
        assert o.world.paid == ["b1"]


async def test_a_repeat_is_handed_on_with_its_key(database: Database, tmp_path: Path) -> None:
    async with office(
        database, tmp_path, script(step(call("pay", {"bills": ["b1"]})), step(say("Done.")))
    ) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("10 seconds")
        o.worker.leases.closing = True
        assert await o.worker.work_one()
        [waits] = await o.calls(asked.run_id)
        assert (waits.status, waits.attempts) == (CallStatus.ASKED, 1)
        o.worker.leases.closing = False
        await o.work()
        assert await o.statuses(asked.run_id) == ["done"]
