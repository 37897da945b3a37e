"""Leases: whoever lost one has no effect and records nothing, and the name of a worker is only a word."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.leases import Leases, clock
from agent.scripted import call, say, script, step
from agent.tool import Context
from store import calls
from store.transitions import ApprovalStatus
from tests.databases import Database
from tests.integration.agent.office import Office, approved, office, until, with_tool
from tests.standins.wire import wire_before

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("That is all.")))
LEASE = 0.4


def occupy(o: Office, monkeypatch: pytest.MonkeyPatch, *, loop: bool) -> threading.Event:
    """Let all of user code's threads, or its loop, be busy from the commit of the next attempt on.

    That is until the event is set: the tool's turn comes then.
    """
    start, go_on = calls.start_attempt, threading.Event()

    async def on_loop() -> None:
        go_on.wait(20)

    async def begun_and_occupied(*args: Any, **values: Any) -> str | None:
        monkeypatch.setattr(calls, "start_attempt", start)
        key = await start(*args, **values)
        blockers = [on_loop] if loop else [go_on.wait] * 2
        for blocker in blockers:
            task = asyncio.create_task(o.house.user_code.run("blocker", blocker, timeout=20))
            keep.append(task)
        await asyncio.sleep(0.1)
        return key

    keep: list[asyncio.Task[Any]] = []
    monkeypatch.setattr(calls, "start_attempt", begun_and_occupied)
    return go_on


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_whose_turn_comes_after_the_lease_is_over_is_not_begun(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    async with office(database, tmp_path, DONE) as o:
        pay = o.house.tools["pay"].execute

        async def slowly(input: Any, ctx: Context) -> Any:
            return pay(input, ctx)

        asked = await approved(o)
        go_on = occupy(o, monkeypatch, loop=is_async)
        house = with_tool(o.house, "pay", execute=slowly) if is_async else o.house
        working = asyncio.create_task(o.another_worker("late", house, lease=LEASE).work_off())
        await asyncio.sleep(2 * LEASE)
        go_on.set()
        await working
        assert o.world.attempts == []
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTING
        assert (await o.events(asked.id))[-1] == "attempt.started"
        await o.sweep()
        assert (o.world.attempts, o.world.keys) == ([2], [asked.id])
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED


async def test_a_tool_whose_turn_comes_late_is_begun_while_the_lease_is_renewed(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        go_on = occupy(o, monkeypatch, loop=False)
        worker = o.another_worker("late", lease=LEASE)
        renewing = asyncio.create_task(worker.leases.keep())
        working = asyncio.create_task(worker.work_off())
        await asyncio.sleep(2 * LEASE)
        go_on.set()
        await working
        renewing.cancel()
        assert (o.world.attempts, (await o.approval(asked.id)).status) == ([1], ApprovalStatus.EXECUTED)


async def test_what_cannot_be_repeated_and_was_not_begun_is_unknown_and_never_runs(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        go_on = occupy(o, monkeypatch, loop=False)
        working = asyncio.create_task(o.another_worker("late", lease=LEASE).work_off())
        await asyncio.sleep(2 * LEASE)
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN
        go_on.set()
        await working
        assert o.world.attempts == []


@pytest.mark.parametrize("name", ["w1", "another"])
async def test_the_work_of_a_dead_worker_is_taken_over_by_one_of_any_name_once_its_lease_is_over(
    database: Database, tmp_path: Path, name: str
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        assert await calls.claim(o.house.db, token="dead", worker="w1", lease=15)
        after = o.another_worker(name)
        await after.work_off()
        assert o.world.attempts == []
        o.shift_clock("16 seconds")
        await o.sweep()
        await after.work_off()
        assert (o.world.attempts, (await o.approval(asked.id)).status) == ([1], ApprovalStatus.EXECUTED)


async def test_a_lease_is_renewed_in_time_though_the_network_swallows_a_renewal(
    database: Database, tmp_path: Path
) -> None:
    async with (
        wire_before(database.url) as (wire, url),
        office(replace(database, url=url), tmp_path, ASKED) as o,
    ):
        asked = await approved(o)
        assert await calls.claim(o.house.db, token="t", worker="w1", lease=9)
        leases = Leases(o.house.db, "w1", 9.0)
        wire.forget()
        with leases.holding("t"):
            keeping = asyncio.create_task(leases.keep())

            async def renewed() -> bool:
                return leases.is_sure("t")

            await until(renewed, "a renewal")
            keeping.cancel()
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTING


async def test_a_lease_is_sure_only_from_when_the_statement_was_sent() -> None:
    leases = Leases(db=None, worker="w", seconds=15.0)  # type: ignore[arg-type]
    with leases.holding("t"):
        assert not leases.is_sure("t")
        leases.extended("t", clock())
        assert leases.is_sure("t")
        leases.extended("t", clock() - 15)
        assert not leases.is_sure("t")
        leases.extended("t", clock())
    assert not leases.is_sure("t")
