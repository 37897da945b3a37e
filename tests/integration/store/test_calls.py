"""A call is executed by one worker at a time, under a lease and a token, and recorded truthfully."""

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from store import approvals, calls, runs
from store.engine import Database, Params, Row
from store.records import ClaimedCall
from store.runs import Outcome
from store.statements.executing import FINISH_DONE
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests import databases
from tests.integration.store.rows import (
    LEASE,
    TOLD,
    a_claimed_allowed_call,
    a_claimed_call,
    a_claimed_run,
    a_turn,
    an_allowed_call,
    an_approved_one,
    an_attempted_call,
    approve,
    asked,
    attempt,
    claim_allowed,
    claim_call,
    ending,
    mark_unknown,
    pending_approvals,
    propose,
    reject,
    release,
    settle,
    shift_clock,
    the,
    the_call,
    the_run,
)

pytestmark = pytest.mark.store


def approval_id(claimed: ClaimedCall) -> str:
    assert claimed.approval is not None
    return claimed.approval.id


async def statuses(db: Database, claimed: ClaimedCall) -> tuple[str, str | None]:
    """The call's status, and its approval's."""
    found = await approvals.of_call(db, claimed.call.id)
    return (await the_call(db, claimed.call.id)).status.value, None if found is None else found.status.value


# --- claimed ---


async def test_many_workers_at_once_take_each_call_once(db: Database) -> None:
    made = {(await an_approved_one(db, [f"b{n}"])).call_id for n in range(10)}
    taken = await asyncio.gather(*(claim_call(db, f"w{n}") for n in range(25)))
    assert sorted(c.call.id for c in taken if c is not None) == sorted(made)


async def test_a_claim_brings_what_was_shown_and_by_whom_it_was_approved(db: Database) -> None:
    approval = await an_approved_one(db)
    claimed = await claim_call(db)
    assert claimed is not None
    assert claimed.approval is not None
    assert claimed.approval.shown == approval.shown
    assert [v.person.user_id for v in claimed.approval.votes] == ["U0MARTA"]
    assert claimed.approval.status is ApprovalStatus.EXECUTING


async def test_what_is_pending_is_never_claimed(db: Database) -> None:
    await pending_approvals(db, [["b1"], ["b2"]])
    assert await claim_call(db) is None


async def test_calls_of_one_run_execute_one_at_a_time_in_the_order_of_their_decisions(
    db: Database,
) -> None:
    first, second, third = await pending_approvals(db, [["b1"], ["b2"], ["b3"]])
    for approval in (third, first):
        await approve(db, approval)
    order = []
    for _ in range(2):
        taken = [c for c in await asyncio.gather(*(claim_call(db) for _ in range(4))) if c is not None]
        assert len(taken) == 1
        order.append(approval_id(taken[0]))
        await attempt(db, taken[0])
        await calls.finish_done(db, taken[0], **ending())
    assert order == [third.id, first.id]
    assert (await the(db, second.id)).status is ApprovalStatus.PENDING


async def test_a_call_decided_earlier_that_must_wait_keeps_its_place(
    db: Database, database: databases.Database
) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    await approve(db, first)
    claimed = await claim_call(db)
    assert claimed is not None
    await release(db, claimed, seconds=60)
    await approve(db, second)
    assert await claim_call(db) is None
    shift_clock(database, "61 seconds")
    again = await claim_call(db)
    assert again is not None
    assert approval_id(again) == first.id


async def test_an_allowed_call_needs_the_run_that_it_belongs_to(db: Database) -> None:
    run, call = await an_allowed_call(db)
    stranger = await calls.claim_allowed(db, call.id, run_token="another", token="t", worker="w", lease=LEASE)
    assert stranger is None
    taken = await asyncio.gather(*(claim_allowed(db, run, call) for _ in range(8)))
    assert sum(c is not None for c in taken) == 1


# --- attempted ---


async def test_an_attempt_is_on_the_call_and_on_its_approval_before_the_tool_runs(db: Database) -> None:
    claimed = await an_attempted_call(db)
    call = await the_call(db, claimed.call.id)
    assert (call.attempts, call.key, call.repeatable) == (1, claimed.call.id, True)
    assert call.first_attempt_at is not None
    assert (await the(db, approval_id(claimed))).attempted


