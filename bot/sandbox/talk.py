"""People's messages and visits, and the events Slack makes of them."""

from typing import Any

from bot.sandbox.delivery import Delivery, Target
from bot.sandbox.errors import Json
from bot.sandbox.payloads import view_json
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import Channel, Message, User


async def say_in_channel(
    slack: Slack, user: User, channel_id: str, text: str, thread_ts: str | None, to: Target
) -> Message:
    """Put the person's message into the channel; a mention of the bot is delivered as app_mention."""
    workspace = slack.workspace
    channel = workspace.channels[channel_id]
    if user.id not in channel.members or channel.is_archived or channel.deleted:
        raise LookupError(f"{user.real_name} cannot write in {channel_id}.")
    message = _add(slack, user, channel, text, thread_ts)
    bot = workspace.app.bot_user
    if f"<@{bot}>" in text and bot in channel.members:
        event = _event("app_mention", message, user, slack)
        await slack.emit(event, "app_mention", channel=channel, to=to)
    return message


async def say_in_dm(slack: Slack, user: User, text: str, thread_ts: str | None, to: Target) -> Message:
    """Put the person's message into the DM with the bot; it is delivered as message.im."""
    app = slack.workspace.app
    if not app.messages_tab_enabled or app.messages_tab_read_only:
        raise LookupError("Sending messages to this app has been turned off.")
    channel = slack.workspace.dm_with(user.id)
    message = _add(slack, user, channel, text, thread_ts)
    event = {**_event("message", message, user, slack), "channel_type": "im"}
    await slack.emit(event, "message.im", channel=channel, to=to)
    return message


async def open_app(slack: Slack, user: User, tab: str, to: Target) -> Delivery | None:
    """The person opens a tab of the app; the event carries the Home view if there is one."""
    workspace = slack.workspace
    if tab == "home" and not workspace.app.home_tab_enabled:
        raise LookupError("This app has no Home tab.")
    event: Json = {
        "type": "app_home_opened",
        "user": user.id,
        "channel": workspace.dm_with(user.id).id,
        "tab": tab,
        "event_ts": workspace.new_ts(),
    }
    home = workspace.homes.get(user.id)
    if tab == "home" and home is not None:
        event["view"] = view_json(home, workspace)
    return await slack.emit(event, "app_home_opened", to=to)


def _add(slack: Slack, user: User, channel: Channel, text: str, thread_ts: str | None) -> Message:
    message = Message(channel.id, slack.workspace.new_ts(), user.id, text, thread_ts=thread_ts)
    message.client_msg_id = slack.workspace.new_id("m")
    channel.history.append(message)
    slack.workspace.changes.announce()
    return message


def _event(kind: str, message: Message, user: User, slack: Slack) -> Json:
    text: list[Any] = [{"type": "rich_text_section", "elements": [{"type": "text", "text": message.text}]}]
    event: Json = {
        "type": kind,
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "client_msg_id": message.client_msg_id,
        "team": user.team_id,
        "channel": message.channel_id,
        "event_ts": message.ts,
        "blocks": [{"type": "rich_text", "block_id": slack.workspace.new_id("b"), "elements": text}],
    }
    if message.thread_ts:
        event["thread_ts"] = message.thread_ts
    if user.team_id != slack.workspace.team_id:
        event |= {"user_team": user.team_id, "source_team": user.team_id}
    return event
