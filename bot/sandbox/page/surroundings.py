"""The world around the Slack as HTML: what can be made to happen in it, and what is in it now."""

from collections.abc import Sequence

from bot.sandbox.page.dates import clock, day_name, long_moment
from bot.sandbox.page.html import Child, Html, joined, tag, text
from bot.sandbox.page.sight import Sight
from bot.sandbox.world import Control, Figure, Item, Listing, Moment, Section

TITLE = "The world"
ABOUT = "Not a part of Slack: what happens around it, and what the app keeps."


def opener() -> Html:
    """The button that opens the world where there is no room to show it always."""
    return tag("button", TITLE, id="world-opener", type="button", popovertarget="world", class_="button")


def world(sections: Sequence[Section], sight: Sight) -> Html:
    """The world beside the Slack."""
    inside = tag("div", surroundings(sections, sight), id="surroundings")
    close = tag(
        "button",
        "✕",
        type="button",
        popovertarget="world",
        popovertargetaction="hide",
        class_="plain",
        aria_label="Close the world",
    )
    head = tag("header", tag("h2", TITLE, id="world-title"), close)
    about = tag("p", ABOUT, class_="hint")
    return tag(
        "aside",
        *(head, about, inside),
        id="world",
        popover="auto",  # where there is no room to show it always
        tabindex=-1,
        aria_labelledby="world-title",
    )


def surroundings(sections: Sequence[Section], sight: Sight) -> Html:
    """What may change of the world while one looks."""
    return text(_section(section, sight) for section in sections)


def _section(section: Section, sight: Sight) -> Html:
    about = tag("p", section.about, class_="hint") if section.about else None
    controls = [_control(control, sight) for control in section.controls]
    figures = tag("dl", [_figure(figure) for figure in section.figures]) if section.figures else None
    listings = [_listing(listing, sight) for listing in section.listings]
    return tag("section", tag("h3", section.heading), about, controls, figures, listings)


def _control(control: Control, sight: Sight) -> Html:
    why = f"why-{control.deed}"
    button = tag(
        "button",
        control.label,
        name="deed",
        value=control.deed,
        class_="button" if control.on is None else "button switch",
        aria_describedby=why,
        aria_disabled="true" if control.spent else None,
        aria_pressed=None if control.on is None else str(control.on).lower(),
    )
    return tag(
        "form",
        button,
        tag("p", control.why, id=why, class_="hint"),
        # always there, so that what appears in it is read out
        tag("p", control.said, role="status", class_="came-of-it"),
        method="post",
        action=sight.place.address("/world"),
        class_="control",
    )


def _figure(figure: Figure) -> Html:
    note = tag("small", figure.note) if figure.note else None
    return tag("div", tag("dt", figure.label), tag("dd", tag("b", figure.value), note))


def _listing(listing: Listing, sight: Sight) -> Html:
    shown: Child = tag("p", listing.empty, class_="hint")
    if listing.items:
        shown = tag("ul", [_item(item, sight) for item in listing.items])
    more = tag("p", listing.more, class_="hint") if listing.more else None
    return text(tag("h4", listing.name), shown, more)


def _item(item: Item, sight: Sight) -> Html:
    details = [one if isinstance(one, str) else _moment(one, sight) for one in item.details]
    status = tag("span", item.status, class_=f"status {item.tone}".strip())
    below = tag("small", joined(details, Html(" · "))) if details else None
    return tag("li", tag("b", item.title), " ", status, " ", below)


def _moment(moment: Moment, sight: Sight) -> Html:
    at, today = sight.moment(moment.seconds), sight.now()
    day = "" if at.date() == today.date() else f"{day_name(at, today).lower()}, "
    shown = tag("time", f"{day}{clock(at)}", datetime=at.isoformat(timespec="seconds"), title=long_moment(at))
    return text(f"{moment.word} ", shown)
