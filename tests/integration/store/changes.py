"""Every change that the store can make, each ready to be made: what it records, and how to come to it."""

from collections.abc import Awaitable, Callable
from typing import Any

from store import approvals, calls, runs
from store.engine import Database
from store.runs import Outcome
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    LEO,
    TEAM,
    TOLD,
    a_claimed_allowed_call,
    a_claimed_call,
    a_claimed_run,
    a_draft,
    a_pending_approval,
    a_run,
    a_turn,
    an_allowed_call,
    an_approved_one,
    an_attempted_call,
    an_unknown_call,
    approve,
    asked,
    attempt,
    cancel,
    claim_allowed,
    claim_call,
    confirm,
    ending,
    expire,
    mark_unknown,
    propose,
    reject,
    release,
    settle,
    shift_clock,
    take,
    try_again,
    vote,
    withdraw,
)

Step = Callable[[], Awaitable[Any]]
Prepare = Callable[[Database, databases.Database], Awaitable[Step]]


async def _start(db: Database, _: databases.Database) -> Step:
    return lambda: a_run(db)


async def _take(db: Database, _: databases.Database) -> Step:
    await a_run(db)
    return lambda: take(db)


async def _save_turn(db: Database, _: databases.Database) -> Step:
    claimed = await a_claimed_run(db)
    return lambda: a_turn(db, claimed)


async def _propose(db: Database, _: databases.Database) -> Step:
    claimed = await a_claimed_run(db)
    (call,) = await a_turn(db, claimed)
    return lambda: propose(db, claimed, [Outcome(call.id, "asked")], [asked(call)])


def _of_run(end: Callable[[Database, Any], Awaitable[Any]], *, turn: bool = False) -> Prepare:
    async def prepare(db: Database, _: databases.Database) -> Step:
        claimed = await a_claimed_run(db)
        if turn:
            await a_turn(db, claimed)
        return lambda: end(db, claimed)

    return prepare


async def _retry(db: Database, _: databases.Database) -> Step:
    claimed = await a_claimed_run(db)
    await runs.fail(db, claimed, "", CANCELLED)
    return lambda: runs.retry(db, claimed.run.id, LEO)


async def _recover(db: Database, database: databases.Database) -> Step:
    await a_claimed_run(db)
    shift_clock(database, "1 minute")
    return lambda: runs.recover(db)


def _of_approval(
    decide: Callable[[Database, Any], Awaitable[Any]],
    *,
    late: str | None = None,
    made: Callable[..., Awaitable[Any]] = a_pending_approval,
) -> Prepare:
    async def prepare(db: Database, database: databases.Database) -> Step:
        approval = await made(db)
        if late is not None:
            shift_clock(database, late)
        return lambda: decide(db, approval)

    return prepare


def _of_draft(approved: bool) -> Prepare:
    async def prepare(db: Database, _: databases.Database) -> Step:
        approval = await a_pending_approval(db, quorum=2)
        draft = await a_draft(db, approval)
        return lambda: confirm(db, approval, draft, approved=approved)

    return prepare


async def _claim(db: Database, _: databases.Database) -> Step:
    await an_approved_one(db)
    return lambda: claim_call(db)


async def _claim_allowed(db: Database, _: databases.Database) -> Step:
    run, call = await an_allowed_call(db)
    return lambda: claim_allowed(db, run, call)


def _of_claim(
    end: Callable[[Database, Any], Awaitable[Any]],
    made: Callable[..., Awaitable[Any]] = an_attempted_call,
) -> Prepare:
    async def prepare(db: Database, _: databases.Database) -> Step:
        claimed = await made(db)
        return lambda: end(db, claimed)

    return prepare


async def _give_up(db: Database, database: databases.Database) -> Step:
    await release(db, await an_attempted_call(db))
    shift_clock(database, "24 hours")
    return lambda: approvals.give_up_repeats(db, "Too old.")


async def _settle(db: Database, _: databases.Database) -> Step:
    claimed = await an_attempted_call(db)
    await mark_unknown(db, claimed)
    return lambda: settle(db, claimed.call.id)


async def _try_again(db: Database, _: databases.Database) -> Step:
    claimed = await an_unknown_call(db)
    return lambda: try_again(db, claimed.call.id)


async def _remind(db: Database, _: databases.Database) -> Step:
    await an_unknown_call(db)
    return lambda: calls.remind(db, [0.0, 3600.0])


async def _escalate_unknown(db: Database, _: databases.Database) -> Step:
    claimed = await an_unknown_call(db)
    approval = await approvals.of_call(db, claimed.call.id)
    assert approval is not None
    return lambda: approvals.escalate(db, approval, [(TEAM, "U0ANA")])


