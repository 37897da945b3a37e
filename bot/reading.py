"""What an input of an edit's form holds, as the raw value of its field; whatever it holds, nothing raises."""

import copy
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from bot.fields import Field, FormValue, Kind

EMPTY: Mapping[Kind, Any] = {Kind.TEXT: "", Kind.LINES: [], Kind.CHOICES: []}
"""What an empty input means, for the kinds that can be empty without being null."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_BARE_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_value(field: Field, value: FormValue) -> Any:
    """The raw value; what does not read as the field's kind stays text, for the schema to refuse."""
    if isinstance(value, tuple):
        return [_chosen(field, part) for part in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if not value:
        return None if field.nullable else copy.copy(EMPTY[field.kind])
    match field.kind:
        case Kind.CHOICE:
            return _chosen(field, value)
        case Kind.YES_NO:
            return {"true": True, "false": False}.get(value, value)
        case Kind.LINES:
            return [_number(kind, text) for _, kind, text in typed(field, value)]
        case kind:
            return _number(kind, value)


def typed(field: Field, value: FormValue) -> Iterator[tuple[tuple[str, ...], Kind, str]]:
    """Each text that was typed, with its path and kind: the entries of a list, or the whole."""
    if not isinstance(value, str):
        return
    if field.kind is not Kind.LINES:
        yield field.path, field.kind, value
        return
    entries = [line.strip() for line in value.splitlines() if line.strip()]
    for number, entry in enumerate(entries):
        yield (*field.path, str(number)), field.entry, entry


def is_bare_number(text: str) -> bool:
    """Whether a text is a number and nothing else."""
    return _BARE_NUMBER.fullmatch(text.strip()) is not None


def _chosen(field: Field, option: str) -> Any:
    by_option = {str(at): choice for at, choice in enumerate(field.choices)}
    return by_option.get(option, option)


def _number(kind: Kind, text: str) -> Any:
    if kind is Kind.INTEGER and _WHOLE.fullmatch(text.strip()):
        return int(text)
    if kind is Kind.DECIMAL:
        return text.strip()  # as it is stored: a JSON number would lose digits
    if kind is Kind.FLOAT:
        return _float(text)
    return text


def _float(text: str) -> float | str:
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        return text
    number = float(exact) if exact.is_finite() else math.nan
    return number if math.isfinite(number) else text
