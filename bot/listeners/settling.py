"""It ran, It did not run, Try again: record what a person says, answer Slack, then tell the person."""

from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from bot.after import AfterAnswer
from bot.blocks.unknown import Settle
from bot.bot import Bot
from bot.deciding import settle_as
from bot.listeners.decision import tell_outcome
from bot.payloads import read_settling


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to the buttons of a card whose outcome nobody knows."""

    async def settle(ack: AsyncAck, body: dict[str, Any], after: AfterAnswer) -> None:
        click = read_settling(body)
        outcome = await bot.durably(settle_as(bot, click))
        after.do(tell_outcome, bot, click, outcome)
        await ack()

    for action in Settle:
        app.action(action)(settle)
