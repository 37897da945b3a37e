"""The world is checked again, right after the claim and before the first attempt only."""

from pathlib import Path
from typing import Any

import pytest

from agent.scripted import call, expect_results, say, script, step
from agent.tool import Facts, Money
from store.transitions import ApprovalStatus
from tests.databases import Database
from tests.integration.agent.office import approved, office, with_tool

PAY = call("pay", {"bills": ["b1", "b2"]})
DONE = script(step(PAY), step(say("That is all.")))


@pytest.mark.parametrize(
    "name, value, kinds",
    [
        ("due", 41, {"precondition"}),
        ("price", 11, {"amount"}),
        ("gone", {"b2"}, {"count", "amount", "items"}),
    ],
)
async def test_a_world_that_moved_supersedes_the_approval(
    database: Database, tmp_path: Path, name: str, value: Any, kinds: set[str]
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        setattr(o.world, name, value)
        await o.work()
        after = await o.approval(asked.id)
        assert (after.status, after.attempted, o.world.attempts) == (ApprovalStatus.SUPERSEDED, False, [])
        assert {moved["kind"] for moved in after.outcome["moved"]} == kinds
        assert (await o.result(asked))["moved"] == after.outcome["moved"]


async def test_a_count_that_moved_alone_supersedes_the_approval(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        counted = with_tool(
            o.house, "pay", facts=lambda input, ctx: Facts(o.world.due), precondition=None, preview=None
        )
        await o.start()
        worker = o.another_worker(house=counted)
        await worker.work_off()
        asked = await o.asked()
        await o.approve(asked)
        was, o.world.due = o.world.due, o.world.due + 3
        await worker.work_off()
        after = await o.approval(asked.id)
        assert (after.status, o.world.attempts) == (ApprovalStatus.SUPERSEDED, [])
        assert [(m["kind"], m["was"], m["is"]) for m in after.outcome["moved"]] == [("count", was, was + 3)]


async def test_items_that_were_swapped_for_as_many_others_supersede_it(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        swapped = with_tool(
            o.house, "pay", facts=lambda i, c: Facts(2, Money(20, "EUR"), ["b1", "b3"], shop="ours")
        )
        await o.another_worker(house=swapped).work_off()
        (moved,) = (await o.approval(asked.id)).outcome["moved"]
        assert (moved["kind"], moved["added"], moved["gone"]) == ("items", 1, 1)


async def test_the_check_comes_right_after_the_claim_and_before_the_attempt(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.due = 41
        await o.work()
        kinds = await o.events(asked.id)
        assert kinds[-2:] == ["call.claimed", "call.superseded"]


async def test_a_check_that_cannot_be_made_is_tried_again_and_then_runs(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.unmeasurable = [RuntimeError("database down")]
        await o.work()
        waiting = await o.approval(asked.id)
        assert (waiting.status, waiting.attempted) == (ApprovalStatus.APPROVED, False)
        assert o.execute("SELECT item FROM held_items") == []
        await o.work()
        assert o.world.attempts == []
        o.shift_clock("6 seconds")
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED


async def test_a_check_that_can_never_be_made_ends_when_it_had_to_begin(
    database: Database, tmp_path: Path
) -> None:
    late = script(step(PAY), step(say("Too late."), expect=expect_results(lambda t: not t[0]["executed"])))
    async with office(database, tmp_path, late) as o:
        asked = await approved(o)
        o.world.unmeasurable = [RuntimeError("database down")] * 50
        for minutes in range(0, 70, 5):
            o.shift_clock(f"{minutes} minutes")
            await o.sweep()
        after, told = await o.approval(asked.id), await o.result(asked)
        assert (after.status, o.world.attempts) == (ApprovalStatus.EXPIRED, [])
        assert (told["expired"], "approvalDenied" in told) == (True, False)
        assert o.execute("SELECT id FROM vetoes") == []
        assert len(o.world.unmeasurable) > 30, "it was tried more and more rarely"


async def test_a_check_that_cannot_be_made_does_not_hold_up_what_was_approved_after_it_for_ever(
    database: Database, tmp_path: Path
) -> None:
    both = script(step(PAY, call("pay", {"bills": ["b3"]})), step(say("Done."), optional=True))
    async with office(database, tmp_path, both) as o:
        await o.start()
        await o.work()
        first, second = await o.all_asked()
        o.world.unmeasurable = [RuntimeError("database down")] * 50
        await o.approve(first)
        await o.approve(second)
        for minutes in range(29):
            o.shift_clock(f"{minutes} minutes")
            await o.work()
        assert await o.statuses(first.run_id) == ["asked", "asked"]  # they go in the order of the decisions
        o.world.unmeasurable = [RuntimeError("database down")]
        o.shift_clock("31 minutes")
        await o.work()  # the check fails once more
        await o.work()
        assert await o.statuses(first.run_id) == ["asked", "done"]
        o.shift_clock("40 minutes")
        await o.work()
        assert await o.statuses(first.run_id) == ["done", "done"]


async def test_three_supersessions_in_a_row_are_told_to_the_requester(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(PAY), step(PAY), step(PAY), step(say("I stop.")))) as o:
        await o.start()
        await o.work()
        for due in (41, 44, 47):
            assert o.execute("SELECT id FROM notices WHERE kind = 'superseded_thrice'") == []
            await o.approve(await o.asked())
            o.world.due = due
            await o.work()
        told = o.execute("SELECT data->>'approval_id' FROM notices WHERE kind = 'superseded_thrice'")
        assert told == o.execute("SELECT id FROM approvals ORDER BY created_at DESC LIMIT 1")
