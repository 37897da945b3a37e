"""Previews an edit: the new input is checked and measured like a call of the model's, and kept as a draft."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.decide import Refused, look
from agent.house import House
from agent.measure import CannotMeasure, validated, weigh
from agent.policy import Person, acting_role
from agent.schema import Fault, InvalidInput
from agent.verdict import Verdict
from agent.why import Code, Why, because
from store import approvals, runs
from store.records import Approval, Draft


@dataclass(frozen=True)
class BadInput:
    """What is wrong with an edited input, field by field."""

    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class CannotPreview:
    """The edited input is well formed but cannot be asked for."""

    why: Why


async def open_edit(house: House, approval_id: str, revision: int, person: Person) -> Approval | Refused:
    """The approval, if this person may edit this revision now; a refusal is on the record."""
    approval = await look(house, approval_id, revision, person, "edit")
    if isinstance(approval, Refused):
        return approval
    if approval.tool not in house.tools:
        return Refused("tool_changed", approval)
    return approval


async def check_edit(
    house: House, approval: Approval, raw: Mapping[str, Any]
) -> dict[str, Any] | BadInput | CannotPreview:
    """The edited input as the tool's schema reads it, or what is wrong with it: fast, for the ack."""
    tool = house.tools.get(approval.tool)
    if tool is None:
        return CannotPreview(because(Code.TOOL_GONE, tool=approval.tool))
    try:
        _, kept = await validated(house, tool, dict(raw))
    except InvalidInput as error:
        return BadInput(error.faults)
    except CannotMeasure as error:
        return CannotPreview(error.why)
    return dict(kept)


async def draft_edit(
    house: House, approval_id: str, revision: int, person: Person, input: Mapping[str, Any]
) -> Draft | Refused | CannotPreview | BadInput:
    """Measure the edited input and keep it as a draft, with all the editor must see before it counts."""
    approval = await open_edit(house, approval_id, revision, person)
    if isinstance(approval, Refused):
        return approval
    run = await runs.read(house.db, approval.run_id)
    assert run is not None
    replaced = await approvals.read(house.db, approval.replaces) if approval.replaces else None
    try:
        weighed = await weigh(
            house, house.tools[approval.tool], dict(input), run, to_replace=lambda *_: replaced
        )
    except InvalidInput as error:
        return BadInput(error.faults)
    except CannotMeasure as error:
        return CannotPreview(error.why)
    if weighed.verdict is Verdict.FORBID:
        return CannotPreview(weighed.why or because(Code.POLICY_FORBIDS))
    author = person.actor(acting_role(approval.rule, person))
    return await approvals.save_draft(house.db, approval, author, weighed.measured)
