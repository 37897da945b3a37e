"""A message to the bot in a DM: every one counts."""

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.after import AfterAnswer
from bot.bot import Bot
from bot.conversing import begin_run
from bot.payloads import read_message


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to messages; Slack sends only those of DMs with the bot (message.im)."""

    async def messaged(body: dict[str, Any], after: AfterAnswer) -> None:
        message = read_message(body, bot.team.bot_user_id)
        if message is not None:
            await bot.durably(begin_run(bot, message, after))

    app.event("message")(messaged)
