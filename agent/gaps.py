"""Where the policy leaves too few people: to approve a tool's calls at all, or to decide one approval."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.policy import Policy
from store.records import Approval, NobodyKnows, Run
from store.transitions import ApprovalStatus, RunStatus


@dataclass(frozen=True)
class Gap:
    """Tools whose calls can lack approvers for ever, escalated or not.

    `people` is how many have any of the `roles`, which are all that may decide. Fewer than the `quorum`:
    no call can be approved; enough for it: none that one of them asks for (four eyes).
    """

    tools: tuple[str, ...]
    roles: tuple[str, ...]
    people: int
    quorum: int


def gaps(policy: Policy) -> tuple[Gap, ...]:
    """Give the tools that can ask what nobody can approve, those with the same reason together."""
    found: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for tool in policy.asking:
        rule, roles = policy.rule_for(tool), policy.deciding_roles(tool)
        if rule.quorum > len(policy.users_of(roles)) - rule.four_eyes:
            found.setdefault((roles, rule.quorum), []).append(tool)
    return tuple(
        Gap(tuple(tools), roles, len(policy.users_of(roles)), quorum)
        for (roles, quorum), tools in found.items()
    )


@dataclass(frozen=True)
class Lack:
    """Too few people for one approval: `missing` votes are needed, and only `people` may give one.

    `voted`: how many have given theirs, and may still reject it. `four_eyes`: the requester would be one
    more, but may not. `later`: when the escalation makes up for it; None if it does not.
    """

    people: int
    missing: int
    four_eyes: bool
    voted: int = 0
    later: datetime | None = None


def lack(policy: Policy, approval: Approval) -> Lack | None:
    """Say what is lacking to decide it, or to say what became of it; None: enough people, or no question."""
    if approval.status not in {ApprovalStatus.PENDING, ApprovalStatus.UNKNOWN}:
        return None
    rule = approval.rule
    further = () if approval.escalated_at is None else rule.escalate_to
    now, then = (*rule.approvers, *further), (*rule.approvers, *rule.escalate_to)
    pending = approval.status is ApprovalStatus.PENDING
    missing = max(rule.quorum - len(approval.votes), 1) if pending else 1
    people = len(deciders(policy, approval, now))
    if people >= missing:
        return None
    barred = rule.four_eyes and approval.requester.user_id in policy.users_of(now)
    enough = len(deciders(policy, approval, then)) >= missing
    voted = {vote.person.user_id for vote in approval.votes} & set(policy.users_of(now)) if pending else ()
    return Lack(people, missing, barred, len(voted), _escalates_at(approval) if enough else None)


def deciders(policy: Policy, approval: Approval, roles: Iterable[str]) -> tuple[str, ...]:
    """Give the user ids of those in the roles who may decide it, and have not approved it yet."""
    pending = approval.status is ApprovalStatus.PENDING
    voted = {vote.person.user_id for vote in approval.votes} if pending else set()
    able = policy.deciders(approval.rule, approval.requester, roles)
    return tuple(user for user in able if user not in voted)


def waited_for(run: Run, asked: Iterable[Approval]) -> list[Approval]:
    """Give those of a run's approvals that it goes on after, once people have said something.

    Not what nobody knows for more than a day, for the run goes on without; a stopped run waits for nobody.
    """
    return [] if run.status is RunStatus.CANCELLED else [one for one in asked if _is_waited_for(one)]


def _is_waited_for(approval: Approval) -> bool:
    known = NobodyKnows.of(approval)
    return approval.status is ApprovalStatus.PENDING if known is None else approval.now < known.retry_until


def _escalates_at(approval: Approval) -> datetime | None:
    known, at = NobodyKnows.of(approval), approval.escalate_at
    if known is not None:
        return known.since + timedelta(seconds=approval.rule.escalate_after)
    return at if at is not None and at < approval.expires_at else None
