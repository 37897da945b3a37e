"""Two calls, asked or allowed, never act on the same item."""

from pathlib import Path
from typing import Any

import pytest

from agent.scripted import call, expect_results, say, script, step
from store import approvals
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office

Pair = tuple[str, str]


def two(first: Any, second: Any, *, last: bool = True) -> tuple[Any, Any]:
    ends = [step(say("Done."))] if last else []
    return (
        script(step(first), *ends, when=lambda text: "one" in text),
        script(step(second), step(say("Done.")), when=lambda text: "two" in text),
    )


async def hold_b1(o: Office) -> str:
    """Let the first run's call be executing, and its worker be gone."""
    run = await o.start("one", key="one", thread="1.1")
    await o.work()
    await o.approve(await o.asked())
    o.world.fail = [RuntimeError("lost")]
    await o.work()
    return run.id


async def test_an_asked_call_waits_while_another_asked_one_holds_its_item(
    database: Database, tmp_path: Path
) -> None:
    scripts = two(call("pay", {"bills": ["b1", "b2"]}), call("pay", {"bills": ["b2", "b3"]}))
    async with office(database, tmp_path, *scripts) as o:
        await hold_b1(o)
        await o.start("two", key="two", thread="1.2")
        await o.work()
        second = await o.asked()
        (overlap,) = await approvals.overlaps(o.house.db, second)
        assert overlap.items == ("b2",)
        await o.approve(second)
        await o.work()
        waiting = await o.approval(second.id)
        assert (waiting.status, waiting.attempted) == (ApprovalStatus.APPROVED, False)
        o.shift_clock("3 seconds")
        await o.work()
        assert o.world.paid == ["b1", "b2", "b2", "b3"]
        assert o.world.keys[-1] == second.id


async def test_an_asked_call_that_waited_is_checked_against_the_world_afterwards(
    database: Database, tmp_path: Path
) -> None:
    scripts = two(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b1"]}))
    async with office(database, tmp_path, *scripts) as o:
        await hold_b1(o)
        await o.start("two", key="two", thread="1.2")
        await o.work()
        second = await o.asked()
        await o.approve(second)
        o.world.gone = {"b1"}
        o.shift_clock("3 seconds")
        await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.SUPERSEDED
        assert o.world.paid == ["b1"]


async def test_an_allowed_call_waits_with_its_run_back_in_the_queue(
    database: Database, tmp_path: Path
) -> None:
    scripts = two(call("pay", {"bills": ["b1"]}), call("tip", {"bills": ["b1"]}))
    async with office(database, tmp_path, *scripts) as o:
        await hold_b1(o)
        second = await o.start("two", key="two", thread="1.2")
        await o.work()
        waiting = await o.run(second.id)
        assert (waiting.status, waiting.not_before is not None) == (RunStatus.QUEUED, True)
        assert await o.statuses(second.id) == ["allowed"]
        assert o.world.attempts == [1]
        o.shift_clock("3 seconds")
        await o.work()
        o.shift_clock("6 seconds")
        await o.work()
        assert (await o.run(second.id)).status is RunStatus.COMPLETED
        assert o.world.attempts == [1, 2, 1]


async def test_an_allowed_call_waits_more_and_more_rarely_and_not_for_ever(
    database: Database, tmp_path: Path
) -> None:
    one, _ = two(call("pay", {"bills": ["b1"]}), call("tip", {"bills": ["b1"]}), last=False)
    told = expect_results(lambda told: told[0]["waitedInVain"] and not told[0]["executed"])
    other = script(
        step(call("tip", {"bills": ["b1"]})), step(say("Busy."), expect=told), when=lambda text: "two" in text
    )
    async with office(database, tmp_path, one, other, repeatable=False) as o:
        await hold_b1(o)  # nobody knows whether it ran, so its items stay held
        second = await o.start("two", key="two", thread="1.2")
        for seconds in range(0, 3_300, 20):
            o.shift_clock(f"{seconds} seconds")
            await o.work()
        assert (await o.run(second.id)).status is RunStatus.QUEUED
        tries = (await o.events(second.id)).count("run.claimed")
        assert 40 < tries < 100  # not one every two seconds
        o.shift_clock("62 minutes")
        await o.work()
        assert (await o.run(second.id)).status is RunStatus.COMPLETED
        assert await o.statuses(second.id) == ["cancelled"]
        assert "call.gave_up" in await o.events(second.id)
        assert o.world.attempts == [1]


async def test_an_asked_call_waits_for_what_an_allowed_one_holds(database: Database, tmp_path: Path) -> None:
    scripts = two(call("tip", {"bills": ["b1"]}), call("pay", {"bills": ["b1"]}))
    async with office(database, tmp_path, *scripts) as o:
        o.world.fail = [RuntimeError("lost")]
        await o.start("one", key="one", thread="1.1")
        await o.start("two", key="two", thread="1.2")
        await o.work()
        await o.approve(second := await o.asked())
        await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.APPROVED
        o.shift_clock("3 seconds")
        await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.EXECUTED


async def test_items_stay_held_while_the_outcome_is_unknown(database: Database, tmp_path: Path) -> None:
    late = expect_results(lambda told: told[0]["expired"])
    one, _ = two(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b1"]}), last=False)
    other = script(
        step(call("pay", {"bills": ["b1"]})), step(say("Late."), expect=late), when=lambda text: "two" in text
    )
    async with office(database, tmp_path, one, other, repeatable=False) as o:
        await hold_b1(o)
        second = await o.propose(text="two", key="two", thread="1.2")
        await o.approve(second)
        for minutes in (30, 59, 61):
            o.shift_clock(f"{minutes} minutes")
            await o.sweep()
        assert (await o.approval(second.id)).status is ApprovalStatus.EXPIRED
        assert o.world.attempts == [1]


async def test_other_items_and_other_effects_do_not_wait(database: Database, tmp_path: Path) -> None:
    scripts = two(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]}))
    async with office(database, tmp_path, *scripts) as o:
        await hold_b1(o)
        second = await o.propose(text="two", key="two", thread="1.2")
        assert await approvals.overlaps(o.house.db, second) == []
        await o.approve(second)
        await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.EXECUTED
        o.shift_clock("3 seconds")
        await o.work()


@pytest.mark.parametrize("repeatable", [True, False])
async def test_items_are_free_again_when_the_call_ended(
    database: Database, tmp_path: Path, repeatable: bool
) -> None:
    once = script(step(call("pay", {"bills": ["b1"]})), step(say("Done.")))
    async with office(database, tmp_path, once, repeatable=repeatable) as o:
        await o.approve(await o.propose())
        held: list[Any] = []
        o.world.watch = lambda ctx: held.extend(o.execute("SELECT effect, item FROM held_items"))
        await o.work()
        assert held == [("payment", "b1")]
        assert o.execute("SELECT item FROM held_items") == []
