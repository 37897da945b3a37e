"""The command /approvals: what waits for me, for all, one approval, stop one, help."""

from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from agent.cancel import NotStopped, cancel_as
from agent.policy import Person, same_person
from bot import replies
from bot.blocks.bounded import Message
from bot.blocks.listing import approvals_list, help_message
from bot.bot import Bot
from bot.identity import Nobody
from bot.payloads import Command, read_command
from store import approvals
from store.records import Approval, ApprovalId

COMMAND = "/approvals"
SHOWN = 10


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to the command."""

    async def answer(ack: AsyncAck, body: dict[str, Any]) -> None:
        message = await bot.durably(answer_command(bot, read_command(body)))
        await ack({"response_type": "ephemeral", **message.arguments()})

    app.command(COMMAND)(answer)


async def answer_command(bot: Bot, command: Command) -> Message:
    """What the command shows to the person who typed it."""
    who = await bot.directory.person(command.team_id, command.user_id)
    if isinstance(who, Nobody):
        return replies.try_again(bot.texts) if who.why == "unreachable" else replies.not_for_you(bot.texts)
    match command.word:
        case "" | "mine":
            return await _mine(bot, who)
        case "all":
            return await _all(bot, who)
        case "show":
            return await _one(bot, who, command.argument)
        case "cancel":
            return await _cancel(bot, who, command.argument)
        case "help":
            return help_message(bot.texts)
        case unknown:
            return help_message(bot.texts, unknown)


async def _mine(bot: Bot, person: Person) -> Message:
    found = await approvals.waiting_for(
        bot.clicks.db,
        team_id=person.team_id,
        user_id=person.user_id,
        roles=person.roles,
        limit=SHOWN,
    )
    total = await approvals.count_waiting_for(
        bot.clicks.db, team_id=person.team_id, user_id=person.user_id, roles=person.roles
    )
    return await _listed(bot, found, total, mine=True)


async def _all(bot: Bot, person: Person) -> Message:
    """Everything that waits, for people whom the policy names; others see what they asked for."""
    requester = None if person.roles else person.actor()
    found = await approvals.waiting_all(bot.clicks.db, requester=requester, limit=SHOWN)
    total = await approvals.count_waiting(bot.clicks.db, requester=requester)
    return await _listed(bot, found, total, mine=False)


async def _listed(bot: Bot, found: list[Approval], total: int, *, mine: bool) -> Message:
    links = await bot.publisher.links([approval.id for approval in found])
    return approvals_list(found, total, bot.texts, mine=mine, links=links)


async def _one(bot: Bot, person: Person, approval_id: str) -> Message:
    approval_id = approval_id.strip()
    if not approval_id:
        return replies.show_which(bot.texts)
    approval = await approvals.read(bot.clicks.db, ApprovalId(approval_id))
    if approval is None or not _may_see(person, approval):
        return replies.no_such_approval(approval_id, bot.texts)
    return await bot.publisher.card_of(approval)


async def _cancel(bot: Bot, person: Person, subject: str) -> Message:
    """Stop the run that is meant; only its requester and its approvers may."""
    subject = subject.strip()
    if not subject:
        return replies.stop_which(bot.texts)
    outcome = await cancel_as(bot.clicks, subject, person)
    if isinstance(outcome, NotStopped):
        return replies.not_stopped(outcome, subject, bot.texts)
    bot.publishing.call()
    return replies.stopped(outcome, bot.texts)


def _may_see(person: Person, approval: Approval) -> bool:
    return bool(person.roles) or same_person(person.actor(), approval.requester)
