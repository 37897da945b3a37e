"""Composition objects: options, option groups and confirmation dialogs."""

from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.checker import PLAIN, Checker
from bot.sandbox.errors import Json


def check_confirm(check: Checker, element: Json, at: str) -> None:
    """The `confirm` dialog of an element, if it has one."""
    dialog = element.get("confirm")
    if dialog is None:
        return
    at = f"{at}/confirm"
    if not isinstance(dialog, dict):
        check.fail(at, "must be an object")
        return
    check.known(dialog, {"title", "text", "confirm", "deny", "style"}, at)
    check.text(dialog, "title", at, limits.CONFIRM_TITLE, kinds=PLAIN, needed=True)
    check.text(dialog, "text", at, limits.CONFIRM_TEXT, needed=True)
    check.text(dialog, "confirm", at, limits.CONFIRM_BUTTON, kinds=PLAIN, needed=True)
    check.text(dialog, "deny", at, limits.CONFIRM_BUTTON, kinds=PLAIN, needed=True)
    check.choice(dialog, "style", at, {"primary", "danger"})


def check_option(check: Checker, option: Any, at: str, kinds: frozenset[str] = PLAIN) -> None:
    """One option of a select, a checkbox group, radio buttons or an overflow menu."""
    if not isinstance(option, dict):
        check.fail(at, "must be an object")
        return
    check.known(option, {"text", "value", "description", "url"}, at)
    check.text(option, "text", at, limits.OPTION_TEXT, kinds=kinds, needed=True)
    check.string(option, "value", at, limits.OPTION_VALUE, needed=True)
    check.text(option, "description", at, limits.OPTION_DESCRIPTION, kinds=kinds)
    check.string(option, "url", at, limits.BUTTON_URL)


def check_options(
    check: Checker, element: Json, at: str, most: int = limits.OPTIONS, kinds: frozenset[str] = PLAIN
) -> None:
    """The `options` of an element; an initial option must be one of them."""
    for pointer, option in check.items(element, "options", at, most):
        check_option(check, option, pointer, kinds)
    _check_initial(check, element, at, element.get("options"))


def check_options_or_groups(check: Checker, element: Json, at: str) -> None:
    """Either `options` or `option_groups`, as in a static select."""
    if "option_groups" not in element:
        check_options(check, element, at)
        return
    if "options" in element:
        check.fail(at, "only one of options and option_groups is allowed")
    every: list[Any] = []
    for pointer, group in check.items(element, "option_groups", at, limits.OPTION_GROUPS):
        if not isinstance(group, dict):
            check.fail(pointer, "must be an object")
            continue
        check.known(group, {"label", "options"}, pointer)
        check.text(group, "label", pointer, limits.OPTION_TEXT, kinds=PLAIN, needed=True)
        for inner, option in check.items(group, "options", pointer, limits.OPTIONS):
            check_option(check, option, inner)
            every.append(option)
    _check_initial(check, element, at, every)


def _check_initial(check: Checker, element: Json, at: str, options: Any) -> None:
    values = [o.get("value") for o in options or [] if isinstance(o, dict)]
    initial = element.get("initial_options", [])
    if not isinstance(initial, list):
        check.fail(f"{at}/initial_options", "must be an array")
        return
    if "initial_options" in element and not initial:
        check.fail(f"{at}/initial_options", "no fewer than 1 items allowed")
    for option in [element["initial_option"], *initial] if "initial_option" in element else initial:
        if not isinstance(option, dict) or option.get("value") not in values:
            check.fail(at, "initial option is not among the options")
