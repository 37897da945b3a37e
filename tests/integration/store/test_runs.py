"""Runs: started once, one at a time in a conversation, and never by two workers."""

import asyncio

import pytest

from store import approvals, audit, calls, notices, runs
from store.engine import Database
from store.errors import StatementRefused
from store.records import SYSTEM, Run
from store.runs import Outcome
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    LEASE,
    LEO,
    TOLD,
    a_claimed_allowed_call,
    a_claimed_call,
    a_claimed_run,
    a_pending_approval,
    a_run,
    a_turn,
    an_allowed_call,
    an_approved_one,
    an_attempted_call,
    asked,
    attempt,
    cancel,
    claim_allowed,
    claim_call,
    ending,
    mark_unknown,
    pending_approvals,
    propose,
    reject,
    release,
    reloaded,
    settle,
    shift_clock,
    take,
    the,
    the_call,
    the_run,
)

pytestmark = pytest.mark.store


async def counted(db: Database, table: str) -> int:
    row = await db.one(f"SELECT count(*) AS n FROM {table}")
    assert row is not None
    return int(row["n"])


async def completed(db: Database, run_id: str) -> bool:
    claimed = await take(db)
    assert claimed is not None
    assert claimed.run.id == run_id
    return await runs.complete(db, claimed, body=[], answer="Done.", input_tokens=0, output_tokens=0)


# --- started ---


@pytest.mark.parametrize("thread", ["1.1", None])
async def test_fifty_starts_with_one_key_are_one_run_in_one_conversation_with_one_notice(
    db: Database, thread: str | None
) -> None:
    made = await asyncio.gather(*(a_run(db, key="event-1", thread=thread) for _ in range(50)))
    assert len({run.id for run in made}) == 1
    for table in ("runs", "conversations", "notices", "audit_events"):
        assert await counted(db, table) == 1, table


async def test_the_same_key_again_later_gives_the_first_run(db: Database) -> None:
    first = await a_run(db, key="event-1", thread="1.1")
    await cancel(db, first.id)
    assert (await a_run(db, key="event-1", thread="2.2")).id == first.id
    assert await counted(db, "conversations") == 1


async def test_messages_of_one_thread_at_once_are_runs_of_one_conversation_in_a_row(db: Database) -> None:
    made = await asyncio.gather(*(a_run(db, thread="1.1") for _ in range(20)))
    assert len({run.conversation_id for run in made}) == 1
    assert sorted(run.seq for run in made) == list(range(1, 21))


async def test_runs_without_a_thread_are_conversations_of_their_own(db: Database) -> None:
    first, second = await a_run(db, thread=None), await a_run(db, thread=None)
    assert first.conversation_id != second.conversation_id


async def test_the_first_message_of_the_bot_begins_the_thread(db: Database) -> None:
    run = await a_run(db, thread=None)
    notice = await notices.claim(db, token="t", worker="w", lease=LEASE)
    assert notice is not None
    assert await notices.posted(db, notice, "t", ts="9.9")
    assert (await runs.read_conversation(db, run.conversation_id)).thread_ts == "9.9"


# --- claimed ---


async def test_twenty_workers_at_once_take_twenty_different_runs(db: Database) -> None:
    made = {(await a_run(db)).id for _ in range(20)}
    taken = await asyncio.gather(*(take(db) for _ in range(30)))
    assert sorted(c.run.id for c in taken if c is not None) == sorted(made)


async def test_two_runs_of_one_conversation_are_never_both_started(db: Database) -> None:
    for number in range(5):
        first, second = [await a_run(db, thread=f"{number}.5") for _ in range(2)]
        taken = await asyncio.gather(*(take(db) for _ in range(4)))
        assert [c.run.id for c in taken if c is not None] == [first.id]
        assert (await the_run(db, second.id)).status is RunStatus.QUEUED


