"""What a listener could not do: people get HTTP 200 and a private sentence, events 500, to come again."""

from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp

from bot import replies
from bot.after import AfterAnswer
from bot.blocks.bounded import Message
from bot.blocks.modals import Callback, problem_view
from bot.bot import Bot
from bot.payloads import UnknownPayload, Verb, read_press
from bot.private import Place
from bot.slack_json import at
from store.errors import StoreError, Unconfirmed

log = structlog.get_logger(__name__)


def register(app: AsyncApp, bot: Bot) -> None:
    """Handle the errors of all listeners."""

    async def failed(error: Exception, body: dict[str, Any], after: AfterAnswer) -> BoltResponse:
        expected = isinstance(error, StoreError | UnknownPayload)
        log.error("a request was not carried out", error=str(error), exc_info=None if expected else error)
        if body.get("type") == "event_callback":
            # Slack delivers it again; what it does not know to be an event, never
            return BoltResponse(status=200 if isinstance(error, UnknownPayload) else 500, body="")
        return answer(bot, body, sentence_for(bot, error), after)

    app.error(failed)


def sentence_for(bot: Bot, error: Exception) -> Message:
    """What the person reads about an error; one that nobody foresaw leaves open what was recorded."""
    if isinstance(error, UnknownPayload):
        return replies.unreadable(bot.texts)
    known = error if isinstance(error, StoreError) else Unconfirmed(str(error))
    return replies.store_error(known, bot.texts)


def answer(bot: Bot, body: dict[str, Any], said: Message, after: AfterAnswer) -> BoltResponse:
    """An answer that Slack accepts for any interaction, with the sentence in it or sent after it."""
    kind = body.get("type")
    if kind == "view_submission":
        rejects = at(body, "view", "callback_id") == Callback.REJECT
        verb: Verb = "reject" if rejects else "edit"
        return BoltResponse(
            status=200, body={"response_action": "update", "view": problem_view(verb, said, bot.texts)}
        )
    if "command" in body:
        return BoltResponse(status=200, body={"response_type": "ephemeral", **said.arguments()})
    place = place_of(body)
    if kind == "block_actions" and place is not None:
        after.do(bot.private.tell, place, said)
    return BoltResponse(status=200, body="")


def place_of(body: dict[str, Any]) -> Place | None:
    """Where the person can be told; None when the payload names nobody."""
    try:
        return Place.of_click(read_press(body))
    except UnknownPayload as unknown:
        if unknown.user_id is None:
            return None
        return Place(unknown.user_id, None, None, unknown.response_url)
