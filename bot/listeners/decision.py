"""The Approve button: record the decision, answer Slack, then tell the person."""

from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from agent.decide import Recorded
from bot.after import AfterAnswer
from bot.blocks.card import Action
from bot.bot import Bot
from bot.copies import keep_copy, spend_copy
from bot.deciding import Outcome, decide_as, sentence
from bot.identity import Nobody
from bot.payloads import Press, read_click
from bot.private import Place


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to Approve, in a message, a modal or App Home."""

    async def approve(ack: AsyncAck, body: dict[str, Any], after: AfterAnswer) -> None:
        click = read_click(body)
        outcome = await bot.durably(decide_as(bot, click, "approve"))
        after.do(tell_outcome, bot, click, outcome)
        await ack()

    app.action(Action.APPROVE)(approve)


async def tell_outcome(bot: Bot, click: Press, outcome: Outcome) -> None:
    """Tell the person who clicked what became of it, and see that what they clicked shows it too."""
    await bot.private.tell(Place.of_click(click), await sentence(bot, outcome, click.user_id))
    await keep_copy(bot, click, decided=isinstance(outcome, Recorded))
    if not isinstance(outcome, Nobody):
        await spend_copy(bot, click)
