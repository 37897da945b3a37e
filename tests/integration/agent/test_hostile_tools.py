"""A tool that blocks, leaks, quits or never ends delays no click, costs nobody a lease, and is named."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.decide import Recorded
from agent.scripted import call, say, script, step
from agent.tool import Context
from agent.usercode import UserCode
from store.records import Approval
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office, until, with_tool
from tests.integration.agent.test_worker import at_work, is_status

LEASE = 1.0
ACK = 3.0  # seconds: Slack waits no longer
DONE = step(say("Done."), optional=True)
SCRIPTS = tuple(
    script(step(call(tool, {"bills": [bill]})), DONE, when=lambda text, name=name: name in text)
    for name, tool, bill in [("well", "pay", "b1"), ("badly", "tip", "b2"), ("later", "pay", "b3")]
)
Hostile = Callable[[threading.Event, threading.Event], Callable[..., Any]]


def blocks(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    def execute(input: Any, ctx: Context) -> None:
        began.set()
        end.wait()

    return execute


def blocks_its_loop(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    async def execute(input: Any, ctx: Context) -> None:
        began.set()
        end.wait()

    return execute


def spins(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    async def execute(input: Any, ctx: Context) -> None:
        began.set()
        while not end.is_set():
            pass  # it never awaits anything

    return execute


def never_ends(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    async def execute(input: Any, ctx: Context) -> None:
        began.set()
        await asyncio.Event().wait()

    return execute


def ignores_its_cancellation(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    async def execute(input: Any, ctx: Context) -> None:
        began.set()
        while not end.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    return execute


def quits(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    async def execute(input: Any, ctx: Context) -> None:
        began.set()
        raise SystemExit("tip has had enough")

    return execute


def leaks(began: threading.Event, end: threading.Event) -> Callable[..., Any]:
    """It answers at once, and leaves a task behind that blocks the loop."""
    left: list[asyncio.Task[None]] = []

    async def block() -> None:
        await asyncio.sleep(0)
        began.set()
        end.wait()

    async def execute(input: Any, ctx: Context) -> str:
        left.append(asyncio.create_task(block()))
        return "all is well"

    return execute


@pytest.mark.parametrize(
    "hostile", [blocks, blocks_its_loop, spins, never_ends, ignores_its_cancellation, quits, leaks]
)
async def test_a_hostile_tool_delays_no_click_costs_nobody_a_lease_and_is_named(
    database: Database, tmp_path: Path, hostile: Hostile
) -> None:
    began, end, paid = threading.Event(), threading.Event(), threading.Event()
    async with (
        office(database, tmp_path, *SCRIPTS) as o,
        UserCode(threads=4, silent_after=0.3, exit_after=3600, heartbeat=0.05) as user_code,
    ):
        o.house = replace(o.house, user_code=user_code)
        well, later = await ask(o, "well"), await ask(o, "later")
        o.world.watch = lambda ctx: paid.wait(60)
        worse = with_tool(o.house, "tip", execute=hostile(began, end), timeout="300ms")
        async with at_work(o.another_worker(house=worse, lease=LEASE, sweep_every=0.2)):
            try:
                await o.approve(well)
                await until(lambda: inside(o), "the well-behaved tool is at work")
                await o.start("badly", key="badly", thread="1.3")
                await asyncio.to_thread(began.wait, 20)
                clicked = time.monotonic()
                assert isinstance(await o.reject(later), Recorded)
                assert time.monotonic() - clicked < ACK
                await until(lambda: named(o, user_code), "the tool is named")
                await renewed(o, well, times=3)
            finally:
                paid.set()
                end.set()
            await until(lambda: is_status(o, well.run_id, RunStatus.COMPLETED), "the other run is done")
        events = await o.events(well.id)
        assert (events.count("call.claimed"), "call.released" in events) == (1, False)
        assert o.world.paid == ["b1"]


async def ask(o: Office, text: str) -> Approval:
    """The approval of a run that waits for people."""
    before = {waiting.id for waiting in await o.all_asked()}
    await o.start(text, key=text, thread=f"1.{text}")
    await o.work()
    [asked] = [waiting for waiting in await o.all_asked() if waiting.id not in before]
    return asked


async def inside(o: Office) -> bool:
    return o.execute("SELECT count(*) FROM calls WHERE tool = 'pay' AND attempts > 0") == [(1,)]


async def renewed(o: Office, approval: Approval, times: int) -> None:
    """Wait until the lease of its call was renewed so often."""
    seen: set[Any] = set()

    async def often() -> bool:
        seen.update(o.execute("SELECT lease_until FROM calls WHERE id = %s", approval.call_id))
        return len(seen) > times

    await until(often, "the lease is renewed")


async def named(o: Office, user_code: UserCode) -> bool:
    """Whether the health of user code, or what became of the call, names the tool."""
    why = o.execute(
        """SELECT e.data->>'why' FROM audit_events e JOIN calls c ON c.id = e.call_id
  WHERE c.tool = 'tip' AND e.data ? 'why'"""
    )
    return any("tip" in said for said in [user_code.health().reason or "", *(row[0] for row in why)])
