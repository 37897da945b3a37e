"""A mention of the bot in a channel: a person asks for something."""

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.after import AfterAnswer
from bot.bot import Bot
from bot.conversing import begin_run
from bot.payloads import read_message


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to mentions."""

    async def mentioned(body: dict[str, Any], after: AfterAnswer) -> None:
        message = read_message(body, bot.team.bot_user_id)
        if message is not None:
            await bot.durably(begin_run(bot, message, after))

    app.event("app_mention")(mentioned)
