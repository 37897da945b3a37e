"""The JSON Slack sends to the app, and the objects the Web API returns, shape by shape."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from bot.sandbox.elements import Placed, Typed, state_values
from bot.sandbox.errors import Json
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Channel, Message, User, UserGroup, View, Workspace


def user_json(user: User, *, with_email: bool) -> Json:
    """A user as `users.info` returns it."""
    profile: Json = {
        "real_name": user.real_name,
        "display_name": user.display_name or user.real_name,
        "title": user.title,
        "team": user.team_id,
    }
    if with_email:
        profile["email"] = user.email
    return {
        "id": user.id,
        "team_id": user.team_id,
        "name": user.name,
        "real_name": user.real_name,
        "deleted": user.deleted,
        "locale": user.locale,
        "tz": user.tz,
        "profile": profile,
        "is_admin": user.is_admin,
        "is_owner": False,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
        "is_bot": user.is_bot,
        "is_stranger": user.is_stranger,
        "is_app_user": False,
    }


def channel_json(channel: Channel, bot_user: str) -> Json:
    """A conversation as `conversations.info` returns it."""
    base: Json = {"id": channel.id, "is_archived": channel.is_archived, "is_mpim": False}
    if channel.im_with is not None:
        return {**base, "is_im": True, "user": channel.im_with, "is_org_shared": False}
    return {
        **base,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private,
        "is_im": False,
        "is_private": channel.is_private,
        "is_general": False,
        "is_shared": channel.is_ext_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": False,
        "is_member": bot_user in channel.members,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
    }


def message_json(message: Message, workspace: Workspace, unsettled: Unsettled) -> Json:
    """A message as it stands in answers, in events and in a click's payload."""
    shown: Json = {
        "type": "message",
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "team": workspace.team_id,
    }
    optional = {
        "bot_id": message.bot_id,
        "app_id": message.app_id,
        "thread_ts": message.thread_ts,
        "blocks": message.blocks,
        "attachments": message.attachments,
        "metadata": message.metadata,
    }
    shown.update({name: value for name, value in optional.items() if value})
    if message.edited:
        shown["edited"] = {"user": message.user, "ts": message.ts}
    if unsettled.message_hash:
        shown["hash"] = message_hash(message)
    return shown


def message_hash(message: Message) -> str:
    """The hash of a message's present version, where messages have one."""
    return f"{message.ts}.{message.version}"


def group_json(group: UserGroup, workspace: Workspace, *, with_users: bool) -> Json:
    """A user group as `usergroups.list` returns it."""
    shown: Json = {
        "id": group.id,
        "team_id": workspace.team_id,
        "is_usergroup": True,
        "name": group.name,
        "handle": group.handle,
        "description": "",
        "is_external": False,
        "date_delete": 1 if group.disabled else 0,
        "user_count": len(group.users),
    }
    return {**shown, "users": list(group.users)} if with_users else shown


def view_json(view: View, workspace: Workspace, typed: Typed | None = None) -> Json:
    """A view as it stands in answers and payloads, with `state.values`."""
    empty: Json = {
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "clear_on_close": False,
        "notify_on_close": False,
        "title": {"type": "plain_text", "text": "View Title", "emoji": True},
        "close": None,
        "submit": None,
    }
    return {
        **empty,
        **view.body,
        "id": view.id,
        "team_id": workspace.team_id,
        "state": {"values": state_values(view.blocks, view.typed if typed is None else typed)},
        "hash": view.hash,
        "previous_view_id": view.previous_id,
        "root_view_id": view.root_id,
        "app_id": workspace.app.id,
        "app_installed_team_id": workspace.team_id,
        "bot_id": workspace.app.bot_id,
    }


def interaction(kind: str, user: User, workspace: Workspace, unsettled: Unsettled, trigger_id: str) -> Json:
    """What block_actions and view_submission payloads have in common."""
    home_team = workspace.team_id if unsettled.stranger_team_is_installed_team else user.team_id
    return {
        "type": kind,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
        "api_app_id": workspace.app.id,
        "token": workspace.app.verification_token,
        "trigger_id": trigger_id,
        "team": {"id": home_team, "domain": workspace.domain},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def message_origin(message: Message, channel: Channel, response_url: str, shown: Json) -> Json:
    """The part of a click's payload that says in which message it happened; `shown` is its JSON."""
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": message.only_for is not None,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    origin: Json = {
        "container": container,
        "channel": {"id": channel.id, "name": channel.name},
        "state": {"values": state_values(message.blocks, message.typed)},
        "response_url": response_url,
    }
    # an ephemeral message is not stored, so Slack cannot send it along
    return origin if message.only_for else {**origin, "message": shown}


def pressed(placed: Placed, action_ts: str, chosen: Mapping[str, Any] | None = None) -> Json:
    """One entry of `actions`: a pressed button, or `chosen` in a select."""
    element = placed.element
    block_id, action_id = placed.key
    entry: Json = {
        "action_id": action_id,
        "block_id": block_id,
        "type": element["type"],
        "action_ts": action_ts,
    }
    for name in ("text", "value", "style", "confirm", "placeholder"):
        if name in element:
            entry[name] = element[name]
    return {**entry, **(chosen or {})}


def event_callback(event: Json, workspace: Workspace, *, ext_shared: bool) -> Json:
    """The envelope of the Events API."""
    app = workspace.app
    authorization = {
        "enterprise_id": None,
        "team_id": workspace.team_id,
        "user_id": app.bot_user,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": app.verification_token,
        "team_id": workspace.team_id,
        "api_app_id": app.id,
        "event": event,
        "type": "event_callback",
        # unlike other ids it is never given again: an app remembers it longer than this workspace lives
        "event_id": f"Ev{token_hex(6).upper()}",
        "event_time": int(workspace.clock.now()),
        "authorizations": [authorization],
        "is_ext_shared_channel": ext_shared,
        "event_context": workspace.new_id("4-"),
    }


def command_fields(
    command: str,
    text: str,
    user: User,
    channel: Channel,
    workspace: Workspace,
    *,
    response_url: str,
    trigger_id: str,
) -> Json:
    """The form fields of a slash command."""
    return {
        "token": workspace.app.verification_token,
        "team_id": user.team_id,
        "team_domain": workspace.domain,
        "channel_id": channel.id,
        "channel_name": channel.name,
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": workspace.app.id,
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": trigger_id,
    }
