"""What no other listener took: events are done with, people read that the bot does not know their button."""

import re
from typing import Any

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import replies
from bot.after import AfterAnswer
from bot.bot import Bot
from bot.listeners.mistakes import answer

ANYTHING = re.compile(".*", re.DOTALL)


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to everything; must be registered last."""

    async def seen(ack: AsyncAck) -> None:
        await ack()

    async def unknown(body: dict[str, Any], after: AfterAnswer) -> BoltResponse:
        return answer(bot, body, replies.unreadable(bot.texts), after)

    app.event(ANYTHING)(seen)
    app.view_closed(ANYTHING)(seen)
    app.action(ANYTHING)(unknown)
    app.view(ANYTHING)(unknown)
    app.shortcut(ANYTHING)(unknown)
    app.command(ANYTHING)(unknown)
