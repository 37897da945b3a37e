"""A user has changed: the directory learns it at once, so that whoever has left decides no more."""

from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.bot import Bot
from bot.identity import read_user
from bot.slack_json import at
from store import directory


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to changes of users."""

    async def changed(event: dict[str, Any]) -> None:
        user = read_user(at(event, "user"), bot.team.team_id)
        await bot.durably(directory.save_user(bot.clicks.db, user))

    app.event("user_change")(changed)
