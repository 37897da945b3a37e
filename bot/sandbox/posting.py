"""Storing messages: what a call or a response_url puts into a channel."""

import copy
from typing import Any

from bot.sandbox.checks.messages import Content
from bot.sandbox.elements import with_ids
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.render import pings_of
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import Channel, Message

SLACKBOT = "USLACKBOT"


def require_something(content: Content) -> None:
    """Refuse a message without text, blocks and attachments."""
    if not (content.text or content.blocks or content.attachments):
        raise SlackError("no_text")


def post(
    slack: Slack,
    channel: Channel,
    content: Content,
    *,
    thread_ts: str | None = None,
    only_for: str | None = None,
) -> Message:
    """Store the bot's message in the channel, or as an ephemeral one; returns it."""
    workspace = slack.workspace
    message = Message(
        channel.id,
        workspace.new_ts(),
        workspace.app.bot_user,
        "",
        thread_ts=thread_ts,
        bot_id=workspace.app.bot_id,
        app_id=workspace.app.id,
        only_for=only_for,
        metadata=content.metadata or None,
    )
    _fill(slack, message, content)
    if only_for is None:
        channel.history.append(message)
    elif workspace.users[only_for].active:
        workspace.ephemerals.append(message)
    workspace.changes.announce()
    slack.echo(message)
    return message


def replace(slack: Slack, message: Message, content: Content) -> None:
    """Give the message new content (docs.slack.dev/reference/methods/chat.update).

    Blocks are kept only if neither text nor blocks were given; attachments and metadata unless given.
    """
    given = content.text is not None or content.blocks is not None
    _fill(
        slack,
        message,
        Content(
            message.text if content.text is None else content.text,
            content.blocks if given else message.blocks,
            message.attachments if content.attachments is None else content.attachments,
            None,
        ),
    )
    if content.metadata is not None:
        message.metadata = content.metadata or None
    message.edited = message.edited or content.blocks is None
    message.version += 1
    slack.workspace.changes.announce()
    slack.echo(message, "message_changed")


def remove(slack: Slack, message: Message) -> None:
    """Delete the message; an ephemeral one vanishes."""
    message.deleted = True
    slack.workspace.ephemerals[:] = [m for m in slack.workspace.ephemerals if not m.deleted]
    slack.workspace.changes.announce()
    slack.echo(message, "message_deleted")


def note_from_slackbot(slack: Slack, channel_id: str, user_id: str, text: str) -> Message:
    """Slack's own private note to a person, such as a failed command."""
    note = Message(channel_id, slack.workspace.new_ts(), SLACKBOT, text, only_for=user_id)
    slack.workspace.ephemerals.append(note)
    slack.workspace.changes.announce()
    return note


def _fill(slack: Slack, message: Message, content: Content) -> None:
    workspace = slack.workspace
    message.text = content.text or ""
    message.blocks = with_ids(content.blocks or [], workspace)
    message.attachments = [_stored(attachment, slack) for attachment in content.attachments or []]
    shown: list[Any] = [message.text, message.blocks, message.attachments]
    message.pings = pings_of(shown, slack.unsettled)


def _stored(attachment: Json, slack: Slack) -> Json:
    stored = copy.deepcopy(attachment)
    if "blocks" in stored:
        stored["blocks"] = with_ids(stored["blocks"], slack.workspace)
    return stored
