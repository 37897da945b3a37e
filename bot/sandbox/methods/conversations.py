"""conversations.*: DMs and channels (docs.slack.dev/reference/methods/conversations.open …)."""

from bot.sandbox.errors import Json, SlackError
from bot.sandbox.methods.call import Call, page
from bot.sandbox.payloads import channel_json
from bot.sandbox.workspace import Channel


def open_(call: Call) -> Json:
    """Open or resume the DM with a person."""
    if call.args.get("channel"):
        channel = call.channel(str(call.args["channel"]))
        if channel.im_with is None:
            raise SlackError("method_not_supported_for_channel_type")
        return _opened(call, channel)
    users = [u for u in str(call.args.get("users") or "").split(",") if u]
    if not users:
        raise SlackError("users_list_not_supplied")
    if len(users) > 1:
        call.need_scope("mpim:write")
        raise SlackError("method_not_supported_for_channel_type")
    call.need_scope("im:write")
    user = call.user(users[0])
    if user.deleted:
        raise SlackError("user_disabled")
    return _opened(call, call.workspace.dm_with(user.id))


def info(call: Call) -> Json:
    """What kind of conversation it is."""
    channel = _readable(call)
    shown = channel_json(channel, call.app.bot_user)
    if call.flag("include_num_members"):
        shown["num_members"] = len(channel.members)
    return {"channel": shown}


def members(call: Call) -> Json:
    """The ids of the members, paged."""
    ids, following = page(call, sorted(_readable(call).members), 100)
    return {"members": ids, "response_metadata": following}


def join(call: Call) -> Json:
    """Join a public channel."""
    channel = call.channel(str(call.need("channel")))
    if channel.im_with is not None or channel.is_private:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise SlackError("is_archived")
    channel.members.add(call.app.bot_user)
    call.workspace.changes.announce()
    return {"channel": channel_json(channel, call.app.bot_user)}


def _readable(call: Call) -> Channel:
    channel = call.channel(str(call.need("channel")))
    if channel.im_with is not None:
        call.need_scope("im:read")
    else:
        call.need_scope("groups:read" if channel.is_private else "channels:read")
    return channel


def _opened(call: Call, channel: Channel) -> Json:
    if call.flag("return_im"):
        return {"channel": channel_json(channel, call.app.bot_user)}
    return {"channel": {"id": channel.id}}
