"""Where a person writes: the form, and what Slack's client makes of the typed text."""

import re

from bot.sandbox.page.html import Html, tag
from bot.sandbox.page.place import DM, Place
from bot.sandbox.page.sight import Sight
from bot.sandbox.workspace import Workspace


def composer(sight: Sight, ready: str, *, in_thread: bool, invitation: str = "") -> Html:
    """The form to write at this place; what is `ready` stands in it, addressed to the app.

    An `invitation` stands in the field as long as it is empty.
    """
    place = sight.place
    app = sight.workspace.app.name
    where = "this thread" if in_thread else app if place.inside == DM else f"#{place_name(place)}"
    field = f"write-{'thread' if in_thread else 'here'}"
    label = f"Message {where}"
    # of a channel Slack sends an app only what mentions it, in threads too
    unheard = f"Mention @{app} to be heard by it." if in_thread and place.inside != DM else None
    mention = tag(
        "button",
        f"Ask @{app}",
        type="button",
        class_="plain mention-it",
        data_insert=f"@{app} ",
        data_into=field,
    )
    return tag(
        "form",
        tag("input", type="hidden", name="reply", value="yes") if in_thread else None,
        tag("label", label, for_=field, class_="unseen"),
        tag(
            "textarea",
            "\n" + (f"@{app} {ready}" if ready else ""),
            id=field,
            name="text",
            rows=1,
            placeholder=invitation or label,
            required=True,
            aria_describedby=unheard and f"{field}-heard",
        ),
        tag("p", unheard, class_="hint", id=f"{field}-heard") if unheard else None,
        tag(
            "div",
            None if place.inside == DM else mention,
            tag("button", "Send", class_="button primary"),
            class_="row",
        ),
        class_="composer",
        method="post",
        action=place.address("/say"),
        id=f"composer-{'thread' if in_thread else 'here'}",
    )


def place_name(place: Place) -> str:
    """What the place is called, without a sign before it."""
    if place.inside == "home":
        return "Home"
    if place.inside == DM or place.channel is None:
        return place.workspace.app.name
    return place.channel.name


def as_sent(typed: str, workspace: Workspace) -> str:
    """The text as the client sends it: escaped, with ids for the names of people and channels."""
    text = typed.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    names = {f"@{workspace.app.name}".casefold(): f"<@{workspace.app.bot_user}>"}
    for user in workspace.users.values():
        for name in (user.name, user.display_name, user.real_name):
            if name:
                names.setdefault(f"@{name}".casefold(), f"<@{user.id}>")
    for channel in workspace.channels.values():
        if channel.im_with is None:
            names.setdefault(f"#{channel.name}".casefold(), f"<#{channel.id}>")
    longest_first = sorted(names, key=len, reverse=True)
    known = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    return known.sub(lambda match: names[match[0].casefold()], text)
