"""Sentences for one person: where they clicked if possible, else in the channel, else as a DM."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError

from bot.blocks.bounded import Message
from bot.payloads import Press
from bot.slack import UNREACHABLE, Slack, error_code, told
from store import clicks
from store.engine import Database
from store.errors import StoreError

log = structlog.get_logger(__name__)

ANSWER_SECONDS = 2.0  # of the database: then the person is told all the same
REMEMBERED = 10_000  # clicks in this process: most copies come to the process that had the first


@dataclass(frozen=True)
class Place:
    """Where one person can be told something; `key` is the same for every delivery of the same click."""

    user_id: str
    channel_id: str | None = None
    thread_ts: str | None = None
    response_url: str | None = None
    key: tuple[str, ...] | None = None

    @classmethod
    def of_click(cls, click: Press) -> "Place":
        """Where the person clicked."""
        where = click.message_ts or click.view_id or ""
        key = (click.user_team_id, click.user_id, where, click.action_id, click.action_ts)
        return cls(click.user_id, click.channel_id, None, click.response_url, key)


class PrivateAnswers:
    """Tells people what became of what they did, once for a click, whichever process it comes to."""

    def __init__(self, slack: Slack, db: Database) -> None:
        self._slack = slack
        self._db = db.within(ANSWER_SECONDS)
        self._told: OrderedDict[tuple[str, ...], None] = OrderedDict()

    async def tell(self, place: Place, message: Message) -> None:
        """Tell the person; when no way works, the log says so."""
        if place.key is not None and not await self._first(place.key):
            return
        for way in (self._by_response_url, self._in_channel, self._as_dm):
            try:
                if await way(place, message):
                    return
            except SlackApiError as error:
                log.info("a private answer went another way", way=way.__name__, error=error_code(error))
            except UNREACHABLE as error:
                log.info("a private answer went another way", way=way.__name__, error=type(error).__name__)
        log.warning("a private answer could not be given", user=place.user_id)

    async def replace(self, place: Place, message: Message) -> None:
        """Put something else in the place of the ephemeral message that was pressed, or take it away."""
        if place.key is None or place.response_url is None or not await self._first((*place.key, "replaced")):
            return
        shown = {"replace_original": True, **message.arguments()}
        for body in (shown, {"delete_original": True}):
            try:
                if await self._respond(place.response_url, body):
                    return
            except UNREACHABLE as error:
                log.info("an ephemeral message was not replaced", error=type(error).__name__)

    async def _first(self, key: tuple[str, ...]) -> bool:
        if key in self._told:
            return False
        self._told[key] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        try:
            return await clicks.first(self._db, key)
        except StoreError as error:  # told twice is better than not at all
            log.info("a private answer may be given twice", error=str(error))
            return True

    async def _by_response_url(self, place: Place, message: Message) -> bool:
        if place.response_url is None:
            return False
        body = {"response_type": "ephemeral", "replace_original": False, **message.arguments()}
        return await self._respond(place.response_url, body)

    async def _respond(self, url: str, body: dict[str, Any]) -> bool:
        async with self._slack.session.post(url, json=body, proxy=self._slack.once.proxy) as response:
            return response.status == 200

    async def _in_channel(self, place: Place, message: Message) -> bool:
        if place.channel_id is None or place.channel_id.startswith("D"):
            return False
        await self._slack.once.chat_postEphemeral(
            channel=place.channel_id, user=place.user_id, thread_ts=place.thread_ts, **message.arguments()
        )
        return True

    async def _as_dm(self, place: Place, message: Message) -> bool:
        opened = await self._slack.once.conversations_open(users=place.user_id)
        await self._slack.once.chat_postMessage(channel=told(opened, "channel", "id"), **message.arguments())
        return True
