"""From who clicked to what became of it, and to the sentence that says so: shared by all ways to decide."""

from typing import Literal, Protocol, TypeVar

from agent.decide import Recorded, Refused, confirm_draft, decide, look, refuse_click
from agent.edit import open_edit
from agent.settle import Settled, settle
from bot import replies
from bot.blocks.bounded import Message
from bot.blocks.target import Target
from bot.bot import Bot
from bot.identity import Nobody
from bot.payloads import Settling
from store.records import Actor, Approval

Outcome = Recorded | Settled | Refused | Nobody
Counted = TypeVar("Counted", bound=Recorded | Settled | Refused)


class Clicker(Protocol):
    """Who did it, as Slack's payload says."""

    @property
    def user_id(self) -> str: ...
    @property
    def user_team_id(self) -> str: ...
    @property
    def user_name(self) -> str: ...
    @property
    def target(self) -> Target: ...


async def decide_as(
    bot: Bot, clicker: Clicker, verdict: Literal["approve", "reject"], reason: str | None = None
) -> Recorded | Refused | Nobody:
    """Record the clicker's decision of the revision they saw, or why it changes nothing."""
    person = await bot.directory.person(clicker.user_team_id, clicker.user_id)
    if isinstance(person, Nobody):
        return await refuse_nobody(bot, clicker, person)
    target = clicker.target
    return count(bot, await decide(bot.clicks, target.approval_id, target.revision, person, verdict, reason))


async def confirm_as(
    bot: Bot, clicker: Clicker, draft_id: str, note: str | None
) -> Recorded | Refused | Nobody:
    """Record the clicker's confirmation of a previewed edit, or why it changes nothing."""
    person = await bot.directory.person(clicker.user_team_id, clicker.user_id)
    if isinstance(person, Nobody):
        return await refuse_nobody(bot, clicker, person)
    return count(bot, await confirm_draft(bot.clicks, draft_id, person, note))


async def settle_as(bot: Bot, click: Settling) -> Outcome:
    """Record what the clicker says became of a call, or why it changes nothing."""
    person = await bot.directory.person(click.user_team_id, click.user_id)
    if isinstance(person, Nobody):
        return await refuse_nobody(bot, click, person)
    target = click.target
    outcome = await settle(
        bot.clicks, target.approval_id, target.revision, click.attempts, person, click.said
    )
    return count(bot, outcome)


async def look_as(
    bot: Bot, clicker: Clicker, verdict: Literal["edit", "reject"]
) -> Approval | Refused | Nobody:
    """The approval, if the clicker may edit or reject this revision now; nothing is decided."""
    person = await bot.directory.person(clicker.user_team_id, clicker.user_id)
    if isinstance(person, Nobody):
        return await refuse_nobody(bot, clicker, person)
    target = clicker.target
    if verdict == "edit":
        return await open_edit(bot.house, target.approval_id, target.revision, person)
    return await look(bot.house, target.approval_id, target.revision, person, verdict)


async def refuse_nobody(bot: Bot, clicker: Clicker, nobody: Nobody) -> Nobody:
    """Put the click of somebody who decides nothing on the record."""
    bot.metrics.refused(nobody.why)
    if nobody.why != "unreachable":
        name = nobody.name or clicker.user_name
        actor = Actor("person", clicker.user_team_id, clicker.user_id, name)
        await refuse_click(bot.clicks, clicker.target.approval_id, actor, nobody.why)
    return nobody


def count(bot: Bot, outcome: Counted) -> Counted:
    """Count the outcome; a recorded one calls for the cards to be made to match."""
    if isinstance(outcome, Recorded | Settled):
        bot.metrics.decision(outcome.verdict if isinstance(outcome, Recorded) else outcome.said)
        bot.publishing.call()
    else:
        bot.metrics.refused(outcome.kind)
    return outcome


async def sentence(bot: Bot, outcome: Outcome, user_id: str) -> Message:
    """What the person reads; may ask the database for the place of the current card."""
    if isinstance(outcome, Nobody):
        unreachable = outcome.why == "unreachable"
        return replies.try_again(bot.texts) if unreachable else replies.stranger(bot.texts)
    if isinstance(outcome, Recorded):
        return replies.recorded(outcome, bot.texts)
    if isinstance(outcome, Settled):
        return replies.settled(outcome, bot.texts)
    approval = outcome.approval
    current = (approval.replaced_by or approval.id) if approval is not None else None
    links = await bot.publisher.links([current]) if current is not None else {}
    return replies.refused(
        outcome, bot.texts, user_id=user_id, current_link=links.get(current) if current is not None else None
    )