async def test_runs_of_a_conversation_start_in_the_order_of_their_messages(db: Database) -> None:
    first, second = [await a_run(db, thread="1.1") for _ in range(2)]
    await db.query("UPDATE runs SET queued_at = queued_at - interval '1 hour' WHERE id = %s", [second.id])
    assert await completed(db, first.id)
    assert await completed(db, second.id)


async def test_a_reply_waits_while_its_conversation_waits_for_people(db: Database) -> None:
    approval = await a_pending_approval(db)
    reply = await a_run(db, thread=approval.conversation.thread_ts)
    assert await take(db) is None
    blocked = await runs.in_the_way(db, reply.id)
    assert blocked is not None
    assert (blocked[0].id, [a.id for a in blocked[1]]) == (approval.run_id, [approval.id])
    await cancel(db, approval.run_id)
    assert await runs.in_the_way(db, reply.id) is None
    taken = await take(db)
    assert taken is not None
    assert taken.run.id == reply.id


async def test_a_run_that_is_tried_again_goes_before_the_reply(db: Database) -> None:
    first = await a_claimed_run(db, thread="1.1")
    await a_run(db, thread="1.1")
    assert await runs.requeue(db, first, seconds=0, why="busy", fault=True)
    taken = await take(db)
    assert taken is not None
    assert (taken.run.id, taken.run.faults) == (first.run.id, 1)


async def test_a_run_is_not_taken_before_its_time(db: Database, database: databases.Database) -> None:
    claimed = await a_claimed_run(db)
    await runs.requeue(db, claimed, seconds=60, why="busy", fault=False)
    assert await take(db) is None
    shift_clock(database, "61 seconds")
    assert await take(db) is not None


async def test_a_run_whose_worker_is_gone_is_recovered_once(
    db: Database, database: databases.Database
) -> None:
    claimed = await a_claimed_run(db)
    assert await runs.recover(db) == []
    shift_clock(database, "16 seconds")
    found = await asyncio.gather(*(runs.recover(db) for _ in range(8)))
    assert [ids for ids in found if ids] == [[claimed.run.id]]


async def test_a_renewed_lease_is_not_recovered(db: Database, database: databases.Database) -> None:
    claimed = await a_claimed_run(db)
    shift_clock(database, "14 seconds")
    assert await runs.renew(db, [claimed.token, "lost"], LEASE) == {claimed.token}
    shift_clock(database, "16 seconds")
    assert await runs.recover(db) == []


async def test_a_worker_that_lost_its_run_writes_nothing(db: Database, database: databases.Database) -> None:
    lost = await a_claimed_run(db)
    (call,) = await a_turn(db, lost)
    lost = await reloaded(db, lost)
    shift_clock(database, "16 seconds")
    await runs.recover(db)
    held = await take(db)
    assert held is not None
    before = await the_run(db, held.run.id)
    assert await runs.renew(db, [lost.token], LEASE) == frozenset()
    assert not await propose(db, lost, [Outcome(call.id, "asked")], [asked(call)])
    assert await runs.save_turn(db, lost, body=[], calls=[], input_tokens=0, output_tokens=0) is None
    assert not await runs.complete(db, lost, body=[], answer="", input_tokens=0, output_tokens=0)
    assert not await runs.fail(db, lost, "broken", CANCELLED)
    assert not await runs.requeue(db, lost, seconds=0, why="", fault=True)
    assert not await runs.pause(db, lost)
    assert await the_run(db, held.run.id) == before
    assert (await the_call(db, call.id)).status is CallStatus.PROPOSED


# --- turns ---


async def test_a_turn_is_saved_once(db: Database) -> None:
    claimed = await a_claimed_run(db)
    await a_turn(db, claimed, 2)
    assert await runs.save_turn(db, claimed, body=[], calls=[], input_tokens=0, output_tokens=0) is None
    assert await counted(db, "messages") == 1


async def test_a_claim_brings_everything_that_was_said_and_is_open(db: Database) -> None:
    claimed = await a_claimed_run(db)
    made = await a_turn(db, claimed, 2)
    loaded = await reloaded(db, claimed)
    assert (loaded.run.turn, loaded.run.steps, loaded.run.open_calls) == (1, 1, 2)
    assert loaded.calls == tuple(made)
    assert [turn.seq for turn in loaded.turns] == [1]


