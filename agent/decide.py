"""Applies one person's decision: who and what is checked, then one conditional statement decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Literal

from agent import results
from agent.edited import with_edit
from agent.expiry import expire_one
from agent.house import House
from agent.policy import Person, acting_role, may_decide, same_person, votes_after
from store import approvals, audit
from store.records import Actor, Approval, Draft, Measured, Verdict
from store.transitions import ApprovalStatus

RefusalKind = Literal[
    "unknown",
    "not_an_approver",
    "four_eyes",
    "stale_revision",
    "decided",
    "already_voted",
    "expired",
    "cancelled",
    "superseded",
    "draft_outdated",
    "edit_counted",
    "draft_unknown",
    "tool_changed",
    "settled",
    "attempted_again",
    "too_old",
    "run_stopped",
]


@dataclass(frozen=True)
class Refused:
    """A click that changed nothing; the approval, where there is one, says who was first and what holds."""

    kind: RefusalKind
    approval: Approval | None


@dataclass(frozen=True)
class Recorded:
    """A decision that counts: `missing` more are needed, 0 means it is decided."""

    approval: Approval
    verdict: Verdict
    missing: int


async def decide(
    house: House,
    approval_id: str,
    revision: int,
    person: Person,
    verdict: Literal["approve", "reject"],
    reason: str | None = None,
    *,
    may_retry: bool = False,
) -> Recorded | Refused:
    """Apply an approve or a reject of the revision that the person saw; committed when this returns.

    `may_retry`: a rejecter lets the model try again along their words, so nothing is vetoed.
    """
    while True:
        approval = await approvals.read(house.db, approval_id)
        kind = refusal_of(approval, revision, person, verdict)
        if approval is None or kind is not None:
            return await refuse(house, approval_id, approval, person, verdict, kind or "unknown")
        votes, missing = votes_after(approval, person, verdict, _now(approval))
        actor = person.actor(acting_role(approval.rule, person))
        if verdict == "reject":
            won = await _reject(house, approval, actor, reason or "", may_retry=may_retry)
        elif missing:
            won = await approvals.vote(house.db, approval, actor, votes, reason)
        else:
            won = await approvals.approve(house.db, approval, actor, votes, reason)
        if won:
            return Recorded(won, verdict, missing)


async def _reject(
    house: House, approval: Approval, actor: Actor, reason: str, *, may_retry: bool
) -> Approval | None:
    tool = house.tools.get(approval.tool)
    result = results.rejected(
        approval.tool, actor, reason, may_retry=may_retry, followup=tool.followup if tool else None
    )
    result = await with_edit(house, approval, result)
    return await approvals.reject(
        house.db, approval, actor, reason, result=result.to_json(), veto=not may_retry
    )


async def look(
    house: House, approval_id: str, revision: int, person: Person, verdict: Verdict
) -> Approval | Refused:
    """The approval, if this person may give this verdict on this revision now; a refusal is on the record."""
    approval = await approvals.read(house.db, approval_id)
    kind = refusal_of(approval, revision, person, verdict)
    if approval is None or kind is not None:
        return await refuse(house, approval_id, approval, person, verdict, kind or "unknown")
    return approval


def refusal_of(
    approval: Approval | None, revision: int, person: Person, verdict: Verdict
) -> RefusalKind | None:
    """Why this person's decision of this revision cannot count now; None: it can."""
    if approval is None:
        return "unknown"
    escalated = approval.escalated_at is not None
    barred = may_decide(approval.rule, person, approval.requester, escalated=escalated)
    if barred is not None:
        return barred
    if approval.status is not ApprovalStatus.PENDING:
        return _CLOSED.get(approval.status, "decided")
    if approval.expires_at <= approval.now:
        return "expired"
    if revision != approval.revision:
        return "stale_revision"
    voted = any(same_person(vote.person, person.actor()) for vote in approval.votes)
    return "already_voted" if voted and verdict == "approve" else None


_CLOSED: Mapping[ApprovalStatus, RefusalKind] = {
    ApprovalStatus.EXPIRED: "expired",
    ApprovalStatus.CANCELLED: "cancelled",
    ApprovalStatus.SUPERSEDED: "superseded",
}


