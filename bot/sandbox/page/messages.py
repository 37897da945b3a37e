"""Messages and threads as HTML."""

from itertools import groupby

from bot.sandbox.page.blocks import blocks
from bot.sandbox.page.dates import clock, day_name, long_moment
from bot.sandbox.page.elements import Surface
from bot.sandbox.page.html import Child, Html, tag, text
from bot.sandbox.page.mrkdwn import mrkdwn
from bot.sandbox.page.place import Place
from bot.sandbox.page.sight import Sight
from bot.sandbox.workspace import Channel, Message


def stream(sight: Sight, ready: str = "", about: str = "") -> Html:
    """The channel's messages outside threads, day by day, and what only this person sees.

    Where nobody has written, it says what all this is `about`, and points out the words that stand `ready`
    to be sent.
    """
    channel = sight.place.channel
    shown = [] if channel is None else seen_in(channel, sight)
    if not shown:
        begin = " The first words stand ready below: press Send." if ready else ""
        told = tag("p", about) if about else None
        return tag("div", told, tag("p", f"Nobody has written here yet.{begin}"), class_="empty")
    today = sight.now()
    days = groupby(shown, key=lambda message: sight.moment(float(message.ts)).date())
    parts: list[Child] = []
    for _, messages in days:
        of_day = list(messages)
        day = day_name(sight.moment(float(of_day[0].ts)), today)
        parts.append(tag("h2", tag("span", day), class_="day"))
        parts.append(_list([message_item(message, sight, "m") for message in of_day]))
    return text(parts)


def thread(sight: Sight) -> Html:
    """The open thread: its first message, then the replies."""
    place = sight.place
    if place.channel is None or place.thread is None:
        return Html("")
    shown = seen_in(place.channel, sight, place.thread)
    return _list([message_item(message, sight, "t") for message in shown])


def _list(items: list[Html]) -> Html:
    return tag("ol", items, class_="messages")


def seen_in(channel: Channel, sight: Sight, root: str | None = None) -> list[Message]:
    """What this person sees of a channel outside its threads, or of the thread that begins at `root`."""
    workspace, user_id = sight.workspace, sight.user.id
    private = [m for m in workspace.ephemerals if (m.channel_id, m.only_for) == (channel.id, user_id)]
    every = sorted([*channel.messages, *private], key=lambda message: message.ts)
    if root is not None:
        return [m for m in every if root in {m.ts, m.thread_ts}]
    return [m for m in every if m.thread_ts in {None, m.ts}]


def message_item(message: Message, sight: Sight, prefix: str) -> Html:
    """One message with its author and time; `prefix` keeps its id apart in stream and thread."""
    at = sight.moment(float(message.ts))
    author = sight.name(message.user)
    is_app = message.bot_id is not None or message.user not in sight.workspace.users
    permanent = f"{sight.place.address()}#{dom_id(message, prefix)}"
    when = tag("time", clock(at), datetime=at.isoformat(timespec="seconds"), title=long_moment(at))
    head = [
        tag("b", author),
        tag("span", "App", class_="tag") if is_app else None,
        tag("a", when, href=permanent, class_="when"),
    ]
    private = message.only_for is not None
    return tag(
        "li",
        avatar(message.user, sight),
        tag(
            "div",
            tag("p", head, class_="by"),
            _private(message, sight),
            _body(message, sight),
            None if private or prefix == "t" else _replies(message, sight),
            class_="said",
        ),
        id=dom_id(message, prefix),
        class_="message private" if private else "message",
        tabindex=-1,  # for the focus of whoever pressed a button in it that has gone
    )


def dom_id(message: Message, prefix: str) -> str:
    """The id of a message's element."""
    return f"{prefix}-{message.ts.replace('.', '-')}"


def avatar(user_id: str, sight: Sight) -> Html:
    """A square with the first letter of a name, in a colour of its own."""
    users = list(sight.workspace.users)
    hue = users.index(user_id) % 6 if user_id in users else 0
    return tag("span", sight.name(user_id)[:1].upper(), class_=f"avatar hue-{hue}", aria_hidden="true")


def _private(message: Message, sight: Sight) -> Html | None:
    if message.only_for is None:
        return None
    dismiss = tag("button", "Dismiss", class_="plain", name="where", value=message.ts)
    form = tag("form", dismiss, method="post", action=sight.place.address("/dismiss"))
    return tag("div", tag("span", "Only visible to you"), form, class_="only-you")


def _body(message: Message, sight: Sight) -> Html:
    surface = Surface(sight, message)
    if message.blocks:
        shown = blocks(message.blocks, surface)
    else:
        shown = tag("div", mrkdwn(message.text, sight), _edited(message), class_="block text")
    attached = [_attachment(one, surface) for one in message.attachments]
    where = tag("input", type="hidden", name="where", value=message.ts)
    address = surface.press_address
    return tag("form", where, shown, attached, method="post", action=address, class_="blocks")


def _edited(message: Message) -> Html | None:
    return tag("small", " (edited)") if message.edited else None


def _attachment(attachment: dict[str, object], surface: Surface) -> Html:
    inner = attachment.get("blocks")
    if isinstance(inner, list):
        return tag("div", blocks(inner, surface), class_="attachment")
    words = (str(attachment.get(name) or "") for name in ("pretext", "title", "text"))
    said = "\n".join(word for word in words if word) or str(attachment.get("fallback") or "")
    return tag("div", mrkdwn(said, surface.sight), class_="attachment")


def _replies(message: Message, sight: Sight) -> Html:
    place: Place = sight.place
    channel = sight.workspace.channels[message.channel_id]
    replies = channel.thread(message.ts)[1:]
    there = place.at(place.inside, message.ts)
    current = "true" if place.thread == message.ts else None
    if not replies:
        link = tag("a", "Reply in thread", href=there.address(), aria_current=current)
        return tag("p", link, class_="replies none")
    count = f"{len(replies)} {'reply' if len(replies) == 1 else 'replies'}"
    faces = [avatar(user, sight) for user in dict.fromkeys(reply.user for reply in replies)]
    last = sight.moment(float(replies[-1].ts))
    link = tag("a", faces[:3], tag("b", count), href=there.address(), aria_current=current)
    return tag("p", link, tag("small", f"Last at {clock(last)}"), class_="replies")
