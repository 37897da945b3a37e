"""Whether a person changed what the model had asked for, and how that is told."""

from agent import results
from agent.house import House
from agent.results import Result
from store import approvals
from store.records import Approval, Edited


async def edit_of(house: House, approval: Approval | None) -> Edited | None:
    """What a person made of the input; a revision can also be the same input in another world."""
    if approval is None or approval.author is None or approval.revision == 1:
        return None
    # not what the model wrote: the schema adds defaults and spells some values in its own way
    first = await approvals.read_revision(house.db, approval.id, 1)
    if first is not None and first.input_hash == approval.shown.input_hash:
        return None
    return Edited(approval.original_input, approval.shown.input, approval.author)


async def with_edit(house: House, approval: Approval | None, result: Result) -> Result:
    """The result with the edit that the next request has to keep to, if there was one."""
    edited = await edit_of(house, approval)
    return result if edited is None else results.after_edit(result, edited)