async def test_the_key_and_the_time_of_the_first_attempt_stay(db: Database) -> None:
    claimed = await an_attempted_call(db)
    first = await the_call(db, claimed.call.id)
    await release(db, claimed)
    again = await claim_call(db)
    assert again is not None
    key = await calls.start_attempt(db, again, key="another", repeatable=True, lease=LEASE)
    second = await the_call(db, claimed.call.id)
    assert key == second.key == first.key
    assert (second.attempts, second.first_attempt_at) == (2, first.first_attempt_at)


async def test_no_attempt_begins_under_a_lease_that_is_over(
    db: Database, database: databases.Database
) -> None:
    claimed = await a_claimed_call(db)
    shift_clock(database, "15 seconds")
    assert await attempt(db, claimed) is None
    assert (await the_call(db, claimed.call.id)).attempts == 0


async def test_no_attempt_begins_under_a_lost_token(db: Database) -> None:
    lost = await a_claimed_call(db)
    await release(db, lost)
    held = await claim_call(db)
    assert held is not None
    assert await attempt(db, lost) is None
    assert await attempt(db, held) is not None


@pytest.mark.parametrize("age", ["24 hours", "25 hours"])
async def test_no_attempt_begins_a_day_after_the_first(
    db: Database, database: databases.Database, age: str
) -> None:
    claimed = await an_attempted_call(db)
    shift_clock(database, age)
    await runs.renew(db, [claimed.token], LEASE)
    assert await attempt(db, claimed) is None


# --- finished ---


@pytest.mark.parametrize(
    ("finish", "call", "approval"),
    [(calls.finish_done, "done", "executed"), (calls.finish_failed, "failed", "failed")],
)
async def test_what_became_of_a_call_is_on_both_rows_and_the_run_goes_on_here(
    db: Database, finish: object, call: str, approval: str
) -> None:
    claimed = await an_attempted_call(db)
    assert callable(finish)
    ended = await finish(db, claimed, **ending(output={"paid": 2}, done_items=["b1"]))
    assert ended.kept
    assert await statuses(db, claimed) == (call, approval)
    row = await the_call(db, claimed.call.id)
    assert (row.output, row.done_items, row.result) == ({"paid": 2}, ("b1",), TOLD)
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls) == (RunStatus.RUNNING, 0)
    held = await runs.load(db, run.id, "next")
    assert ended.run == held
    assert await runs.complete(db, held, body=[], answer="Done.", input_tokens=0, output_tokens=0)


class Within(Database):
    """A store on one connection, in a transaction that others end."""

    def __init__(self, connection: psycopg.AsyncConnection[Row]) -> None:
        self.connected = connection

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """One statement, not committed."""
        return await (await self.connected.execute(sql, params)).fetchall()


async def waiting_for_a_lock(db: Database) -> None:
    """Return once a statement of this database waits for one."""
    look = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while not await db.query(look):
            pass


async def test_what_was_read_while_another_call_of_the_turn_was_closed_is_not_gone_on_from(
    db: Database, database: databases.Database
) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    assert await approve(db, first)
    claimed = await claim_call(db)
    assert claimed is not None
    assert await attempt(db, claimed) is not None
    async with await psycopg.AsyncConnection.connect(database.url, row_factory=dict_row) as deciding:
        assert await reject(Within(deciding), second)
        finishing = asyncio.create_task(calls.finish_done(db, claimed, **ending()))
        await waiting_for_a_lock(db)
    ended = await finishing
    assert ended is not None
    assert (ended.kept, ended.run) == (True, None)
    held = await runs.load(db, claimed.run.id, "next")
    assert ([call.result is None for call in held.calls], len(held.vetoes)) == ([False, False], 1)