async def test_verdicts_on_a_call_that_has_one_are_refused_as_a_whole(db: Database) -> None:
    claimed = await a_claimed_run(db)
    first, second = await a_turn(db, claimed, 2)
    assert await propose(db, claimed, [Outcome(first.id, "forbidden", TOLD)])
    assert not await propose(db, claimed, [Outcome(first.id, "allowed"), Outcome(second.id, "allowed")])
    assert (await the_call(db, second.id)).status is CallStatus.PROPOSED
    assert (await the_run(db, claimed.run.id)).open_calls == 1


async def test_a_proposal_that_waits_for_more_than_a_week_is_refused(db: Database) -> None:
    claimed = await a_claimed_run(db)
    (call,) = await a_turn(db, claimed)
    with pytest.raises(StatementRefused, match="seven_days"):
        await propose(db, claimed, [Outcome(call.id, "asked")], [asked(call, expires_after=700_000.0)])
    assert (await the_call(db, call.id)).status is CallStatus.PROPOSED


async def test_a_run_pauses_only_while_something_is_open(db: Database) -> None:
    claimed = await a_claimed_run(db)
    assert not await runs.pause(db, claimed)
    await a_turn(db, claimed)
    assert await runs.pause(db, claimed)
    assert (await the_run(db, claimed.run.id)).status is RunStatus.AWAITING_APPROVAL


# --- ends ---


@pytest.mark.parametrize("exhausted", [False, True])
async def test_there_are_no_last_words_while_a_call_is_open(db: Database, exhausted: bool) -> None:
    claimed = await a_claimed_run(db)
    await a_turn(db, claimed)
    before = await runs.load(db, claimed.run.id, claimed.token)
    assert not await runs.complete(
        db, claimed, body=[], answer="Done.", input_tokens=0, output_tokens=0, exhausted=exhausted
    )
    assert await runs.load(db, claimed.run.id, claimed.token) == before


async def test_a_failed_run_cancels_what_was_not_begun_and_may_be_tried_again(db: Database) -> None:
    claimed = await a_claimed_run(db)
    (call,) = await a_turn(db, claimed)
    assert await runs.fail(db, claimed, "The model broke off.", CANCELLED)
    assert (await the_call(db, call.id)).status is CallStatus.CANCELLED
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls, run.error) == (RunStatus.FAILED, 0, "The model broke off.")
    assert await runs.retry(db, run.id, LEO)
    assert not await runs.retry(db, run.id, LEO)
    again = await take(db)
    assert again is not None
    assert (again.run.id, again.run.error) == (run.id, None)


async def test_a_failed_run_is_not_tried_again_after_a_later_one_has_started(db: Database) -> None:
    claimed = await a_claimed_run(db, thread="1.1")
    await runs.fail(db, claimed, "", CANCELLED)
    await a_claimed_run(db, thread="1.1")
    assert not await runs.retry(db, claimed.run.id, LEO)


async def test_a_retry_and_a_start_at_once_leave_one_started(db: Database) -> None:
    for number in range(5):
        claimed = await a_claimed_run(db, thread=f"{number}.7")
        await runs.fail(db, claimed, "", CANCELLED)
        await a_run(db, thread=f"{number}.7")
        await asyncio.gather(runs.retry(db, claimed.run.id, LEO), take(db), take(db))
        busy = await db.query(
            "SELECT FROM runs WHERE conversation_id = %s AND started_at IS NOT NULL"
            " AND status IN ('queued', 'running')",
            [claimed.run.conversation_id],
        )
        assert len(busy) == 1
        await db.query(
            "UPDATE runs SET status = 'cancelled', token = NULL, lease_until = NULL"
            " WHERE status IN ('queued', 'running')"
        )


