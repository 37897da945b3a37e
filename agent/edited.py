"""Whether a person changed what the model had asked for, and how that is told."""

from agent import results
from agent.house import House
from agent.results import Result
from store import approvals
from store.records import Approval, Edited


async def edit_of(house: House, approval: Approval | None) -> Edited | None:
    """What people made of the input, if they changed it."""
    if approval is None or approval.revision == 1:
        return None
    return await approvals.read_edit(house.db, approval.id)


async def with_edit(house: House, approval: Approval | None, result: Result) -> Result:
    """The result with the edit that the next request has to keep to, if there was one."""
    edited = await edit_of(house, approval)
    return result if edited is None else results.after_edit(result, edited)
