"""What the clock does: expire, escalate, remind, recover lost leases; safe in all workers at once."""

from collections.abc import Awaitable

import structlog

from agent import results
from agent.edited import with_edit
from agent.execute import MOST_ATTEMPTS, mark_unknown
from agent.expiry import expire_one
from agent.house import House
from agent.settle import remind
from agent.why import Code, because
from store import approvals, calls, clicks, runs
from store.errors import StatementRefused, StoreError, WrittenByNewer
from store.records import Approval, Call, ClaimedCall

log = structlog.get_logger(__name__)

GONE = because(Code.WORKER_GONE)
LONGEST_PAUSE = 300.0  # seconds


async def sweep(house: House) -> int:
    """One round of everything; returns how many rows were moved.

    What fails in one row or step is logged and hides no other; StoreError, if the database cannot be asked,
    ends the round.
    """
    await clicks.forget(house.db)
    steps = (
        recover_calls,
        _recover_runs,
        expire,
        escalate,
        _give_up_repeats,
        close_unsettled,
        _stop_released,
        remind,
    )
    return sum([await _apart(step(house), step=step.__name__) for step in steps])


async def _apart(move: Awaitable[int], **subject: str) -> int:
    """How many rows it moved; none if it fails, unless the database cannot be asked at all."""
    try:
        return await move
    except (StatementRefused, WrittenByNewer) as error:
        log.warning("a row or a step of the sweep was left", error=str(error), **subject)
        return 0
    except StoreError:
        raise
    except Exception:
        # whatever is wrong with one row, in its content or in us, the rest must not wait behind it
        log.exception("a fault in the sweep", **subject)
        return 0


async def _recover_runs(house: House) -> int:
    return len(await runs.recover(house.db))


async def _give_up_repeats(house: House) -> int:
    why = because(Code.TOO_OLD)
    return len(await approvals.give_up_repeats(house.db, why.text, why.to_json()))


async def _stop_released(house: House) -> int:
    why = because(Code.RUN_STOPPED)
    return await calls.stop_released(house.db, results.cancelled("").to_json(), why.to_json())


async def expire(house: House) -> int:
    """Past the deadline nobody decides: the run is told, and so are the people it concerns."""
    due = await approvals.due(house.db)
    return sum([await _apart(expire_one(house, approval), approval=approval.id) for approval in due])


async def escalate(house: House) -> int:
    """After a time, further people are asked, each with a copy of the card in a DM."""
    due = await approvals.to_escalate(house.db)
    return sum([await _apart(_escalate(house, approval), approval=approval.id) for approval in due])


async def _escalate(house: House, approval: Approval) -> int:
    team = approval.conversation.team_id
    rule = approval.rule
    able = house.policy.deciders(rule, approval.requester, rule.escalate_to)
    people = [(team, user) for user in able]
    return await approvals.escalate(house.db, approval, people)


async def close_unsettled(house: House) -> int:
    """Nobody settled an unknown call for 24 hours: the model is told, and says its last words."""
    due = await calls.unsettled(house.db)
    return sum([await _apart(_close_unsettled(house, call), call=call.id) for call in due])


async def _close_unsettled(house: House, call: Call) -> int:
    approval = await approvals.of_call(house.db, call.id)
    asked = [vote.person for vote in approval.votes] if approval else []
    result = await with_edit(house, approval, results.unknown(call.tool, approved_by=asked))
    return await calls.close_unknown(house.db, call.id, result.to_json())


async def recover_calls(house: House) -> int:
    """Calls whose worker is gone: tried again where that is harmless, unknown where it is not."""
    lapsed = await calls.lapsed(house.db)
    return sum([await _apart(_recover(house, call, token), call=call.id) for call, token in lapsed])


async def _pause_before_recheck(house: House, call: Call) -> float:
    """Seconds until another worker takes up a call that was never attempted: longer each time it is lost.

    What is looked at before an attempt may be what takes its workers down.
    """
    lost = 0 if call.attempts else await calls.times_released(house.db, call, GONE.text)
    return min(2.0 ** (lost + 1), LONGEST_PAUSE) if lost else 0.0


async def _recover(house: House, call: Call, token: str) -> bool:
    may_repeat = call.attempts == 0 or (call.repeatable and call.attempts < MOST_ATTEMPTS)
    wait = await _pause_before_recheck(house, call)
    if may_repeat and await calls.release(house.db, call.id, token, seconds=wait, why=GONE.text, lapsed=True):
        return True
    if call.only_reads:  # nothing can have happened
        result = results.failed(call.tool, GONE.text).to_json()
        return await calls.fail_lapsed(house.db, call.id, token, result=result, why=GONE.text)
    run = await runs.read(house.db, call.run_id)
    assert run is not None
    claimed = ClaimedCall(call, run, token, await approvals.of_call(house.db, call.id))
    return call.attempts > 0 and await mark_unknown(house, claimed, GONE, lapsed=True)
