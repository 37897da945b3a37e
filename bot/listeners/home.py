"""App Home: the list of what waits for the person who opened it."""

from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError

from bot.after import AfterAnswer
from bot.blocks.home import home_view
from bot.bot import Bot
from bot.identity import Nobody
from bot.payloads import HomeOpened, read_home_opened
from bot.slack import error_code
from store import approvals

log = structlog.get_logger(__name__)

SHOWN = 20


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to the opening of the Home tab."""

    async def opened(body: dict[str, Any], after: AfterAnswer) -> None:
        home = read_home_opened(body)
        if home is not None:
            after.do(publish_home, bot, home)

    app.event("app_home_opened")(opened)


async def publish_home(bot: Bot, home: HomeOpened) -> None:
    """Show the person what waits for them; nothing to somebody who decides nothing."""
    who = await bot.directory.person(home.team_id, home.user_id)
    roles = frozenset() if isinstance(who, Nobody) else who.roles
    db, team_id, user_id = bot.house.db, home.team_id, home.user_id
    found = await approvals.waiting_for(db, team_id=team_id, user_id=user_id, roles=roles, limit=SHOWN)
    total = await approvals.count_waiting_for(db, team_id=team_id, user_id=user_id, roles=roles)
    links = await bot.publisher.links([approval.id for approval in found])
    view = home_view(found, total, bot.texts, links=links)
    try:
        await bot.slack.patient.views_publish(user_id=home.user_id, view=view)
    except SlackApiError as error:
        log.warning("App Home could not be published", user=home.user_id, error=error_code(error))
