"""Expires one approval whose time is over: by the sweep, or by a click that came too late."""

from agent import results
from agent.edited import with_edit
from agent.house import House
from store import approvals
from store.records import Approval
from store.transitions import ApprovalStatus


async def expire_one(house: House, approval: Approval) -> bool:
    """Expire an approval that is due; False: it is not, or somebody decided it in time."""
    while not await approvals.expire(
        house.db,
        approval,
        result=(await _expired(house, approval)).to_json(),
        reason="deadline" if approval.status is ApprovalStatus.PENDING else "claim_by",
        people=people_to_tell(house, approval),
    ):
        now = await approvals.read(house.db, approval.id)
        if now is None or now.status is not approval.status or now.revision == approval.revision:
            return False
        approval = now  # an edit that began in time: the model is told of it
    return True


async def _expired(house: House, approval: Approval) -> results.Result:
    tool = house.tools.get(approval.tool)
    if approval.status is ApprovalStatus.PENDING:
        told = results.expired(approval.tool, followup=tool.followup if tool else None)
    else:
        told = results.not_started_in_time(approval.tool, [vote.person for vote in approval.votes])
    return await with_edit(house, approval, told)


def people_to_tell(house: House, approval: Approval) -> list[tuple[str, str]]:
    """Those who hear in a DM that nobody decided: the escalation's people and the requester."""
    team = approval.conversation.team_id
    told = [(team, user) for user in house.policy.users_of(approval.rule.escalate_to)]
    asked_by = approval.requester
    if asked_by.team_id and asked_by.user_id:
        told.append((asked_by.team_id, asked_by.user_id))
    return list(dict.fromkeys(told))
