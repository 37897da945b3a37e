"""Slack user → Person, from the directory table; whoever is not surely a colleague is Nobody."""

import asyncio
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.policy import Person, Policy
from bot.slack import NotSlack, error_code
from bot.slack_json import Body, UnknownPayload, at, maybe, need
from bot.tasks import Tasks
from store import directory
from store.engine import Database
from store.records import DirectoryUser

log = structlog.get_logger(__name__)

FRESH_SECONDS = 300.0
REFRESH_SECONDS = 1.0
LONGEST_NAME = 80
UNKNOWN_TO_SLACK = frozenset({"user_not_found", "user_not_visible", "users_not_found"})

# bot, guest, stranger (of another workspace), deleted and unknown are final; unreachable means press again
Why = Literal["bot", "guest", "stranger", "deleted", "unknown", "unreachable"]
WHAT_NOBODY_IS: Mapping[Why, str] = {
    "bot": "is a bot",
    "deleted": "was deactivated",
    "guest": "is a guest",
    "stranger": "belongs to another workspace",
    "unknown": "is not known to Slack",
}


@dataclass(frozen=True)
class Nobody:
    """A Slack user who decides nothing, and why."""

    team_id: str
    user_id: str
    why: Why
    name: str = ""


class Directory:
    """Who a Slack user is now: the table while it is young, Slack when it is not."""

    def __init__(
        self, *, db: Database, slack: AsyncWebClient, policy: Policy, team_id: str, tasks: Tasks
    ) -> None:
        self._db = db
        self._slack = slack
        self._policy = policy
        self._team_id = team_id
        self._tasks = tasks
        self._asking: dict[str, asyncio.Task[DirectoryUser | None]] = {}

    async def person(self, team_id: str, user_id: str) -> Person | Nobody:
        """The person with the roles they have now, or Nobody.

        A row younger than 5 min counts as it is, one that only an event told of if it bars them; any other is
        refreshed within 1 s, or Nobody is "unreachable": the answer of Slack is then stored when it comes, so
        pressing again can work.
        """
        if team_id != self._team_id:
            return Nobody(team_id, user_id, "stranger")
        user = await directory.read_user(self._db, team_id, user_id)
        if user is None or not _counts(user):
            try:
                user = await self._refreshed(user_id)
            except (TimeoutError, SlackApiError, aiohttp.ClientError) as error:
                log.warning("the directory could not be refreshed", user=user_id, error=_reason(error))
                return Nobody(team_id, user_id, "unreachable")
        if user is None:
            return Nobody(team_id, user_id, "unknown")
        if not _counts(user):  # an event came while Slack was asked
            return Nobody(team_id, user_id, "unreachable", user.name)
        return self._judged(user)

    def _judged(self, user: DirectoryUser) -> Person | Nobody:
        why = why_nobody(user)
        if why is not None:
            return Nobody(user.team_id, user.user_id, why, user.name)
        roles = self._policy.roles_of(user.team_id, user.user_id)
        return Person(user.team_id, user.user_id, user.name, roles)

    async def _refreshed(self, user_id: str) -> DirectoryUser | None:
        """Ask Slack once for all who wait for the same person; raises TimeoutError after 1 s."""
        asking = self._asking.get(user_id)
        if asking is None:
            asking = self._tasks.start(self._ask(user_id), name="directory refresh")
            self._asking[user_id] = asking
            asking.add_done_callback(lambda _: self._asking.pop(user_id, None))
        return await asyncio.wait_for(asyncio.shield(asking), REFRESH_SECONDS)

    async def _ask(self, user_id: str) -> DirectoryUser | None:
        asked_at = await self._db.now()
        user = await ask_for(self._slack, user_id, self._team_id)
        if user is None:
            return None
        await directory.save_user(self._db, user, asked_at=asked_at)
        return await directory.read_user(self._db, self._team_id, user_id)  # an event may have come meanwhile


async def ask_for(slack: AsyncWebClient, user_id: str, home_team: str) -> DirectoryUser | None:
    """Ask Slack who somebody is, None if it does not know; raises what the client raises."""
    try:
        response = await slack.users_info(user=user_id)
    except SlackApiError as error:
        if error_code(error) in UNKNOWN_TO_SLACK:
            return None
        raise
    try:
        return read_user(at(response.data, "user"), home_team)
    except UnknownPayload as error:
        raise NotSlack(response.api_url) from error


def read_user(user: Body, home_team: str) -> DirectoryUser:
    """A directory row from the `user` of users.info (docs.slack.dev/reference/objects/user-object).

    Raises UnknownPayload for what is no user.
    """
    user_id = need(user, "id")
    team_id = team_of(user, home_team)
    places = (("profile", "display_name"), ("real_name",), ("profile", "real_name"), ("name",))
    names = (maybe(user, *place) for place in places)
    return DirectoryUser(
        team_id=home_team,
        user_id=user_id,
        name=clean_name(next(filter(None, names), "")) or user_id,
        is_bot=bool(user.get("is_bot") or user.get("is_workflow_bot") or user_id == "USLACKBOT"),
        deleted=bool(user.get("deleted")),
        restricted=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
        stranger=bool(user.get("is_stranger")) or team_id != home_team,
        age=0.0,
    )


def team_of(user: Body, home_team: str) -> str:
    """The workspace of a `user` of Slack: a row of the directory is about one of home."""
    return maybe(user, "team_id") or maybe(user, "profile", "team") or home_team


def clean_name(name: str) -> str:
    """A display name without control, format or direction marks, in one line, cut to 80 characters."""
    visible = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name)
    return " ".join(visible.split())[:LONGEST_NAME]


def why_nobody(user: DirectoryUser) -> Why | None:
    """Why this user decides nothing, None if they may decide."""
    if user.stranger:
        return "stranger"
    if user.deleted:
        return "deleted"
    if user.is_bot:
        return "bot"
    return "guest" if user.restricted else None


def _counts(user: DirectoryUser) -> bool:
    bars = why_nobody(user) is not None  # an event that comes late, or again, may bar somebody, never let in
    return user.age <= FRESH_SECONDS and (bars or not user.unconfirmed)


def _reason(error: BaseException) -> str:
    return error_code(error) if isinstance(error, SlackApiError) else type(error).__name__
