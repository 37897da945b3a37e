"""A person stops a run: who may is checked, then one statement cancels what waits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent.approvers import same_person
from agent.house import House
from agent.policy import Person
from agent.start import WrongStatus, cancel_run
from store import approvals, audit, calls, runs
from store.errors import after_commit
from store.records import Actor, Approval, Run
from store.transitions import OPEN_APPROVALS, ApprovalStatus, CallStatus


@dataclass(frozen=True)
class Stopped:
    """The run is stopped; `left` are its approvals that are not over: executing, or of unknown outcome.

    `under_way` says whether a call is running, one that asked nobody, too: it is let finish.
    """

    run: Run
    left: tuple[Approval, ...]
    under_way: bool = False


@dataclass(frozen=True)
class NotStopped:
    """Nothing was stopped; `roles` are those that may stop it.

    `ended` is the status of what had ended, with who ended it if a person did, and when.
    """

    why: Literal["no_such", "not_yours", "ended"]
    run: Run | None = None
    ended: str | None = None
    roles: tuple[str, ...] = ()
    by: Actor | None = None
    at: datetime | None = None


async def cancel_as(house: House, subject: str, person: Person) -> Stopped | NotStopped:
    """Stop the run with this id, or the run of the approval with this id; committed on return.

    The run's requester may, and whoever has a role that may decide one of its approvals; of a run that has
    asked for none, whoever may decide anything.
    """
    approval = await approvals.read(house.db, subject)
    run = await runs.read(house.db, approval.run_id if approval else subject)
    if run is None:
        return NotStopped("no_such")
    asked = await approvals.of_run(house.db, run.id)
    roles = _roles_that_may_stop(house, asked)
    role = next((role for role in roles if role in person.roles), None)
    if role is None and not same_person(person.actor(), run.requester):
        await _record_refusal(house, run, person)
        return NotStopped("not_yours", run, roles=roles)
    if approval is not None and approval.status not in OPEN_APPROVALS:
        by = await _who_ended(house, approval)
        return NotStopped("ended", run, approval.status.value, by=by, at=approval.ended_at)
    try:
        stopped = await cancel_run(house, run.id, person.actor(role))
    except WrongStatus as error:
        ended = error.run
        return NotStopped("ended", ended, ended.status.value, by=error.stopped_by, at=ended.ended_at)
    with after_commit():
        left = [one for one in await approvals.of_run(house.db, run.id) if one.status in OPEN_APPROVALS]
        turn = await calls.of_turn(house.db, run.id, run.turn)
    under_way = any(call.status is CallStatus.EXECUTING for call in turn)
    return Stopped(stopped or run, tuple(left), under_way)


async def _who_ended(house: House, approval: Approval) -> Actor | None:
    match approval.status:
        case ApprovalStatus.REJECTED:
            return approval.decided_by
        case ApprovalStatus.CANCELLED:
            return await runs.stopped_by(house.db, approval.run_id)
        case _:
            return None


def _roles_that_may_stop(house: House, asked: list[Approval]) -> tuple[str, ...]:
    rules = [approval.rule for approval in asked] or list(house.policy.rules.values())
    return tuple(dict.fromkeys(role for rule in rules for role in (*rule.approvers, *rule.escalate_to)))


async def _record_refusal(house: House, run: Run, person: Person) -> None:
    await audit.append(
        house.db,
        kind="click.refused",
        actor=person.actor(),
        run_id=run.id,
        data={"verdict": "cancel", "why": "not_yours"},
    )