async def test_vetoes_are_lifted_by_the_next_run_of_the_conversation_only(db: Database) -> None:
    approval = await a_pending_approval(db)
    await reject(db, approval)
    reply = await a_run(db, thread=approval.conversation.thread_ts)
    await a_claimed_run_elsewhere(db)
    assert (await db.query("SELECT lifted_at FROM vetoes")) == [{"lifted_at": None}]
    assert await completed(db, approval.run_id)
    assert (await db.query("SELECT lifted_at FROM vetoes")) == [{"lifted_at": None}]
    taken = await take(db)
    assert taken is not None
    assert taken.run.id == reply.id
    assert (await db.query("SELECT lifted_by_run FROM vetoes")) == [{"lifted_by_run": reply.id}]


async def a_claimed_run_elsewhere(db: Database) -> None:
    run = await a_run(db)
    await db.query("UPDATE runs SET queued_at = queued_at - interval '1 hour' WHERE id = %s", [run.id])
    taken = await take(db)
    assert taken is not None
    assert taken.run.id == run.id


# --- stopped ---


async def test_a_queued_run_is_stopped(db: Database) -> None:
    run = await a_run(db)
    assert await cancel(db, run.id)
    assert not await cancel(db, run.id)
    assert (await the_run(db, run.id)).status is RunStatus.CANCELLED
    assert await take(db) is None


async def test_a_running_run_is_stopped_with_what_it_had_proposed(db: Database) -> None:
    claimed, call = await an_allowed_call(db)
    assert await cancel(db, claimed.run.id)
    assert (await the_call(db, call.id)).status is CallStatus.CANCELLED
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls) == (RunStatus.CANCELLED, 0)
    assert await claim_allowed(db, claimed, call) is None


async def test_everything_that_waits_is_cancelled_with_its_run(db: Database) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    assert await cancel(db, first.run_id)
    for approval in (first, second):
        assert (await the(db, approval.id)).status is ApprovalStatus.CANCELLED
        call = await the_call(db, approval.call_id)
        assert (call.status, call.result["content"]["toolName"]) == (CallStatus.CANCELLED, "pay")


async def test_an_approved_call_of_a_stopped_run_is_not_executed(db: Database) -> None:
    approval = await an_approved_one(db)
    assert await cancel(db, approval.run_id)
    assert (await the(db, approval.id)).status is ApprovalStatus.CANCELLED
    assert await claim_call(db) is None


