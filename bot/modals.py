"""Opening a modal within the life of its trigger, and changing it afterwards."""

from collections.abc import Awaitable, Callable

import structlog
from slack_sdk.errors import SlackApiError

from bot import replies
from bot.after import AfterAnswer
from bot.blocks.bounded import View
from bot.blocks.modals import problem_view
from bot.bot import Bot
from bot.payloads import Click
from bot.private import Place
from bot.slack import UNREACHABLE, error_code, told
from store.errors import StoreError

log = structlog.get_logger(__name__)


async def open_then_fill(
    bot: Bot, click: Click, skeleton: View, fill: Callable[[Bot, Click], Awaitable[View]], after: AfterAnswer
) -> bool:
    """Open the skeleton at once (a trigger lives 3 s and works once) and fill it after the answer.

    When the trigger is dead, the person is told to press again, and it is False; one that was used has opened
    a window for this same click, delivered before.
    """
    try:
        opened = await bot.slack.quick.views_open(trigger_id=click.trigger_id, view=skeleton)
        view_id = told(opened, "view", "id")
    except (SlackApiError, *UNREACHABLE) as error:
        reason = error_code(error) if isinstance(error, SlackApiError) else type(error).__name__
        log.info("a modal could not be opened", error=reason)
        if reason == "exchanged_trigger_id":
            return True
        after.do(bot.private.tell, Place.of_click(click), replies.trigger_dead(bot.texts))
        return False
    after.do(fill_view, bot, view_id, click, fill)
    return True


async def fill_view(
    bot: Bot, view_id: str, click: Click, fill: Callable[[Bot, Click], Awaitable[View]]
) -> None:
    """Replace the skeleton by what `fill` makes, or by the problem that kept it from being made."""
    try:
        view = await fill(bot, click)
    except StoreError as error:
        log.warning("a modal could not be filled", error=str(error))
        view = problem_view(click.verb, replies.store_error(error, bot.texts), bot.texts)
    await change_view(bot, view_id, view)


async def change_view(bot: Bot, view_id: str, view: View) -> None:
    """Show another view in an open modal; a modal that was closed meanwhile stays closed."""
    try:
        await bot.slack.patient.views_update(view_id=view_id, view=view)
    except SlackApiError as error:
        log.info("a modal could not be changed", error=error_code(error))
