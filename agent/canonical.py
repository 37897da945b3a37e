"""One spelling of a value as JSON, so that equal things have equal hashes, before and after the database."""

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Protocol, TypeAlias, runtime_checkable
from uuid import UUID

from pydantic import BaseModel

MOST_DIGITS = 1000
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@runtime_checkable
class HasJson(Protocol):
    """A value with a JSON form of its own."""

    def to_json(self) -> dict[str, Json]: ...


def plain(value: object) -> Json:
    """Give `value` as JSON data: Decimals, dates and UUIDs as strings, models and Money as objects.

    Raises TypeError for what has no JSON form and ValueError for a number that is not finite.
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() | Decimal():
            return _plain_number(value)
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case BaseModel():
            return plain(_dumped(value))
        case _:
            return _plain_container(value)


def canonical(value: object) -> str:
    """Spell `value` as JSON in the one way that survives jsonb: sorted keys, one form for each number."""
    return _spell(plain(value))


def digest(value: object) -> str:
    """Give the SHA-256 of the canonical spelling, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _dumped(model: BaseModel) -> object:
    dumped = model.model_dump(mode="json", by_alias=True)
    return _in_order(dumped, model.model_dump(by_alias=True)) if _holds_set(model) else dumped


def _holds_set(value: object) -> bool:
    match value:
        case Set():
            return True
        case BaseModel():
            return any(map(_holds_set, vars(value).values()))
        case Mapping():
            return any(map(_holds_set, value.values()))
        case list() | tuple():
            return any(map(_holds_set, value))
        case _:
            return False


def _in_order(dumped: object, read: object) -> object:
    """The dump with the lists that were sets sorted: the order of a set is another one in every process."""
    if isinstance(dumped, list) and isinstance(read, Set):
        return sorted((plain(part) for part in dumped), key=_spell)
    if isinstance(dumped, list) and isinstance(read, list | tuple) and len(dumped) == len(read):
        return [_in_order(part, was) for part, was in zip(dumped, read, strict=True)]
    if isinstance(dumped, dict) and isinstance(read, Mapping) and len(dumped) == len(read):
        pairs = zip(dumped.items(), read.values(), strict=True)
        return {name: _in_order(part, was) for (name, part), was in pairs}
    return dumped


def is_short(number: Decimal) -> bool:
    """Whether a number, written out, has no more than a thousand digits before the point and after it."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MOST_DIGITS and number.adjusted() < MOST_DIGITS


def _plain_number(value: float | Decimal) -> Json:
    if not Decimal(value).is_finite():
        raise ValueError(f"{value} is not a number that can be kept; use a finite one")
    if isinstance(value, Decimal) and not is_short(value):
        raise ValueError(f"{value:.3e} has too many digits to be kept; a number may have {MOST_DIGITS}")
    return format(value, "f") if isinstance(value, Decimal) else float(value)


def _plain_container(value: object) -> Json:
    # exact dicts and lists first: most values are, and asking about a protocol is slow
    if type(value) not in (dict, list) and isinstance(value, HasJson):
        return plain(value.to_json())
    if isinstance(value, Mapping):
        return {_key(name): plain(part) for name, part in value.items()}
    if isinstance(value, Set):
        return sorted((plain(part) for part in value), key=_spell)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(part) for part in value]
    raise TypeError(
        f"a {type(value).__name__} has no JSON form; use text, numbers, Money, dates, lists or dicts"
    )


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the key {name!r} of a dict must be text")
    return name


def _spell(value: Json) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_spell(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(_spell, value)) + "]"
        case float():
            return _spell_float(value)
        case _:
            return json.dumps(value)


def _spell_float(value: float) -> str:
    # jsonb keeps numerics: 1e20 comes back as an int and -0.0 as 0, so both must be spelled alike
    exact = Decimal(repr(value))
    if exact == exact.to_integral_value():
        return str(int(exact))
    return format(exact.normalize(), "f")
