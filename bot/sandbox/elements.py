"""The interactive elements of blocks: where they stand, what they are called, what they hold."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bot.sandbox.errors import Json
from bot.sandbox.workspace import Workspace

Typed = dict[tuple[str, str], Json]

# the field of state.values that holds an element's value, and the field its initial value comes from
HOLDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("plain_text_input", "number_input", "email_text_input", "url_text_input"),
            ("value", "initial_value"),
        ),
        "rich_text_input": ("rich_text_value", "initial_value"),
        **dict.fromkeys(
            ("static_select", "external_select", "radio_buttons"), ("selected_option", "initial_option")
        ),
        **dict.fromkeys(
            ("multi_static_select", "multi_external_select", "checkboxes"),
            ("selected_options", "initial_options"),
        ),
        "users_select": ("selected_user", "initial_user"),
        "channels_select": ("selected_channel", "initial_channel"),
        "conversations_select": ("selected_conversation", "initial_conversation"),
        "multi_users_select": ("selected_users", "initial_users"),
        "multi_channels_select": ("selected_channels", "initial_channels"),
        "multi_conversations_select": ("selected_conversations", "initial_conversations"),
        "datepicker": ("selected_date", "initial_date"),
        "timepicker": ("selected_time", "initial_time"),
        "datetimepicker": ("selected_date_time", "initial_date_time"),
        "file_input": ("files", "initial_files"),
    }
)


@dataclass(frozen=True)
class Placed:
    """An interactive element and the block it stands in."""

    block: Json
    element: Json

    @property
    def key(self) -> tuple[str, str]:
        return str(self.block["block_id"]), str(self.element["action_id"])

    @property
    def label(self) -> str:
        """What a person would call it: the button's text, the input's label, the placeholder."""
        for owner, name in ((self.element, "text"), (self.block, "label"), (self.element, "placeholder")):
            if isinstance(owner.get(name), dict):
                return str(owner[name]["text"])
        return str(self.element["action_id"])

    def is_called(self, name: str) -> bool:
        return name in {*self.key, self.label}

    def seen_by(self, user_id: str) -> bool:
        """Whether `visible_to_user_ids` lets this person see it."""
        allowed = self.element.get("visible_to_user_ids")
        return not allowed or user_id in allowed


def placed_elements(blocks: list[Json]) -> Iterator[Placed]:
    """Every interactive element in reading order, those in containers, cards and carousels too."""
    for block in blocks:
        elements = [*block.get("elements", []), *block.get("actions", [])]
        elements += [block[name] for name in ("accessory", "element") if isinstance(block.get(name), dict)]
        for element in elements:
            if "action_id" in element:
                yield Placed(block, element)
        inner = [b for b in elements if b.get("type") == "card"]
        yield from placed_elements([*inner, *block.get("child_blocks", [])])


def with_ids(blocks: list[Json], workspace: Workspace) -> list[Json]:
    """A copy in which every block has a block_id and every element an action_id, as Slack stores it."""
    stored = copy.deepcopy(blocks)
    for block in stored:
        _give_ids(block, workspace)
    return stored


def _give_ids(block: Json, workspace: Workspace) -> None:
    # Slack does not keep the block_id of a markdown block
    if not block.get("block_id") or block["type"] == "markdown":
        block["block_id"] = workspace.new_id("b")
    elements = [*block.get("elements", []), *block.get("actions", [])] if block["type"] != "rich_text" else []
    elements += [block[name] for name in ("accessory", "element") if name in block]
    for element in elements:
        kind = element["type"]
        if kind == "card":
            _give_ids(element, workspace)
        elif kind not in {"image", "plain_text", "mrkdwn"}:
            element.setdefault("action_id", workspace.new_id("a"))
    for child in block.get("child_blocks", []):
        _give_ids(child, workspace)


def state_values(blocks: list[Json], typed: Typed) -> Json:
    """`state.values`: what was typed, else what stood there from the beginning."""
    values: Json = {}
    for placed in placed_elements(blocks):
        if placed.element["type"] in HOLDS:
            block_id, action_id = placed.key
            values.setdefault(block_id, {})[action_id] = typed.get(placed.key) or untouched(placed.element)
    return values


def untouched(element: Json) -> Json:
    """The value of an element nobody has touched: its initial one, or nothing."""
    name, initial = HOLDS[element["type"]]
    nothing: Any = (
        [] if name in {"selected_options", "files"} or element["type"].startswith("multi_") else None
    )
    return {"type": element["type"], name: element.get(initial, nothing)}


def kept_typed(old: list[Json], typed: Typed, new: list[Json]) -> Typed:
    """What stays typed when a view is updated: elements whose block_id and action_id did not change."""
    before = {p.key: p.element["type"] for p in placed_elements(old)}
    after = {p.key: p.element["type"] for p in placed_elements(new)}
    kept = {key for key, kind in before.items() if after.get(key) == kind}
    values = {p.key: untouched(p.element) for p in placed_elements(old) if p.element["type"] in HOLDS}
    # an untouched initial value is typed text to Slack: a new initial_value is ignored as well
    return {key: typed.get(key) or values[key] for key in kept if key in values}
