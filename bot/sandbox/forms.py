"""What a person types into inputs: plain values to Slack's state, and the client's own checks."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from bot.sandbox.elements import HOLDS, Placed, Typed, placed_elements, untouched
from bot.sandbox.errors import Json
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import View

REQUIRED = "Please complete this required field."


class FormIncompleteError(Exception):
    """Slack's client did not send the form; `errors` says why, per block_id."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(f"The form was not sent: {errors}")
        self.errors = errors


def entered(element: Json, value: Any) -> Json:
    """The state of an element after a person entered or chose `value` (options by label or value)."""
    kind = element["type"]
    name, _ = HOLDS[kind]
    if name == "selected_option":
        return {"type": kind, name: None if value is None else option_of(element, value)}
    if name == "selected_options":
        return {"type": kind, name: [option_of(element, one) for one in value]}
    if name == "value":
        return {"type": kind, name: None if value in (None, "") else str(value)}
    return {"type": kind, name: value}


def option_of(element: Json, wanted: str) -> Json:
    """The option of a select or menu with that label or value; LookupError if there is none."""
    options = [
        *element.get("options", []),
        *(o for g in element.get("option_groups", []) for o in g["options"]),
    ]
    for option in options:
        if wanted in {option["text"]["text"], option["value"]}:
            return {name: option[name] for name in ("text", "value", "description") if name in option}
    labels = [option["text"]["text"] for option in options]
    raise LookupError(f"There is no option {wanted!r} among {labels}.")


def submitted(view: View, unsettled: Unsettled) -> Typed:
    """The typed values as Slack submits them; raises FormIncompleteError if its client would not."""
    errors: dict[str, str] = {}
    typed = dict(view.typed)
    for placed in placed_elements(view.blocks):
        if placed.element["type"] not in HOLDS:
            continue
        state = typed.get(placed.key) or untouched(placed.element)
        if placed.block["type"] == "input" and (error := _refusal(placed, state)):
            errors[placed.key[0]] = error
        if placed.element["type"] == "number_input" and not unsettled.number_value_as_string:
            typed[placed.key] = _as_number(state)
    if errors:
        raise FormIncompleteError(errors)
    return typed


def _as_number(state: Json) -> Json:
    text = state["value"]
    if text is None:
        return state
    return {**state, "value": float(text) if "." in text else int(text)}


def _refusal(placed: Placed, state: Json) -> str | None:
    element = placed.element
    value = state[HOLDS[element["type"]][0]]
    if value in (None, "", []):
        return None if placed.block.get("optional") else REQUIRED
    if element["type"] == "plain_text_input":
        return _length_refusal(element, value)
    if element["type"] == "number_input":
        return _number_refusal(element, value)
    if element["type"] == "email_text_input" and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value):
        return "Enter a valid email address."
    return None


def _length_refusal(element: Json, value: str) -> str | None:
    if len(value) < element.get("min_length", 0):
        return f"Use at least {element['min_length']} characters."
    if len(value) > element.get("max_length", 3_000):
        return f"Use at most {element.get('max_length', 3_000)} characters."
    return None


def _number_refusal(element: Json, value: str) -> str | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return "Enter a number."
    if not number.is_finite() or (not element["is_decimal_allowed"] and number != number.to_integral_value()):
        return "Enter a whole number."
    if "min_value" in element and number < Decimal(element["min_value"]):
        return f"Enter a number of at least {element['min_value']}."
    if "max_value" in element and number > Decimal(element["max_value"]):
        return f"Enter a number of at most {element['max_value']}."
    return None
