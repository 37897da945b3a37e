"""Whether a person changed what the model had asked for, and how it is told where the call did not run."""

from agent import results
from agent.house import House
from agent.results import Result
from store import approvals
from store.records import Approval


async def is_edited(house: House, approval: Approval) -> bool:
    """Whether a person changed the input; a revision can also be the same input in another world."""
    if approval.revision == 1:
        return False
    # not what the model wrote: the schema adds defaults and spells some values in its own way
    first = await approvals.read_revision(house.db, approval.id, 1)
    return first is None or first.input_hash != approval.shown.input_hash


async def with_edit(house: House, approval: Approval | None, result: Result) -> Result:
    """The result of a call that did not run, with the edit that its successor has to keep to, if any."""
    if approval is None or not await is_edited(house, approval):
        return result
    return after_edit(approval, result)


def after_edit(approval: Approval, result: Result) -> Result:
    """The same where it is known that a person changed the input."""
    if approval.author is None:
        return result
    return results.after_edit(
        result,
        asked_input=approval.original_input,
        edited_input=approval.shown.input,
        edited_by=approval.author,
    )
