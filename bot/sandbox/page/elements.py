"""The interactive elements of blocks as HTML; every one stands in the form of its message or view."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bot.sandbox.elements import HOLDS, Placed, untouched
from bot.sandbox.errors import Json
from bot.sandbox.page.html import Child, Html, tag, text
from bot.sandbox.page.place import people_of
from bot.sandbox.page.sight import Sight
from bot.sandbox.workspace import Message, View

ELSEWHERE = "This kind of input cannot be filled in here."
TYPES = {
    "plain_text_input": "text",
    "number_input": "text",
    "email_text_input": "email",
    "url_text_input": "url",
    "datepicker": "date",
    "timepicker": "time",
    "datetimepicker": "datetime-local",
}


@dataclass(frozen=True)
class Surface:
    """A message or view on the screen of the person whose eyes these are."""

    sight: Sight
    shown: Message | View

    @property
    def press_address(self) -> str:
        """Where a press of one of its elements is sent."""
        return self.sight.place.address("/press")

    def errors(self) -> dict[str, str]:
        """What is wrong with the inputs, per block_id."""
        return self.shown.errors if isinstance(self.shown, View) else {}

    def state(self, placed: Placed) -> Any:
        """The value an element holds now."""
        state = self.shown.typed.get(placed.key) or untouched(placed.element)
        return state.get(HOLDS[placed.element["type"]][0])


def name_of(placed: Placed, option: str | None = None) -> str:
    """An element (and the option chosen in it) as the value of a form's field."""
    return json.dumps([*placed.key, *([] if option is None else [option])])


def element(placed: Placed, surface: Surface, *, described_by: str = "") -> Html:
    """One interactive element; in an input block it is only filled in, elsewhere it acts at once."""
    kind = placed.element["type"]
    if not placed.seen_by(surface.sight.user.id):
        return Html("")
    if kind in {"button", "icon_button"}:
        return _button(placed, surface)
    if kind == "overflow":
        return _overflow(placed, surface)
    if kind not in HOLDS:
        return tag("span", ELSEWHERE, class_="elsewhere")
    field = _field(placed, surface, described_by)
    if placed.block["type"] == "input":
        return field
    go = tag("button", "Choose", class_="plain choose", **_press(placed, surface))
    return tag("span", field, go, class_="acting")


def _press(placed: Placed, surface: Surface, option: str | None = None) -> dict[str, str | bool]:
    return {
        "type": "submit",
        "name": "element",
        "value": name_of(placed, option),
        "formaction": surface.press_address,
        "formnovalidate": True,
    }


def _button(placed: Placed, surface: Surface) -> Html:
    button = placed.element
    label = surface.sight.reader.plain(button["text"])
    said = str(button["accessibility_label"]) if button.get("accessibility_label") else None
    look = f"button {button.get('style', '')}".strip()
    url = str(button.get("url") or "")
    if url.startswith(("http://", "https://")):
        return tag("a", label, class_=look, href=url, target="_blank", rel="noopener noreferrer")
    return tag("button", label, class_=look, aria_label=said, **_press(placed, surface))


def _overflow(placed: Placed, surface: Surface) -> Html:
    plain = surface.sight.reader.plain
    options = [
        tag("button", plain(option["text"]), class_="plain", **_press(placed, surface, str(option["value"])))
        for option in placed.element["options"]
    ]
    summary = tag("summary", "⋯", aria_label="More actions", class_="button")
    return tag("details", summary, tag("div", options, class_="menu"), class_="overflow")


def _field(placed: Placed, surface: Surface, described_by: str) -> Html:
    kind, value = placed.element["type"], surface.state(placed)
    label = None if placed.block["type"] == "input" else placed.label
    common: dict[str, Any] = {
        "aria_label": label,
        "aria_describedby": described_by or None,
        "aria_invalid": "true" if placed.block["block_id"] in surface.errors() else None,
        "data_acts": placed.block["type"] != "input",
    }
    if kind in {"radio_buttons", "checkboxes"}:
        return _choices(placed, surface, value, common)
    # a message with a select can be on the page twice, in its channel and in its thread
    common["id"] = field_id(placed) if placed.block["type"] == "input" else None
    common["name"] = name_of(placed)
    common["autofocus"] = bool(placed.element.get("focus_on_load"))
    if kind in TYPES:
        return _typed(placed, surface, value, common)
    options = _options(placed.element, surface.sight)
    return _select(placed.element, options, value, common) if options else _not_here(value)


