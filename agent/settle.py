"""What a person says of a call whose outcome nobody knows: it ran, it did not, or try it again."""

from dataclasses import dataclass
from typing import Literal

from agent import results
from agent.decide import RefusalKind, Refused, refuse
from agent.drift import is_as_shown
from agent.edited import with_edit
from agent.house import House
from agent.measure import CannotMeasure, as_shown
from agent.policy import Person, acting_role, may_decide
from store import approvals, calls, runs
from store.records import Actor, Approval, NobodyKnows
from store.transitions import RunStatus

Said = Literal["ran", "did_not_run", "try_again"]

HOUR = 3600.0
REMIND_AFTER = (0.0, 1 * HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR, 72 * HOUR)
"""When those who may settle it are asked and reminded, in seconds after nobody knew."""


@dataclass(frozen=True)
class Settled:
    """What a person said counts; `approval` is as it was before."""

    approval: Approval
    said: Said


async def settle(
    house: House, approval_id: str, revision: int, attempts: int, person: Person, said: Said
) -> Settled | Refused:
    """Record what became of a call as the person saw it, after so many attempts; committed on return.

    Whoever may decide the approval may say it. Only `try_again` leads to an attempt, with the call's own key,
    and only within 24 hours of the first one.
    """
    while True:
        approval = await approvals.read(house.db, approval_id)
        kind = refusal_of(approval, revision, attempts, person)
        if kind is None and approval is not None and said == "try_again":
            kind = await _cannot_try_again(house, approval)
        if approval is None or kind is not None:
            return await refuse(house, approval_id, approval, person, said, kind or "unknown")
        actor = person.actor(acting_role(approval.rule, person))
        if await _record(house, approval, attempts, actor, said):
            return Settled(approval, said)


async def _record(house: House, approval: Approval, attempts: int, actor: Actor, said: Said) -> bool:
    if said == "try_again":
        return await calls.try_again(house.db, approval.call_id, actor, attempts=attempts)
    ran = said == "ran"
    result = results.settled_by_person(approval.tool, actor, ran=ran, executed_input=approval.shown.input)
    return await calls.settle(
        house.db,
        approval.call_id,
        actor,
        ran=ran,
        result=(await with_edit(house, approval, result)).to_json(),
        outcome={
            "kind": "executed" if ran else "failed",
            "text": None,
            "settled_by": actor.to_json(),
            "done": None if ran else [],
        },
        attempts=attempts,
    )


def refusal_of(approval: Approval | None, revision: int, attempts: int, person: Person) -> RefusalKind | None:
    """Why this person cannot say now what became of the call as it was shown; None: they can."""
    if approval is None:
        return "unknown"
    escalated = approval.escalated_at is not None
    barred = may_decide(approval.rule, person, approval.requester, escalated=escalated)
    if barred is not None:
        return barred
    known = NobodyKnows.of(approval)
    if known is None:
        return "settled"
    if (approval.revision, known.attempts) != (revision, attempts):
        return "attempted_again"
    return None


async def _cannot_try_again(house: House, approval: Approval) -> RefusalKind | None:
    known = NobodyKnows.of(approval)
    if known is None or known.retry_until <= approval.now:
        return "too_old"
    if not may_run(house, approval) or not await _reads_the_same(house, approval):
        return "tool_changed"
    return "run_stopped" if await is_stopped(house, approval) else None


def may_run(house: House, approval: Approval) -> bool:
    """Whether its tool is still there, and the same thing. Nothing of the tool's own code is called."""
    tool = house.tools.get(approval.tool)
    if tool is None or house.only_reads(approval.tool):
        return False
    return is_as_shown(tool, approval.effect, approval.shown)


async def _reads_the_same(house: House, approval: Approval) -> bool:
    """Whether the tool reads the input as it was shown; also if that cannot be found out just now."""
    try:
        return await as_shown(house, house.tools[approval.tool], approval.shown) is not None
    except CannotMeasure:
        return True


async def is_stopped(house: House, approval: Approval) -> bool:
    """Whether a person stopped its run, so that nothing of it begins any more."""
    run = await runs.read(house.db, approval.run_id)
    return run is None or run.status is RunStatus.CANCELLED


async def remind(house: House) -> int:
    """Ask those who may settle what nobody knows, and remind them, each time once over all workers."""
    return len(await calls.remind(house.db, REMIND_AFTER))
