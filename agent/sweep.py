"""What the clock does: expire, escalate, recover lost leases. Every sweep is safe in all workers at once."""

from agent import results
from agent.execute import MOST_ATTEMPTS, TOO_OLD, mark_unknown
from agent.house import House
from store import approvals, calls, clicks, runs
from store.records import Approval, Call, ClaimedCall
from store.transitions import ApprovalStatus

GONE = "The worker that executed it is gone."


async def sweep(house: House) -> int:
    """One round of everything; returns how many rows were moved."""
    await clicks.forget(house.db)
    return (
        await recover_calls(house)
        + len(await runs.recover(house.db))
        + await expire(house)
        + await escalate(house)
        + len(await approvals.give_up_repeats(house.db, TOO_OLD))
        + await close_unsettled(house)
        + await calls.stop_released(house.db, results.cancelled("").to_json())
    )


async def expire(house: House) -> int:
    """Past the deadline nobody decides: the run is told, and so are the people it concerns."""
    moved = 0
    for approval in await approvals.due(house.db):
        moved += await approvals.expire(
            house.db,
            approval,
            result=_expired(house, approval).to_json(),
            reason="deadline" if approval.status is ApprovalStatus.PENDING else "claim_by",
            people=people_to_tell(house, approval),
        )
    return moved


def _expired(house: House, approval: Approval) -> results.Result:
    tool = house.tools.get(approval.tool)
    if approval.status is ApprovalStatus.PENDING:
        return results.expired(approval.tool, followup=tool.followup if tool else None)
    return results.not_started_in_time(approval.tool, [vote.person for vote in approval.votes])


def people_to_tell(house: House, approval: Approval) -> list[tuple[str, str]]:
    """Those who hear in a DM that nobody decided: the escalation's people and the requester."""
    team = approval.conversation.team_id
    told = [(team, user) for user in house.policy.users_of(approval.rule.escalate_to)]
    asked_by = approval.requester
    if asked_by.team_id and asked_by.user_id:
        told.append((asked_by.team_id, asked_by.user_id))
    return list(dict.fromkeys(told))


async def escalate(house: House) -> int:
    """After a time, further people are asked, each with a copy of the card in a DM."""
    moved = 0
    for approval in await approvals.to_escalate(house.db):
        team = approval.conversation.team_id
        people = [(team, user) for user in house.policy.users_of(approval.rule.escalate_to)]
        moved += await approvals.escalate(house.db, approval, people)
    return moved


async def close_unsettled(house: House) -> int:
    """Nobody settled an unknown call for 24 hours: the model is told, and says its last words."""
    moved = 0
    for call in await calls.unsettled(house.db):
        approval = await approvals.of_call(house.db, call.id)
        asked = [vote.person for vote in approval.votes] if approval else []
        result = results.unknown(call.tool, approved_by=asked)
        moved += await calls.close_unknown(house.db, call.id, result.to_json())
    return moved


async def recover_calls(house: House) -> int:
    """Calls whose worker is gone: tried again where that is harmless, unknown where it is not."""
    moved = 0
    for call, token in await calls.lapsed(house.db):
        moved += await _recover(house, call, token)
    return moved


async def _recover(house: House, call: Call, token: str) -> bool:
    may_repeat = call.attempts == 0 or (call.repeatable and call.attempts < MOST_ATTEMPTS)
    if may_repeat and await calls.release(house.db, call.id, token, seconds=0, why=GONE, lapsed=True):
        return True
    run = await runs.read(house.db, call.run_id)
    assert run is not None
    claimed = ClaimedCall(call, run, token, await approvals.of_call(house.db, call.id))
    return call.attempts > 0 and await mark_unknown(house, claimed, GONE, lapsed=True)