async def _close_unknown(db: Database, database: databases.Database) -> Step:
    claimed = await an_attempted_call(db)
    await mark_unknown(db, claimed)
    shift_clock(database, "24 hours")
    return lambda: calls.close_unknown(db, claimed.call.id, TOLD)


async def _stop_released(db: Database, _: databases.Database) -> Step:
    claimed = await a_claimed_call(db)
    await cancel(db, claimed.run.id)
    await release(db, claimed)
    return lambda: calls.stop_released(db, CANCELLED)


def _complete(db: Database, claimed: Any, *, exhausted: bool = False) -> Awaitable[bool]:
    return runs.complete(
        db, claimed, body=[], answer="Done.", input_tokens=0, output_tokens=0, exhausted=exhausted
    )


async def an_unasked_attempt(db: Database) -> Any:
    return await a_claimed_allowed_call(db, attempted=True)


CHANGES: dict[str, tuple[list[str], Prepare]] = {
    "runs.start": (["run.queued"], _start),
    "runs.claim": (["run.claimed"], _take),
    "runs.save_turn": (["turn.saved"], _save_turn),
    "runs.propose": (["call.asked"], _propose),
    "runs.complete": (["run.completed"], _of_run(_complete)),
    "runs.complete exhausted": (
        ["run.exhausted"],
        _of_run(lambda db, c: _complete(db, c, exhausted=True)),
    ),
    "runs.fail": (["run.failed"], _of_run(lambda db, c: runs.fail(db, c, "broken", CANCELLED))),
    "runs.requeue": (
        ["run.requeued"],
        _of_run(lambda db, c: runs.requeue(db, c, seconds=1, why="busy", fault=True)),
    ),
    "runs.pause": (["run.paused"], _of_run(runs.pause, turn=True)),
    "runs.retry": (["run.retried"], _retry),
    "runs.cancel": (["run.cancelled"], _of_run(lambda db, c: cancel(db, c.run.id))),
    "runs.recover": (["run.lease_lost"], _recover),
    "approvals.vote": (["approval.voted"], _of_approval(vote)),
    "approvals.approve": (["approval.approved"], _of_approval(approve)),
    "approvals.reject": (["approval.rejected"], _of_approval(reject)),
    "approvals.expire": (["approval.expired"], _of_approval(expire, late="24 hours")),
    "approvals.expire approved": (
        ["approval.expired"],
        _of_approval(expire, late="2 hours", made=an_approved_one),
    ),
    "approvals.withdraw": (["call.superseded"], _of_approval(withdraw)),
    "approvals.escalate": (
        ["approval.escalated"],
        _of_approval(lambda db, a: approvals.escalate(db, a, [(TEAM, "U0ANA")])),
    ),
    "approvals.save_draft": (["approval.drafted"], _of_approval(a_draft)),
    "approvals.confirm_draft": (["approval.edited", "approval.voted"], _of_draft(False)),
    "approvals.confirm_draft approved": (["approval.edited", "approval.approved"], _of_draft(True)),
    "approvals.give_up_repeats": (["call.unknown"], _give_up),
    "calls.claim": (["call.claimed"], _claim),
    "calls.claim_allowed": (["call.claimed"], _claim_allowed),
    "calls.start_attempt": (["attempt.started"], _of_claim(attempt, a_claimed_call)),
    "calls.finish_done": (["call.executed"], _of_claim(lambda db, c: calls.finish_done(db, c, **ending()))),
    "calls.finish_done allowed": (
        ["call.executed"],
        _of_claim(lambda db, c: calls.finish_done(db, c, **ending()), an_unasked_attempt),
    ),
    "calls.finish_failed": (
        ["call.failed"],
        _of_claim(lambda db, c: calls.finish_failed(db, c, **ending())),
    ),
    "calls.supersede": (
        ["call.superseded"],
        _of_claim(lambda db, c: calls.supersede(db, c, **ending()), a_claimed_call),
    ),
    "calls.release": (["call.released"], _of_claim(release)),
    "calls.mark_unknown": (["call.unknown"], _of_claim(mark_unknown)),
    "calls.mark_unknown allowed": (["call.unknown"], _of_claim(mark_unknown, an_unasked_attempt)),
    "calls.settle": (["call.settled"], _settle),
    "calls.try_again": (["call.tried_again"], _try_again),
    "calls.remind": (["approval.reminded"], _remind),
    "approvals.escalate unknown": (["approval.escalated"], _escalate_unknown),
    "calls.close_unknown": (["call.unsettled"], _close_unknown),
    "calls.stop_released": (["calls.cancelled"], _stop_released),
}
