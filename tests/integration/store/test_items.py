"""Two calls never act on the same item."""

import asyncio
import random
from itertools import combinations

import pytest

from store import calls
from store.engine import Database
from store.records import ClaimedCall
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    a_claimed_allowed_call,
    a_claimed_call,
    an_allowed_call,
    an_approved_one,
    an_attempted_call,
    approve,
    attempt,
    cancel,
    claim_allowed,
    claim_call,
    ending,
    expire,
    mark_unknown,
    pending_approvals,
    release,
    settle,
    shift_clock,
    the,
)

pytestmark = pytest.mark.store


async def held(db: Database) -> list[str]:
    return [row["item"] for row in await db.query("SELECT item FROM held_items ORDER BY item")]


async def overlapping(db: Database) -> ClaimedCall:
    """Two approved calls that share an item, the first of them claimed."""
    claimed = await a_claimed_call(db, ["b1", "b2"])
    await an_approved_one(db, ["b2", "b3"])
    return claimed


async def test_of_two_calls_on_one_item_the_second_waits_until_the_first_has_ended(db: Database) -> None:
    first = await overlapping(db)
    assert await held(db) == ["b1", "b2"]
    assert await claim_call(db) is None
    await attempt(db, first)
    assert await claim_call(db) is None
    await calls.finish_done(db, first, **ending())
    assert await claim_call(db) is not None
    assert await held(db) == ["b2", "b3"]


async def test_a_call_that_waits_for_an_item_does_not_hold_up_the_next_of_its_run(db: Database) -> None:
    unknown = await an_attempted_call(db, repeatable=False)
    await mark_unknown(db, unknown)
    stuck, free = await pending_approvals(db, [["b1"], ["b9"]])
    for approval in (stuck, free):
        assert await approve(db, approval)
    claimed = await claim_call(db)
    assert claimed is not None
    assert claimed.approval is not None
    assert claimed.approval.id == free.id
    assert await claim_call(db) is None


@pytest.mark.parametrize("end", ["finish_failed", "supersede"])
async def test_items_are_free_when_their_call_has_ended(db: Database, end: str) -> None:
    first = await overlapping(db)
    if end == "finish_failed":
        await attempt(db, first)
    assert await getattr(calls, end)(db, first, **ending()) is not None
    assert await claim_call(db) is not None


async def test_items_are_free_when_their_call_is_given_back_unattempted(db: Database) -> None:
    first = await overlapping(db)
    await release(db, first, seconds=60)
    assert await held(db) == []
    assert await claim_call(db) is not None


async def test_items_stay_held_while_their_call_waits_for_another_attempt(db: Database) -> None:
    first = await overlapping(db)
    await attempt(db, first)
    await release(db, first)
    again = await claim_call(db)
    assert again is not None
    assert again.call.id == first.call.id
    assert await claim_call(db) is None


async def test_items_stay_held_while_nobody_knows_and_are_free_when_a_person_does(db: Database) -> None:
    first = await overlapping(db)
    await attempt(db, first)
    await mark_unknown(db, first)
    assert await claim_call(db) is None
    await settle(db, first.call.id)
    assert await claim_call(db) is not None


async def test_items_of_a_stopped_run_stay_held_while_nobody_knows(db: Database) -> None:
    first = await overlapping(db)
    await attempt(db, first)
    await release(db, first, seconds=60)
    await cancel(db, first.run.id)
    assert await claim_call(db) is None
    await settle(db, first.call.id)
    assert await claim_call(db) is not None


async def test_what_was_cancelled_or_lapsed_holds_nothing(db: Database, database: databases.Database) -> None:
    claimed = await a_claimed_call(db)
    await cancel(db, claimed.run.id)
    await release(db, claimed)
    await calls.stop_released(db, CANCELLED)
    second = await a_claimed_call(db)
    await release(db, second)
    assert second.approval is not None
    shift_clock(database, "61 minutes")
    assert await expire(db, await the(db, second.approval.id))
    assert await held(db) == []


async def test_an_allowed_call_waits_for_an_item_of_an_approved_one_and_the_other_way_round(
    db: Database,
) -> None:
    first = await a_claimed_call(db, ["b1"])
    run, call = await an_allowed_call(db, ["b1"])
    assert await claim_allowed(db, run, call) is None
    await calls.supersede(db, first, **ending())
    claimed = await claim_allowed(db, run, call)
    assert claimed is not None
    await an_approved_one(db, ["b1"])
    assert await claim_call(db) is None


async def test_the_same_item_of_another_effect_is_another_item(db: Database) -> None:
    await a_claimed_call(db, ["b1"])
    await an_approved_one(db, ["b1"], effect="mail")
    assert await claim_call(db) is not None


async def test_a_call_that_waits_for_an_item_does_not_stop_those_behind_it(db: Database) -> None:
    await overlapping(db)
    free = await an_approved_one(db, ["b9"])
    claimed = await claim_call(db)
    assert claimed is not None
    assert claimed.call.id == free.call_id


async def test_an_item_named_twice_is_held_once(db: Database) -> None:
    await an_approved_one(db, ["b1", "b1"])
    assert await claim_call(db) is not None
    assert await held(db) == ["b1"]


async def test_a_call_without_items_holds_none(db: Database) -> None:
    await an_approved_one(db, [])
    await an_approved_one(db, [])
    assert [await claim_call(db) is not None for _ in range(2)] == [True, True]


async def test_two_allowed_calls_on_one_item_at_once_leave_one(db: Database) -> None:
    for number in range(5):
        pairs = [await an_allowed_call(db, [f"b{number}", "c"]) for _ in range(3)]
        taken = await asyncio.gather(*(claim_allowed(db, run, call) for run, call in pairs))
        (won,) = [c for c in taken if c is not None]
        await attempt(db, won)
        await calls.finish_done(db, won, **ending())


async def test_claims_at_once_over_overlapping_items_neither_share_one_nor_deadlock(db: Database) -> None:
    chosen = random.Random(7)
    pool = [f"b{n:02}" for n in range(12)]
    for _ in range(20):
        await an_approved_one(db, chosen.sample(pool, chosen.randint(1, 4)))
    finished = 0
    while finished < 20:
        taken = [c for c in await asyncio.gather(*(claim_call(db, f"w{n}") for n in range(20))) if c]
        assert taken
        items = [set(c.approval.shown.items) for c in taken if c.approval]
        assert all(not one & other for one, other in combinations(items, 2))
        await asyncio.gather(*(attempt(db, c) for c in taken))
        await asyncio.gather(*(calls.finish_done(db, c, **ending()) for c in taken))
        finished += len(taken)
    assert await held(db) == []


async def test_an_allowed_call_that_is_unknown_holds_its_items(db: Database) -> None:
    claimed = await a_claimed_allowed_call(db, ["b1"], attempted=True, repeatable=False)
    await mark_unknown(db, claimed)
    await an_approved_one(db, ["b1"])
    assert await claim_call(db) is None
