"""Asks those who may settle what nobody knows, below the card by which they can."""

from agent.gaps import lack
from agent.house import House
from agent.settle import is_stopped, may_run
from bot.blocks.bounded import Message
from bot.blocks.details import CardContext, Repeat
from bot.blocks.people import deciding_roles
from bot.blocks.unknown import reminder
from bot.texts import Texts
from store import approvals, cards, notices
from store.records import Approval, NobodyKnows, Notice
from store.transitions import ApprovalStatus


async def repeat_of(house: House, approval: Approval) -> Repeat:
    """What another attempt with the same key would be, of a call whose outcome nobody knows."""
    tool = house.tools.get(approval.tool)
    if tool is None or approval.status is not ApprovalStatus.UNKNOWN or not may_run(house, approval):
        return "no"
    if await is_stopped(house, approval):
        return "no"
    return "safe" if tool.repeatable else "risky"


async def reminder_of(house: House, texts: Texts, claimed: Notice) -> tuple[Message, str, str | None] | None:
    """The reminder, its channel and the message below which it stands: the card, or else the conversation's.

    None: it need not be said any more.
    """
    approval = await approvals.read(house.db, claimed.data["approval_ids"][0])
    if approval is None or NobodyKnows.of(approval) is None:
        return None
    if await notices.is_reminded_later(house.db, claimed):
        return None  # after an outage of Slack, say
    asked = house.policy.deciders(approval.rule, approval.requester, deciding_roles(approval))
    lacking, repeat = lack(house.policy, approval), await repeat_of(house, approval)
    context = CardContext(texts, deciders=asked, lack=lacking, repeat=repeat)
    said = reminder(approval, context, again=claimed.data["number"] > 1)
    for copy in await cards.of_approvals(house.db, [approval.id]):
        if copy.user_id is None and copy.channel_id is not None and copy.ts is not None:
            return said, copy.channel_id, copy.ts
    return said, approval.conversation.channel_id, approval.conversation.thread_ts
