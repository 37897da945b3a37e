"""chat.*: posting, updating and deleting messages (docs.slack.dev/reference/methods/chat.postMessage …)."""

from bot.sandbox import limits
from bot.sandbox.checks.messages import check_content
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.methods.call import Call
from bot.sandbox.payloads import message_hash, message_json
from bot.sandbox.posting import post, remove, replace, require_something
from bot.sandbox.workspace import Channel, Message


def post_message(call: Call) -> Json:
    """Post to a channel, or to a person's DM by user id."""
    channel = _postable(call, str(call.need("channel")))
    content = check_content(_with_names_linked(call), call.slack.unsettled)
    require_something(content)
    known = _by_client_msg_id(call, channel)
    message = known or post(call.slack, channel, content, thread_ts=_thread(call, channel))
    message.client_msg_id = call.args.get("client_msg_id")
    shown = message_json(message, call.workspace, call.slack.unsettled)
    return {"channel": channel.id, "ts": message.ts, "message": shown}


def post_ephemeral(call: Call) -> Json:
    """Show a message to one member of a channel; nothing is stored."""
    channel = _postable(call, str(call.need("channel")))
    user_id = str(call.need("user"))
    if user_id not in channel.members or user_id not in call.workspace.users:
        raise SlackError("user_not_in_channel")
    content = check_content({**call.args, "metadata": None}, call.slack.unsettled)
    require_something(content)
    message = post(call.slack, channel, content, thread_ts=_thread(call, channel), only_for=user_id)
    return {"message_ts": message.ts}


def update(call: Call) -> Json:
    """Change a message of the bot's own."""
    channel = _known_channel(call)
    if channel.is_archived or channel.deleted:
        raise SlackError("is_inactive")
    message = _found(channel, str(call.need("ts")))
    if message.bot_id != call.app.bot_id:
        raise SlackError("cant_update_message")
    window = call.workspace.edit_window
    if window is not None and call.workspace.clock.now() - float(message.ts) > window:
        raise SlackError("edit_window_closed")
    if call.slack.unsettled.message_hash and call.args.get("hash") not in {None, message_hash(message)}:
        raise SlackError("hash_conflict")
    content = check_content(call.args, call.slack.unsettled, text_limit=limits.UPDATE_TEXT)
    if content.text is None and content.blocks is None and content.attachments is None:
        raise SlackError("no_text")
    replace(call.slack, message, content)
    shown = message_json(message, call.workspace, call.slack.unsettled)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": shown}


def delete(call: Call) -> Json:
    """Delete a message of the bot's own."""
    channel = call.channel(str(call.need("channel")))
    message = _found(channel, str(call.need("ts")))
    if message.bot_id != call.app.bot_id:
        raise SlackError("cant_delete_message")
    remove(call.slack, message)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(call: Call) -> Json:
    """The address of a message."""
    channel = call.channel(str(call.need("channel")))
    message = _found(channel, str(call.need("message_ts")))
    address = (
        f"https://{call.workspace.domain}.slack.com/archives/{channel.id}/p{message.ts.replace('.', '')}"
    )
    if message.thread_ts:
        address += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": address}


def _postable(call: Call, reference: str) -> Channel:
    channel = _addressed(call, reference)
    if channel.im_with is not None:
        if not call.app.messages_tab_enabled:
            raise SlackError("messages_tab_disabled")
        return channel
    if channel.is_archived:
        raise SlackError("is_archived")
    if call.app.bot_user not in channel.members:
        open_to_all = "chat:write.public" in call.app.scopes and not channel.is_private
        if not open_to_all:
            raise SlackError("not_in_channel")
    if channel.posting_refused is not None:
        raise SlackError(channel.posting_refused)
    return channel


def _with_names_linked(call: Call) -> Json:
    """With `link_names`, a plain `@handle` of a user group becomes a mention."""
    text = call.args.get("text")
    if not isinstance(text, str) or not call.flag("link_names"):
        return call.args
    for group in call.workspace.groups.values():
        text = text.replace(f"@{group.handle}", f"<!subteam^{group.id}>")
    return {**call.args, "text": text}


def _addressed(call: Call, reference: str) -> Channel:
    if reference in call.workspace.users:
        return call.workspace.dm_with(reference)
    for channel in call.workspace.channels.values():
        if channel.im_with is None and channel.name == reference.removeprefix("#"):
            return call.channel(channel.id)
    return call.channel(reference)


def _known_channel(call: Call) -> Channel:
    channel = call.workspace.channels.get(str(call.need("channel")))
    if channel is not None and channel.deleted:
        return channel
    return call.channel(str(call.need("channel")))


def _found(channel: Channel, ts: str) -> Message:
    message = channel.find(ts)
    if message is None:
        raise SlackError("message_not_found")
    return message


def _thread(call: Call, channel: Channel) -> str | None:
    thread_ts = call.args.get("thread_ts")
    if thread_ts is None:
        return None
    # Slack threads on the parent even when a reply's ts is given
    parent = channel.find(str(thread_ts))
    return parent.thread_ts or parent.ts if parent else str(thread_ts)


def _by_client_msg_id(call: Call, channel: Channel) -> Message | None:
    wanted = call.args.get("client_msg_id")
    if wanted is None or not call.slack.unsettled.client_msg_id_dedupes:
        return None
    for other in call.workspace.channels.values():
        for message in other.history:
            if message.client_msg_id == wanted and other is not channel:
                raise SlackError("duplicate_channel_not_found")
            if message.client_msg_id == wanted and message.deleted:
                raise SlackError("duplicate_message_not_found")
            if message.client_msg_id == wanted:
                return message
    return None
