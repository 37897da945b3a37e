"""Slack's JSON as frozen typed values; what it does not know it refuses, and no dict of Slack passes it.

The shapes: https://docs.slack.dev/reference/interaction-payloads and https://docs.slack.dev/reference/events
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.settle import Said
from bot.blocks.card import Action
from bot.blocks.modals import Callback
from bot.blocks.target import Target
from bot.blocks.unknown import Settle
from bot.fields import FormValues
from bot.slack_json import Body, UnknownPayload, at, expect, maybe, need, state_values, text, unknown

__all__ = [
    "Click",
    "Command",
    "DirectMessage",
    "HomeOpened",
    "Mention",
    "Press",
    "Settling",
    "Submission",
    "UnknownPayload",
    "read_click",
    "read_command",
    "read_home_opened",
    "read_message",
    "read_press",
    "read_settling",
    "read_submission",
    "state_values",
]

Verb = Literal["approve", "edit", "reject"]

_VERBS: Mapping[str, Verb] = {Action.APPROVE: "approve", Action.EDIT: "edit", Action.REJECT: "reject"}
_SAID_BY: Mapping[str, Said] = {
    Settle.RAN: "ran",
    Settle.DID_NOT_RUN: "did_not_run",
    Settle.TRY_AGAIN: "try_again",
}
_SUBMITTED = frozenset({Callback.EDIT, Callback.CONFIRM, Callback.REJECT})
# subtypes of a message with which a person still says something new; all others are edits, joins, bots …
_SPOKEN = (None, "file_share", "thread_broadcast")


@dataclass(frozen=True)
class Press:
    """A press of one of a card's buttons, in a message, a modal or App Home.

    `user_team_id` is the clicker's own workspace. A click in a view has no channel, message or response_url;
    one in an ephemeral message can be answered by `response_url` only.
    """

    team_id: str
    user_id: str
    user_team_id: str
    user_name: str
    target: Target
    action_id: str
    trigger_id: str
    channel_id: str | None
    message_ts: str | None
    view_id: str | None
    view_hash: str | None
    response_url: str | None
    action_ts: str
    is_ephemeral: bool


@dataclass(frozen=True)
class Click(Press):
    """A press of a button that decides, or opens the window for it."""

    verb: Verb


@dataclass(frozen=True)
class Settling(Press):
    """A press of a button that says what became of a call, after so many attempts."""

    said: Said
    attempts: int


@dataclass(frozen=True)
class Submission:
    """A submitted window; `values` are what its inputs hold, by block id, and `blocks` all its block ids.

    The latter tell what the person had before them; nothing else is decided by them.
    """

    callback_id: Callback
    view_id: str
    view_hash: str
    target: Target
    values: FormValues
    team_id: str
    user_id: str
    user_team_id: str
    user_name: str
    trigger_id: str | None
    blocks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Mention:
    """A message in a channel that mentions the bot; `text` is without the mention and without entities."""

    event_id: str
    team_id: str
    channel_id: str
    user_id: str
    user_team_id: str
    text: str
    ts: str
    thread_ts: str | None
    is_ext_shared: bool


@dataclass(frozen=True)
class DirectMessage(Mention):
    """A message to the bot alone."""


@dataclass(frozen=True)
class Command:
    """A slash command: its first word in lower case ("" without one) and the rest."""

    team_id: str
    user_id: str
    user_name: str
    channel_id: str
    word: str
    argument: str
    trigger_id: str
    response_url: str


@dataclass(frozen=True)
class HomeOpened:
    """Somebody looks at the bot's Home tab."""

    team_id: str
    user_id: str
    channel_id: str


def read_click(body: Body) -> Click:
    """The click of a block_actions payload; UnknownPayload for a button that is not a card's."""
    pressed = _pressed(body)
    verb = _VERBS.get(pressed["action_id"])
    if verb is None:
        raise unknown(body, "a button that is not a card's")
    return Click(**pressed, verb=verb)


def read_settling(body: Body) -> Settling:
    """What the press of a button says became of a call; UnknownPayload for another button."""
    pressed = _pressed(body)
    said, attempts = _SAID_BY.get(pressed["action_id"]), pressed["target"].attempts
    if said is None or attempts is None:
        raise unknown(body, "a button that settles nothing")
    return Settling(**pressed, said=said, attempts=attempts)


def read_press(body: Body) -> Press:
    """The press of any of a card's buttons; UnknownPayload for others."""
    settles = maybe(body, "actions", 0, "action_id") in _SAID_BY
    return read_settling(body) if settles else read_click(body)


