"""Block elements: buttons, selects and inputs."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.checker import ANY_TEXT, PLAIN, Checker
from bot.sandbox.checks.objects import check_confirm, check_options, check_options_or_groups
from bot.sandbox.errors import Json

COMMON = frozenset({"type", "action_id", "confirm", "focus_on_load", "placeholder"})
SELECTS = frozenset(
    f"{many}{kind}_select"
    for many in ("", "multi_")
    for kind in ("static", "external", "users", "conversations", "channels")
)
PICKERS = frozenset({"datepicker", "timepicker", "checkboxes", "radio_buttons"})
TYPED = frozenset(
    {
        "plain_text_input",
        "number_input",
        "email_text_input",
        "url_text_input",
        "rich_text_input",
        "file_input",
    }
)
IN_ACTIONS = PICKERS | {"button", "overflow", "workflow_button", "datetimepicker"} | SELECTS
IN_SECTION = PICKERS | {"button", "overflow", "workflow_button", "image"} | SELECTS
IN_INPUT = PICKERS | TYPED | {"datetimepicker"} | SELECTS
IN_CONTEXT_ACTIONS = frozenset({"feedback_buttons", "icon_button"})
# api.slack.com/reference/block-kit/block-elements; everything else passes on every surface
ONLY_ON: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "number_input": frozenset({"modal"}),
        "email_text_input": frozenset({"modal"}),
        "url_text_input": frozenset({"modal"}),
        "file_input": frozenset({"modal"}),
        "rich_text_input": frozenset({"modal", "home"}),
    }
)


def check_element(check: Checker, element: Any, at: str, allowed: frozenset[str]) -> None:
    """An element of one of the `allowed` types, complete and within its limits."""
    kind = element.get("type") if isinstance(element, dict) else None
    if kind not in allowed or kind not in ELEMENTS:
        check.fail(at, f"unsupported type: {kind}")
        return
    if check.surface not in ONLY_ON.get(kind, frozenset({check.surface})):
        check.fail(at, f"unsupported type on this surface: {kind}")
    ELEMENTS[kind](check, element, at)
    if kind == "image":
        return
    check.string(element, "action_id", at, limits.ACTION_ID)
    check.text(element, "placeholder", at, limits.PLACEHOLDER, kinds=PLAIN)
    check.boolean(element, "focus_on_load", at)
    check_confirm(check, element, at)


def check_button(check: Checker, element: Json, at: str) -> None:
    """A button; without `action_id` Slack makes one up."""
    check.known(
        element,
        {
            *COMMON - {"placeholder", "focus_on_load"},
            *("text", "url", "value", "style", "accessibility_label"),
            *("visible_to_user_ids", "agent_prompt", "agent_prompt_display"),
        },
        at,
    )
    check.text(element, "text", at, limits.BUTTON_TEXT, kinds=PLAIN, needed=True)
    check.string(element, "value", at, limits.BUTTON_VALUE)
    check.string(element, "url", at, limits.BUTTON_URL)
    check.choice(element, "style", at, {"primary", "danger"})
    check.string(element, "accessibility_label", at, limits.ACCESSIBILITY_LABEL)
    check.string(element, "agent_prompt", at, limits.AGENT_PROMPT)
    _check_visible_to(check, element, at)


def _check_visible_to(check: Checker, element: Json, at: str) -> None:
    most = check.unsettled.visible_to_user_ids_max or 1_000_000
    for pointer, user in check.items(element, "visible_to_user_ids", at, most, least=0, needed=False):
        if not isinstance(user, str):
            check.fail(pointer, "must be a user id")


def check_image(check: Checker, element: Json, at: str) -> None:
    """An image element: `alt_text` and one of `image_url`, `slack_file`."""
    check.known(element, {"type", "image_url", "alt_text", "slack_file"}, at)
    check.string(element, "alt_text", at, limits.ALT_TEXT, needed=True)
    check.string(element, "image_url", at, limits.IMAGE_URL, needed="slack_file" not in element)


def _check_static(check: Checker, element: Json, at: str) -> None:
    initial = (
        {"initial_option"}
        if element["type"] == "static_select"
        else {"initial_options", "max_selected_items"}
    )
    check.known(element, {*COMMON, "options", "option_groups", *initial}, at)
    check_options_or_groups(check, element, at)


def _check_dynamic(check: Checker, element: Json, at: str) -> None:
    extra = {
        *("initial_user", "initial_users", "initial_channel", "initial_channels", "initial_conversation"),
        *("initial_conversations", "initial_option", "initial_options", "max_selected_items", "filter"),
        *("response_url_enabled", "default_to_current_conversation", "min_query_length"),
    }
    check.known(element, COMMON | extra, at)


def _check_boxes(check: Checker, element: Json, at: str) -> None:
    initial = "initial_options" if element["type"] == "checkboxes" else "initial_option"
    check.known(element, {*COMMON - {"placeholder"}, "options", initial}, at)
    check_options(check, element, at, kinds=ANY_TEXT)


def _check_overflow(check: Checker, element: Json, at: str) -> None:
    check.known(element, {"type", "action_id", "confirm", "options"}, at)
    check_options(check, element, at, limits.OVERFLOW_OPTIONS)


def _check_moment(check: Checker, element: Json, at: str) -> None:
    kind = element["type"]
    names = {"datepicker": {"initial_date"}, "timepicker": {"initial_time", "timezone"}}
    check.known(element, COMMON | names.get(kind, {"initial_date_time"}), at)
    shapes = {"initial_date": r"\d{4}-\d\d-\d\d", "initial_time": r"\d\d:\d\d"}
    for name, shape in shapes.items():
        if name in element and not re.fullmatch(shape, str(element[name])):
            check.fail(f"{at}/{name}", f"must match {shape}")
    if not isinstance(element.get("initial_date_time", 0), int):
        check.fail(f"{at}/initial_date_time", "must be an integer")


def _check_plain_input(check: Checker, element: Json, at: str) -> None:
    extra = {"initial_value", "multiline", "min_length", "max_length", "dispatch_action_config"}
    check.known(element, COMMON | extra, at)
    check.string(element, "initial_value", at, limits.INPUT_TEXT, least=0)
    check.boolean(element, "multiline", at)
    for name, least in (("min_length", 0), ("max_length", 1)):
        value = element.get(name, least)
        if not isinstance(value, int) or not least <= value <= limits.INPUT_TEXT:
            check.fail(f"{at}/{name}", f"must be an integer from {least} to {limits.INPUT_TEXT}")


def _check_number(check: Checker, element: Json, at: str) -> None:
    extra = {"is_decimal_allowed", "initial_value", "min_value", "max_value", "dispatch_action_config"}
    check.known(element, COMMON | extra, at)
    check.boolean(element, "is_decimal_allowed", at, needed=True)
    shape = r"-?\d+(\.\d+)?" if element.get("is_decimal_allowed") is True else r"-?\d+"
    for name in ("initial_value", "min_value", "max_value"):
        value = check.string(element, name, at, limits.INPUT_TEXT)
        if value and not re.fullmatch(shape, value):
            check.fail(f"{at}/{name}", "must be a number written as a string")


def _check_other_input(check: Checker, element: Json, at: str) -> None:
    extra = {"initial_value", "dispatch_action_config", "filetypes", "max_files", "min_lines", "max_lines"}
    check.known(element, COMMON | extra, at)
    if element["type"] != "rich_text_input":
        check.string(element, "initial_value", at, limits.INPUT_TEXT, least=0)


def _check_workflow(check: Checker, element: Json, at: str) -> None:
    check.known(element, {"type", "action_id", "text", "workflow", "style", "accessibility_label"}, at)
    check.text(element, "text", at, limits.BUTTON_TEXT, kinds=PLAIN, needed=True)
    check.string(element, "accessibility_label", at, limits.ACCESSIBILITY_LABEL)


def _check_icon(check: Checker, element: Json, at: str) -> None:
    names = {
        "type",
        "action_id",
        "confirm",
        "icon",
        "text",
        "accessibility_label",
        "value",
        "visible_to_user_ids",
    }
    check.known(element, names, at)
    check.text(element, "text", at, limits.BUTTON_TEXT, kinds=PLAIN, needed=True)
    check.string(element, "value", at, limits.BUTTON_VALUE)
    check.string(element, "accessibility_label", at, limits.ACCESSIBILITY_LABEL)
    _check_visible_to(check, element, at)


def _check_feedback(check: Checker, element: Json, at: str) -> None:
    check.known(element, {"type", "action_id", "positive_button", "negative_button"}, at)
    for name in ("positive_button", "negative_button"):
        button, pointer = element.get(name), f"{at}/{name}"
        if not isinstance(button, dict):
            check.fail(pointer, "must be an object")
            continue
        check.known(button, {"text", "value", "accessibility_label"}, pointer)
        check.text(button, "text", pointer, limits.BUTTON_TEXT, kinds=PLAIN, needed=True)
        check.string(button, "value", pointer, limits.BUTTON_VALUE, needed=True)


Check = Callable[[Checker, Json, str], None]
ELEMENTS: Mapping[str, Check] = MappingProxyType(
    {
        "button": check_button,
        "image": check_image,
        "static_select": _check_static,
        "multi_static_select": _check_static,
        **{kind: _check_dynamic for kind in SELECTS if "static" not in kind},
        "checkboxes": _check_boxes,
        "radio_buttons": _check_boxes,
        "overflow": _check_overflow,
        "datepicker": _check_moment,
        "timepicker": _check_moment,
        "datetimepicker": _check_moment,
        "plain_text_input": _check_plain_input,
        "number_input": _check_number,
        **{kind: _check_other_input for kind in TYPED - {"plain_text_input", "number_input"}},
        "workflow_button": _check_workflow,
        "icon_button": _check_icon,
        "feedback_buttons": _check_feedback,
    }
)
