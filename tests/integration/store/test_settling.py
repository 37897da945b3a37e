"""What people say of calls of unknown outcome: once each, of the attempts that they saw, in time."""

import asyncio
from typing import Any

import pytest

from store import approvals, calls
from store.engine import Database
from store.records import ClaimedCall
from tests import databases
from tests.integration.store.rows import (
    ANA,
    LEASE,
    TOLD,
    an_unknown_call,
    attempt,
    cancel,
    claim_call,
    mark_unknown,
    settle,
    shift_clock,
    the_call,
    try_again,
)

pytestmark = pytest.mark.store


async def statuses(db: Database, claimed: ClaimedCall) -> tuple[str, str | None]:
    """The call's status, and its approval's."""
    found = await approvals.of_call(db, claimed.call.id)
    return (await the_call(db, claimed.call.id)).status.value, None if found is None else found.status.value


async def test_a_settlement_of_another_attempt_changes_nothing(db: Database) -> None:
    claimed = await an_unknown_call(db)
    values: dict[str, Any] = {"ran": True, "result": TOLD, "outcome": {"kind": "executed"}}
    assert not await calls.settle(db, claimed.call.id, ANA, **values, attempts=2)
    assert await statuses(db, claimed) == ("unknown", "unknown")
    assert await calls.settle(db, claimed.call.id, ANA, **values, attempts=1)


@pytest.mark.parametrize("allowed", [False, True])
async def test_an_unknown_call_is_tried_again_once_with_the_key_that_it_has(
    db: Database, allowed: bool
) -> None:
    claimed = await an_unknown_call(db, allowed=allowed)
    key = (await the_call(db, claimed.call.id)).key
    assert not await try_again(db, claimed.call.id, attempts=2)
    said = await asyncio.gather(*(try_again(db, claimed.call.id) for _ in range(6)))
    assert sum(said) == 1
    again = await claim_call(db)
    assert again is not None and again.call.id == claimed.call.id
    assert await calls.start_attempt(db, again, key="another", repeatable=False, lease=LEASE) == key
    assert (await the_call(db, claimed.call.id)).attempts == 2


async def test_an_unknown_call_is_not_tried_again_a_day_after_its_first_attempt(
    db: Database, database: databases.Database
) -> None:
    claimed = await an_unknown_call(db)
    shift_clock(database, "24 hours")
    assert not await try_again(db, claimed.call.id)
    assert await statuses(db, claimed) == ("unknown", "unknown")


async def test_of_a_stopped_run_an_unknown_call_is_not_tried_again(db: Database) -> None:
    claimed = await an_unknown_call(db)
    assert await cancel(db, claimed.run.id)
    assert not await try_again(db, claimed.call.id)
    assert await statuses(db, claimed) == ("unknown", "unknown")


async def test_trying_again_and_stopping_at_once_leave_nothing_that_runs(db: Database) -> None:
    for _ in range(6):
        claimed = await an_unknown_call(db)
        await asyncio.gather(try_again(db, claimed.call.id), cancel(db, claimed.run.id))
        assert await claim_call(db) is None
        await calls.stop_released(db, TOLD)
        assert await statuses(db, claimed) == ("unknown", "unknown")
        assert await settle(db, claimed.call.id)


async def test_each_reminder_is_made_once_by_all_workers_and_again_after_another_attempt(
    db: Database, database: databases.Database
) -> None:
    claimed = await an_unknown_call(db)
    made = await asyncio.gather(*(calls.remind(db, [0.0, 3600.0]) for _ in range(4)))
    assert sum(map(len, made)) == 1
    shift_clock(database, "2 hours")
    assert len(await calls.remind(db, [0.0, 3600.0])) == 1
    assert await calls.remind(db, [0.0, 3600.0]) == []
    await try_again(db, claimed.call.id)
    assert await calls.remind(db, [0.0, 3600.0]) == []
    again = await claim_call(db)
    assert again is not None and await attempt(db, again, repeatable=False)
    await mark_unknown(db, again)
    assert len(await calls.remind(db, [0.0, 3600.0])) == 1