async def refuse(
    house: House,
    approval_id: str,
    approval: Approval | None,
    person: Person,
    verdict: str,
    kind: RefusalKind,
) -> Refused:
    """Record a click of somebody that changed nothing; `verdict` is what they pressed."""
    if kind == "expired" and approval is not None:
        approval, kind = await _after_deadline(house, approval)
    late = kind == "expired" and verdict == "reject"
    await audit.append(
        house.db,
        kind="approval.late_refusal" if late else "click.refused",
        actor=person.actor(),
        **_subject(approval_id, approval),
        data={"verdict": verdict, "why": kind},
    )
    return Refused(kind, approval)


async def _after_deadline(house: House, approval: Approval) -> tuple[Approval, RefusalKind]:
    """What became of an approval past its deadline, and so why nobody can decide it any more.

    While it is pending, a decision that began in time may be under way and count all the same: only a row
    that has come to its end says which it was. So it is brought there, as the sweep would.
    """
    if approval.status is ApprovalStatus.PENDING:
        await expire_one(house, approval)
        ended = await approvals.read(house.db, approval.id)
        assert ended is not None, approval.id
        approval = ended
    return approval, _CLOSED.get(approval.status, "decided")


def _subject(approval_id: str, approval: Approval | None) -> dict[str, str]:
    if approval is None:
        return {"approval_id": approval_id[:100]}
    return {"run_id": approval.run_id, "approval_id": approval.id, "call_id": approval.call_id}


async def refuse_click(house: House, approval_id: str, actor: Actor, why: str) -> None:
    """Record a click that could not become a decision: a stranger's, a bot's, one with a made-up id."""
    approval = await approvals.read(house.db, approval_id)
    await audit.append(
        house.db,
        kind="click.refused",
        actor=actor,
        **_subject(approval_id, approval),
        data={"why": why},
    )


async def confirm_draft(
    house: House, draft_id: str, person: Person, note: str | None = None
) -> Recorded | Refused:
    """Make a previewed edit count: the draft becomes the next revision, with the editor's vote.

    An edit after which all that is shown is the same is an approval. If only the world has changed since the
    card was made, it is a revision all the same: what its author saw is what counts.
    """
    while True:
        draft = await approvals.read_draft(house.db, draft_id)
        if draft is None or not same_person(draft.author, person.actor()):
            return await refuse(house, draft_id, None, person, "edit", "draft_unknown")
        approval = await approvals.read(house.db, draft.approval_id)
        kind = refusal_of(approval, draft.base_revision, person, "edit")
        if approval is not None and kind == "stale_revision":
            kind = await _became_of(house, draft, approval)
        if approval is None or kind is not None:
            return await refuse(house, draft.approval_id, approval, person, "edit", kind or "unknown")
        if _looks_the_same(draft.content, approval.shown):
            return await decide(house, approval.id, approval.revision, person, "approve", note)
        votes, missing = votes_after(approval, person, "edit", _now(approval))
        actor = person.actor(acting_role(approval.rule, person))
        won = await approvals.confirm_draft(
            house.db, approval, draft, actor, votes, note, approved=missing == 0
        )
        if won:
            return Recorded(won, "edit", missing)


async def _became_of(house: House, draft: Draft, approval: Approval) -> RefusalKind:
    """Why a draft does not count now, of an approval that has another revision than it was made from."""
    now = await approvals.read_draft(house.db, draft.id)  # it may have been confirmed meanwhile
    if now is None or now.confirmed_as is None:
        return "draft_outdated"
    return "edit_counted" if now.confirmed_as == approval.revision else "stale_revision"


async def read_draft(house: House, draft_id: str) -> Draft | None:
    """The draft, or None."""
    return await approvals.read_draft(house.db, draft_id)


def _looks_the_same(one: Measured, other: Measured) -> bool:
    return (one.input_hash, one.preview_hash, one.schema_hash) == (
        other.input_hash,
        other.preview_hash,
        other.schema_hash,
    )


def _now(approval: Approval) -> str:
    return approval.now.astimezone(UTC).isoformat()
