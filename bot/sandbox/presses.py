"""A person's use of an element, as the request Slack makes of it."""

from collections.abc import Mapping
from typing import Any

from bot.sandbox.delivery import SignedRequest
from bot.sandbox.elements import Placed
from bot.sandbox.payloads import interaction, message_json, message_origin, pressed, view_json
from bot.sandbox.render import elements_shown
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import Message, User, View

Where = Message | View | str
"""A message or view, or the `ts` of a message, or the id of a view."""


def locate(slack: Slack, where: Where) -> Message | View:
    """The message or view itself; LookupError if it does not exist (any more)."""
    if not isinstance(where, str):
        return where
    found = slack.workspace.find_message(where) or slack.workspace.find_view(where)
    if found is None:
        raise LookupError(f"There is no message or open view {where!r}.")
    return found


def find_element(slack: Slack, user: User, shown: Message | View, name: str, index: int | None) -> Placed:
    """The one element this person sees under that label, action_id or block_id.

    With several of that name, `index` says which; LookupError otherwise, naming what is there.
    """
    _require_sight(slack, user, shown)
    there = elements_shown(shown, user.id, slack.unsettled)
    named = [placed for placed in there if placed.is_called(name)]
    if not named:
        raise LookupError(f"{user.real_name} sees no {name!r}, only {[p.label for p in there]}.")
    if len(named) > 1 and index is None:
        raise LookupError(f"{user.real_name} sees {len(named)} elements called {name!r}: give an index.")
    found: Placed = named[index or 0]
    return found


def sign_press(
    slack: Slack,
    user: User,
    shown: Message | View,
    placed: Placed,
    *,
    chosen: Mapping[str, Any] | None = None,
    action_ts: str | None = None,
    window: str = "",
) -> SignedRequest:
    """The signed block_actions request; its trigger_id is issued now, for what may open in that window."""
    view_id = shown.id if isinstance(shown, View) and shown.type == "modal" else None
    trigger_id = slack.triggers.issue(user.id, view_id, window)
    payload = interaction("block_actions", user, slack.workspace, slack.unsettled, trigger_id)
    if isinstance(shown, View):
        payload["container"] = {"type": "view", "view_id": shown.id}
        payload["view"] = view_json(shown, slack.workspace)
        # a view belongs to the acting person's own workspace
        payload["team"] = {"id": user.team_id, "domain": slack.workspace.domain}
    else:
        channel = slack.workspace.channels[shown.channel_id]
        source = _stored(slack, shown)
        response_url = slack.response_urls.issue(user.id, channel.id, source)
        as_json = message_json(shown, slack.workspace, slack.unsettled)
        payload.update(message_origin(shown, channel, response_url, as_json))
    moment = action_ts or slack.workspace.new_ts()
    payload["actions"] = [pressed(placed, moment, chosen)]
    return slack.deliverer.sign_interaction(payload)


def _stored(slack: Slack, shown: Message) -> Message | None:
    # a snapshot is a stale picture; what a response_url changes is the message itself
    return slack.workspace.find_message(shown.ts)


def _require_sight(slack: Slack, user: User, shown: Message | View) -> None:
    if isinstance(shown, View):
        if shown.user != user.id or shown.closed:
            raise LookupError(f"{user.real_name} does not have this view open.")
        return
    channel = slack.workspace.channels[shown.channel_id]
    if user.id not in channel.members or shown.only_for not in {None, user.id}:
        raise LookupError(f"{user.real_name} does not see messages of {channel.id}.")
