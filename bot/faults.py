"""What is wrong with a field of an edit, in the words of the reader's language.

The kinds are pydantic's (https://docs.pydantic.dev/latest/errors/validation_errors/). What a tool's own
validator says is its author's, and so is shown as it is; so is any other kind.
"""

from collections.abc import Mapping
from typing import Any

from agent.schema import Fault
from bot.blocks.inputs import value_text
from bot.texts import Texts
from bot.texts.words import FormWords


def fault_text(fault: Fault, texts: Texts) -> str:
    """What is wrong, without the field's name."""
    there = fault.context.get("actual_length")
    template = _template(fault.kind, texts.form)
    if fault.kind == "too_long" and there is None:  # of a set pydantic does not count what is too much
        template = texts.form.entries_at_most
    n = next((fault.context[name] for name in _NUMBERS if name in fault.context), None)
    if template is None or ("{n}" in template and n is None):
        return fault.message
    return template.format(n=_shown(n), there=_shown(there))


_NUMBERS = (
    "ge",
    "gt",
    "le",
    "lt",
    "multiple_of",
    "min_length",
    "max_length",
    "max_digits",
    "whole_digits",
    "decimal_places",
    "pattern",
)
"""The values of pydantic's contexts that a sentence names; a context has one of them."""


def _template(kind: str, words: FormWords) -> str | None:
    match kind:
        case "missing":
            return words.missing
        case "extra_forbidden":
            return words.no_such_field
        case "unstorable":
            return words.unstorable
        case "string_pattern_mismatch":
            return words.pattern
        case "enum" | "literal_error":
            return words.a_choice
    return _bound(kind, words) or _type(kind, words)


def _bound(kind: str, words: FormWords) -> str | None:
    bounds: Mapping[str, str] = {
        "too_short": words.too_few,
        "too_long": words.too_many,
        "string_too_short": words.least_characters,
        "string_too_long": words.most_characters,
        "greater_than_equal": words.at_least,
        "greater_than": words.more_than,
        "less_than_equal": words.at_most,
        "less_than": words.less_than,
        "multiple_of": words.multiple_of,
        "decimal_max_digits": words.most_digits,
        "decimal_whole_digits": words.most_whole_digits,
        "decimal_max_places": words.most_decimals,
    }
    return bounds.get(kind)


def _type(kind: str, words: FormWords) -> str | None:
    match kind:
        case "int_type" | "int_parsing" | "int_from_float":
            return words.whole_number
        case "float_type" | "float_parsing" | "decimal_type" | "decimal_parsing" | "finite_number":
            return words.number
        case "bool_type" | "bool_parsing":
            return words.yes_or_no
        case "string_type":
            return words.text
        case _:
            return _time(kind, words)


def _time(kind: str, words: FormWords) -> str | None:
    match kind:
        case "date_type" | "date_parsing" | "date_from_datetime_parsing" | "date_from_datetime_inexact":
            return words.a_date
        case "datetime_type" | "datetime_parsing" | "datetime_from_date_parsing":
            return words.a_moment
        case "timezone_aware":
            return words.with_offset
        case "timezone_naive":
            return words.without_offset
        case "date_past" | "datetime_past":
            return words.in_the_past
        case "date_future" | "datetime_future":
            return words.in_the_future
        case _:
            return None


def _shown(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value_text(value) if number else str(value)