def nested(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


async def test_what_is_nested_deeply_is_read_back(db: Database) -> None:
    claimed_run = await a_claimed_run(db)
    (call,) = await a_turn(db, claimed_run)
    new = asked(call)
    deep = replace(new, content=replace(new.content, precondition={"deep": nested(300)}))
    assert await propose(db, claimed_run, [Outcome(call.id, "asked")], [deep])
    (found,) = await approvals.pending_all(db, limit=9)
    assert found.shown.precondition == {"deep": nested(300)}
    assert await approve(db, found)
    claimed = await claim_call(db)
    assert claimed is not None
    assert await attempt(db, claimed) is not None
    ended = await calls.finish_done(db, claimed, **ending(output=nested(300)))
    assert ended is not None
    assert ended.run is not None
    assert (await the_call(db, call.id)).output == nested(300)


async def test_what_ran_is_recorded_though_its_conversation_cannot_be_read(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = await an_attempted_call(db)
    broken = FINISH_DONE.replace("'earlier', (SELECT", "'never', 1 / (r.seq - r.seq), 'earlier', (SELECT")
    assert broken != FINISH_DONE
    monkeypatch.setattr("store.statements.executing.FINISH_DONE", broken)
    ended = await calls.finish_done(db, claimed, **ending())
    assert ended is not None
    assert (ended.kept, ended.run) == (True, None)
    assert await statuses(db, claimed) == ("done", "executed")


async def test_the_run_stays_put_while_another_call_of_the_turn_is_open(db: Database) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    await approve(db, first)
    claimed = await claim_call(db)
    assert claimed is not None
    await attempt(db, claimed)
    ended = await calls.finish_done(db, claimed, **ending())
    assert ended is not None
    assert not ended.kept
    assert (await the_run(db, first.run_id)).status is RunStatus.AWAITING_APPROVAL
    await reject(db, second)
    assert (await the_run(db, first.run_id)).status is RunStatus.QUEUED


@pytest.mark.parametrize("finish", [calls.finish_done, calls.finish_failed])
async def test_a_call_never_attempted_is_not_recorded_as_run(db: Database, finish: object) -> None:
    claimed = await a_claimed_call(db)
    assert callable(finish)
    assert await finish(db, claimed, **ending()) is None
    assert await statuses(db, claimed) == ("executing", "executing")


async def test_an_attempted_call_is_not_superseded(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert await calls.supersede(db, claimed, **ending()) is None
    assert await statuses(db, claimed) == ("executing", "executing")


async def test_a_call_whose_world_moved_is_superseded_before_any_attempt(db: Database) -> None:
    claimed = await a_claimed_call(db)
    assert await calls.supersede(db, claimed, **ending()) is not None
    assert await statuses(db, claimed) == ("superseded", "superseded")
    [found] = await approvals.replaceable(db, claimed.run.id, "pay")
    assert found.id == approval_id(claimed)


async def test_a_worker_that_lost_its_claim_records_nothing(
    db: Database, database: databases.Database
) -> None:
    lost = await an_attempted_call(db)
    shift_clock(database, "16 seconds")
    assert await release(db, lost, lapsed=True)
    held = await claim_call(db)
    assert held is not None
    for finish in (calls.finish_done, calls.finish_failed, calls.supersede):
        assert await finish(db, lost, **ending()) is None
    assert not await release(db, lost)
    assert not await mark_unknown(db, lost)
    assert await statuses(db, held) == ("executing", "executing")


async def test_an_attempt_is_finished_once(db: Database) -> None:
    claimed = await an_attempted_call(db)
    ends = await asyncio.gather(
        *(calls.finish_done(db, claimed, **ending()) for _ in range(4)),
        *(calls.finish_failed(db, claimed, **ending()) for _ in range(4)),
    )
    assert sum(end is not None for end in ends) == 1


# --- given back, or lost ---


async def test_a_lapsed_call_is_recovered_once(db: Database, database: databases.Database) -> None:
    claimed = await a_claimed_call(db)
    assert await calls.lapsed(db) == []
    shift_clock(database, "16 seconds")
    ((call, token),) = await calls.lapsed(db)
    assert (call.id, token) == (claimed.call.id, claimed.token)
    given = await asyncio.gather(*(release(db, claimed, lapsed=True) for _ in range(8)))
    assert sum(given) == 1
    assert await calls.lapsed(db) == []


async def test_the_sweep_takes_nothing_from_a_worker_that_is_alive(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert not await release(db, claimed, lapsed=True)
    assert not await mark_unknown(db, claimed, lapsed=True)


async def test_a_renewed_call_has_not_lapsed(db: Database, database: databases.Database) -> None:
    claimed = await a_claimed_call(db)
    shift_clock(database, "14 seconds")
    assert await runs.renew(db, [claimed.token], LEASE) == {claimed.token}
    shift_clock(database, "16 seconds")
    assert await calls.lapsed(db) == []


async def test_an_attempt_that_cannot_be_repeated_is_never_given_back(db: Database) -> None:
    claimed = await an_attempted_call(db, repeatable=False)
    assert not await release(db, claimed)
    assert await mark_unknown(db, claimed)
    assert await statuses(db, claimed) == ("unknown", "unknown")


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_attempt_is_not_given_back_a_day_after_the_first(
    db: Database, database: databases.Database, allowed: bool
) -> None:
    if allowed:
        claimed = await a_claimed_allowed_call(db, attempted=True)
    else:
        claimed = await an_attempted_call(db)
    shift_clock(database, "24 hours")
    assert not await release(db, claimed, lapsed=True)
    assert await mark_unknown(db, claimed, lapsed=True)


async def test_what_was_given_back_before_any_attempt_may_still_lapse(
    db: Database, database: databases.Database
) -> None:
    claimed = await a_claimed_call(db)
    await release(db, claimed, seconds=5)
    assert await statuses(db, claimed) == ("asked", "approved")
    shift_clock(database, "61 minutes")
    assert [a.id for a in await approvals.due(db)] == [approval_id(claimed)]


async def test_an_allowed_call_that_is_given_back_is_allowed_again(db: Database) -> None:
    claimed = await a_claimed_allowed_call(db)
    assert await release(db, claimed, seconds=0)
    assert await statuses(db, claimed) == ("allowed", None)


async def test_repeats_end_a_day_after_the_first_attempt(db: Database, database: databases.Database) -> None:
    claimed = await an_attempted_call(db)
    await release(db, claimed)
    assert await approvals.give_up_repeats(db, "Too old.") == []
    shift_clock(database, "24 hours")
    assert await claim_call(db) is None
    given_up = await asyncio.gather(*(approvals.give_up_repeats(db, "Too old.") for _ in range(4)))
    assert [ids for ids in given_up if ids] == [[approval_id(claimed)]]
    assert await statuses(db, claimed) == ("unknown", "unknown")
    assert (await the(db, approval_id(claimed))).outcome["text"] == "Too old."


# --- unknown ---


async def test_only_what_was_attempted_becomes_unknown(db: Database) -> None:
    claimed = await a_claimed_call(db)
    assert not await mark_unknown(db, claimed)


async def test_an_unknown_allowed_call_gets_an_approval_by_which_people_settle_it(db: Database) -> None:
    claimed = await a_claimed_allowed_call(db, attempted=True, repeatable=False)
    assert await mark_unknown(db, claimed)
    born = await approvals.of_call(db, claimed.call.id)
    assert born is not None
    assert (born.status, born.attempted, born.shown.items) == (ApprovalStatus.UNKNOWN, True, ("b1", "b2"))
    assert len(await db.query("SELECT FROM cards WHERE approval_id = %s", [born.id])) == 1
    assert not await mark_unknown(db, claimed)


async def test_an_unknown_call_keeps_its_turn_open_until_it_is_settled(db: Database) -> None:
    claimed = await an_attempted_call(db)
    await mark_unknown(db, claimed)
    assert (await the_run(db, claimed.run.id)).status is RunStatus.AWAITING_APPROVAL
    assert await settle(db, claimed.call.id)
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls) == (RunStatus.QUEUED, 0)


@pytest.mark.parametrize(("ran", "expected"), [(True, ("done", "executed")), (False, ("failed", "failed"))])
async def test_an_unknown_call_is_settled_once_as_a_person_says(
    db: Database, ran: bool, expected: tuple[str, str]
) -> None:
    claimed = await an_attempted_call(db)
    await mark_unknown(db, claimed)
    said = await asyncio.gather(*(settle(db, claimed.call.id, ran=ran) for _ in range(6)))
    assert sum(said) == 1
    assert await statuses(db, claimed) == expected


async def test_nothing_but_an_unknown_call_is_settled(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert not await settle(db, claimed.call.id)


async def test_a_call_unsettled_for_a_day_is_told_to_the_model_and_may_still_be_settled(
    db: Database, database: databases.Database
) -> None:
    claimed = await an_attempted_call(db)
    await mark_unknown(db, claimed)
    assert not await calls.close_unknown(db, claimed.call.id, TOLD)
    shift_clock(database, "24 hours")
    assert [call.id for call in await calls.unsettled(db)] == [claimed.call.id]
    closed = await asyncio.gather(*(calls.close_unknown(db, claimed.call.id, TOLD) for _ in range(4)))
    assert sum(closed) == 1
    assert await calls.unsettled(db) == []
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls) == (RunStatus.QUEUED, 0)
    assert await statuses(db, claimed) == ("unknown", "unknown")
    assert await settle(db, claimed.call.id)
    assert (await the_run(db, claimed.run.id)).open_calls == 0
    assert (await the_call(db, claimed.call.id)).status is CallStatus.DONE
