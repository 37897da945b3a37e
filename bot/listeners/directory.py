"""A user has changed: the directory learns it at once, so that whoever has left decides no more."""

from collections.abc import Coroutine
from typing import Any

from slack_bolt.async_app import AsyncApp

from bot.bot import Bot
from bot.identity import read_user, team_of
from bot.slack_json import at, moment
from store import directory
from store.engine import Database


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to changes of users."""

    async def changed(event: dict[str, Any]) -> None:
        await bot.durably(_learn(bot.clicks.db, event, bot.team.team_id))

    app.event("user_change")(changed)


def _learn(db: Database, event: dict[str, Any], home_team: str) -> Coroutine[Any, Any, None]:
    """Keep what an event says of somebody of home; raises UnknownPayload for what is about no user.

    An event comes again, minutes later, if its answer got lost, so its own time orders it. One about another
    workspace, whose user may have the id of one of ours, or without a time, only makes us ask.
    """
    user, event_at = read_user(at(event, "user"), home_team), moment(event, "event_ts")
    if event_at is None or team_of(event["user"], home_team) != home_team:
        return directory.doubt_user(db, home_team, user.user_id)
    return directory.hear_of_user(db, user, event_at=event_at)