def _pressed(body: Body) -> dict[str, Any]:
    """The fields of a Press."""
    expect(body, "block_actions")
    target = Target.read(need(body, "actions", 0, "value"))
    if len(body["actions"]) != 1 or target is None:
        raise unknown(body, "a button that is not a card's")
    return dict(
        **_clicker(body),
        target=target,
        action_id=need(body, "actions", 0, "action_id"),
        trigger_id=need(body, "trigger_id"),
        channel_id=maybe(body, "container", "channel_id") or maybe(body, "channel", "id"),
        message_ts=maybe(body, "container", "message_ts") or maybe(body, "message", "ts"),
        view_id=maybe(body, "view", "id"),
        view_hash=maybe(body, "view", "hash"),
        response_url=maybe(body, "response_url"),
        action_ts=need(body, "actions", 0, "action_ts"),
        is_ephemeral=at(body, "container", "is_ephemeral") is True,
    )


def read_submission(body: Body) -> Submission:
    """The submission of one of our windows."""
    expect(body, "view_submission")
    callback_id = need(body, "view", "callback_id")
    target = Target.read(need(body, "view", "private_metadata"))
    if callback_id not in _SUBMITTED or target is None:
        raise unknown(body, "a window that is not ours")
    return Submission(
        callback_id=Callback(callback_id),
        view_id=need(body, "view", "id"),
        view_hash=maybe(body, "view", "hash") or "",
        target=target,
        values=state_values(body),
        trigger_id=maybe(body, "trigger_id"),
        blocks=_block_ids(at(body, "view", "blocks")),
        **_clicker(body),
    )


def _block_ids(blocks: object) -> frozenset[str]:
    found = blocks if isinstance(blocks, list) else []
    return frozenset(
        str(block["block_id"]) for block in found if isinstance(block, dict) and "block_id" in block
    )


def read_message(body: Body, bot_user_id: str) -> Mention | DirectMessage | None:
    """What a person said to the bot; None for messages of bots, edits, and what was not said to it."""
    expect(body, "event_callback")
    if not _is_said_by_a_person(body, bot_user_id):
        return None
    channel_id = need(body, "event", "channel")
    match at(body, "event", "type"):
        case "app_mention" if not channel_id.startswith("D"):
            made: type[Mention] = Mention
        case "message" if at(body, "event", "channel_type") == "im":
            made = DirectMessage
        case _:
            return None
    team_id = _event_team(body)
    return made(
        event_id=need(body, "event_id"),
        team_id=team_id,
        channel_id=channel_id,
        user_id=need(body, "event", "user"),
        user_team_id=maybe(body, "event", "user_team") or maybe(body, "event", "team") or team_id,
        text=_said(text(body, "event", "text"), bot_user_id),
        ts=need(body, "event", "ts"),
        thread_ts=maybe(body, "event", "thread_ts"),
        is_ext_shared=at(body, "is_ext_shared_channel") is True,
    )


def read_command(body: Body) -> Command:
    """The slash command of a form that Bolt has decoded."""
    if "command" not in body:
        raise unknown(body, "no command")
    word, _, argument = text(body, "text").strip().partition(" ")
    return Command(
        team_id=need(body, "team_id"),
        user_id=need(body, "user_id"),
        user_name=maybe(body, "user_name") or "",
        channel_id=need(body, "channel_id"),
        word=word.lower(),
        argument=argument.strip(),
        trigger_id=need(body, "trigger_id"),
        response_url=need(body, "response_url"),
    )


def read_home_opened(body: Body) -> HomeOpened | None:
    """Who opened the Home tab; None for the bot's other tabs."""
    expect(body, "event_callback")
    if at(body, "event", "type") != "app_home_opened":
        raise unknown(body, "no app_home_opened")
    if at(body, "event", "tab") != "home":
        return None
    return HomeOpened(_event_team(body), need(body, "event", "user"), need(body, "event", "channel"))


def _is_said_by_a_person(body: Body, bot_user_id: str) -> bool:
    event = at(body, "event")
    if not isinstance(event, Mapping):
        raise unknown(body, "no event")
    return (
        event.get("subtype") in _SPOKEN
        and not event.get("bot_id")
        and not event.get("bot_profile")
        and not event.get("hidden")
        and "edited" not in event
        and event.get("user") not in (None, bot_user_id)
    )


def _said(written: str, bot_user_id: str) -> str:
    # https://docs.slack.dev/messaging/formatting-message-text#escaping: exactly three entities
    without = re.sub(rf"[ \t]*<@{re.escape(bot_user_id)}(?:\|[^>]*)?>[ \t]*", " ", written)
    return without.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _event_team(body: Body) -> str:
    # in an org-wide installation the outer team can be null
    return (
        maybe(body, "team_id") or maybe(body, "authorizations", 0, "team_id") or need(body, "event", "team")
    )


def _clicker(body: Body) -> dict[str, Any]:
    user_team_id = maybe(body, "user", "team_id")
    team_id = maybe(body, "team", "id") or user_team_id
    if team_id is None:
        raise unknown(body, "no team")
    return {
        "team_id": team_id,
        "user_id": need(body, "user", "id"),
        "user_team_id": user_team_id or team_id,
        "user_name": maybe(body, "user", "username") or maybe(body, "user", "name") or "",
    }