def field_id(placed: Placed) -> str:
    """The id of an element's field in the page."""
    return "f-" + "-".join(placed.key)


def _not_here(value: Any) -> Html:
    return tag("p", ELSEWHERE, f" It holds {value}." if value else "", class_="elsewhere")


def _typed(placed: Placed, surface: Surface, value: Any, common: dict[str, Any]) -> Html:
    made = placed.element
    placeholder = made.get("placeholder", {}).get("text")
    shown = "" if value is None else str(value)
    if made.get("multiline"):
        rows = min(max(shown.count("\n") + 1, len(shown) // 60 + 1, 3), 10)
        # the first line break after the tag is not part of the text
        return tag("textarea", "\n" + shown, rows=rows, placeholder=placeholder, **common)
    if made["type"] == "datetimepicker" and value is not None:
        shown = surface.sight.moment(int(value)).strftime("%Y-%m-%dT%H:%M")
    common["inputmode"] = "decimal" if made["type"] == "number_input" else None
    common["autocomplete"] = "off"
    return tag("input", type=TYPES[made["type"]], value=shown, placeholder=placeholder, **common)


Options = list[tuple[str, list[tuple[str, str]]]]
"""Groups of options: the group's label ("" for none), and each option's value and label."""


def _options(made: Json, sight: Sight) -> Options:
    kind = made["type"].removeprefix("multi_")
    if kind == "users_select":
        return [("", [(user.id, user.real_name) for user in people_of(sight.workspace)])]
    if kind in {"channels_select", "conversations_select"}:
        channels = [c for c in sight.workspace.channels.values() if c.im_with is None and not c.deleted]
        return [("", [(channel.id, f"#{channel.name}") for channel in channels])]
    groups = [(group["label"]["text"], group["options"]) for group in made.get("option_groups", [])]
    groups += [("", made["options"])] if made.get("options") else []
    plain = sight.reader.plain
    return [(label, [(str(o["value"]), plain(o["text"])) for o in options]) for label, options in groups]


def _select(made: Json, options: Options, value: Any, common: dict[str, Any]) -> Html:
    chosen = {_value_of(one) for one in (value if isinstance(value, list) else [value])}
    multiple = made["type"].startswith("multi_")
    inside: list[Child] = [] if multiple else [tag("option", _hint(made), value="")]
    for label, group in options:
        shown = [tag("option", text_, value=key, selected=key in chosen) for key, text_ in group]
        inside.append(tag("optgroup", shown, label=label) if label else shown)
    size = min(max(sum(len(group) for _, group in options), 2), 6) if multiple else None
    return tag("select", inside, multiple=multiple, size=size, **common)


def _hint(made: Json) -> str:
    return str(made.get("placeholder", {}).get("text") or "Choose an option")


def _value_of(one: Any) -> str:
    return str(one["value"]) if isinstance(one, dict) else str(one)


def _choices(placed: Placed, surface: Surface, value: Any, common: dict[str, Any]) -> Html:
    kind = "radio" if placed.element["type"] == "radio_buttons" else "checkbox"
    chosen = {_value_of(one) for one in (value if isinstance(value, list) else [value] if value else [])}
    rows = [_choice(placed, surface, option, kind, chosen) for option in placed.element["options"]]
    legend = tag("legend", placed.label, class_="unseen")
    described = {"aria_describedby": common["aria_describedby"], "data_acts": common["data_acts"]}
    return tag("fieldset", legend, rows, **described)


def _choice(placed: Placed, surface: Surface, option: Json, kind: str, chosen: Iterable[str]) -> Html:
    label = option["text"]
    words = surface.sight.reader.plain(label) if label["type"] == "plain_text" else label["text"]
    value = str(option["value"])
    box = tag("input", type=kind, name=name_of(placed), value=value, checked=value in chosen)
    more = option.get("description", {}).get("text")
    return tag("label", box, text(" ", words), tag("small", more) if more else None)