async def test_what_executes_when_its_run_is_stopped_is_recorded_all_the_same(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert await cancel(db, claimed.run.id)
    ended = await calls.finish_done(db, claimed, **ending())
    assert ended is not None
    assert not ended.kept
    assert (await the_call(db, claimed.call.id)).status is CallStatus.DONE
    run = await the_run(db, claimed.run.id)
    assert (run.status, run.open_calls) == (RunStatus.CANCELLED, 0)


async def test_a_call_given_back_to_a_stopped_run_is_cancelled_by_the_sweep(db: Database) -> None:
    claimed = await a_claimed_call(db)
    await cancel(db, claimed.run.id)
    assert await release(db, claimed)
    assert await claim_call(db) is None
    assert await calls.stop_released(db, CANCELLED) == 1
    assert await calls.stop_released(db, CANCELLED) == 0
    assert claimed.approval is not None
    assert (await the(db, claimed.approval.id)).status is ApprovalStatus.CANCELLED
    assert (await the_run(db, claimed.run.id)).open_calls == 0


async def test_an_allowed_call_given_back_to_a_stopped_run_is_cancelled_by_the_sweep(db: Database) -> None:
    claimed = await a_claimed_allowed_call(db)
    await cancel(db, claimed.run.id)
    assert await release(db, claimed)
    assert await calls.stop_released(db, CANCELLED) == 1
    assert (await the_call(db, claimed.call.id)).status is CallStatus.CANCELLED
    assert (await the_run(db, claimed.run.id)).open_calls == 0


async def test_an_attempted_call_is_not_given_back_to_a_stopped_run(db: Database) -> None:
    claimed = await an_attempted_call(db)
    await cancel(db, claimed.run.id)
    assert not await release(db, claimed)
    assert await mark_unknown(db, claimed)


async def test_an_approved_call_to_be_tried_again_is_unknown_when_its_run_is_stopped(db: Database) -> None:
    claimed = await an_attempted_call(db)
    assert claimed.approval is not None
    await release(db, claimed, seconds=60)
    assert await cancel(db, claimed.run.id)
    approval = await the(db, claimed.approval.id)
    assert (approval.status, approval.ended_at) == (ApprovalStatus.UNKNOWN, None)
    assert approval.outcome["kind"] == "unknown"
    assert await settle(db, claimed.call.id)
    assert (await the_run(db, claimed.run.id)).open_calls == 0


async def test_an_allowed_call_to_be_tried_again_can_be_settled_when_its_run_is_stopped(
    db: Database,
) -> None:
    claimed = await a_claimed_allowed_call(db, attempted=True)
    await release(db, claimed, seconds=60)
    assert await cancel(db, claimed.run.id)
    ((call, token),) = await calls.lapsed(db)
    assert (call.id, call.status) == (claimed.call.id, CallStatus.ALLOWED)
    assert await calls.mark_unknown(db, call.id, token, why="", approval=asked(call), lapsed=True)
    assert await settle(db, call.id)
    assert (await the_call(db, call.id)).status is CallStatus.DONE
    assert (await the_run(db, claimed.run.id)).open_calls == 0


async def test_a_run_is_stopped_and_a_decision_made_at_once_and_both_agree(db: Database) -> None:
    for _ in range(10):
        approval = await a_pending_approval(db)
        stopped, refused = await asyncio.gather(cancel(db, approval.run_id), reject(db, approval))
        assert stopped
        status = (await the(db, approval.id)).status
        assert status is (ApprovalStatus.REJECTED if refused else ApprovalStatus.CANCELLED)
        run = await the_run(db, approval.run_id)
        assert (run.status, run.open_calls) == (RunStatus.CANCELLED, 0)


async def test_a_claim_and_a_stop_at_once_leave_nothing_half_done(db: Database) -> None:
    for _ in range(10):
        approval = await an_approved_one(db)
        stopped, claimed = await asyncio.gather(cancel(db, approval.run_id), claim_call(db))
        assert stopped
        now = await the(db, approval.id)
        assert now.status is (ApprovalStatus.CANCELLED if claimed is None else ApprovalStatus.EXECUTING)
        if claimed is not None:
            await attempt(db, claimed)
            await calls.finish_done(db, claimed, **ending())
        assert (await the_run(db, approval.run_id)).open_calls == 0


async def test_the_conversation_goes_on_after_a_run_was_stopped(db: Database) -> None:
    approval = await a_pending_approval(db)
    reply = await a_run(db, thread=approval.conversation.thread_ts)
    await cancel(db, approval.run_id)
    taken = await take(db)
    assert taken is not None
    assert taken.run.id == reply.id
    assert [r.id for r in taken.runs] == [approval.run_id, reply.id]


async def test_unfinished_runs_are_listed_the_newest_first(db: Database) -> None:
    made: list[Run] = [await a_run(db) for _ in range(3)]
    await cancel(db, made[1].id)
    unfinished = await runs.listed(db, unfinished_only=True, limit=9)
    assert [r.id for r in unfinished] == [made[2].id, made[0].id]
    assert len(await runs.listed(db, unfinished_only=False, limit=9)) == 3


async def test_who_stopped_a_run_is_on_the_record(db: Database) -> None:
    approval = await a_pending_approval(db)
    await cancel(db, approval.run_id)
    last = (await audit.of(db, approval.run_id))[-1]
    assert (last.kind, last.actor, last.data["approvals"]) == ("run.cancelled", LEO, [approval.id])
    assert last.actor != SYSTEM
    assert await approvals.pending_all(db, limit=9) == []
