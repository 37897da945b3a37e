"""Reading Slack's JSON: what stands where, what a form holds, and the error for what is not known."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from agent.legible import is_storable
from bot.fields import FormValue, FormValues

Body: TypeAlias = Mapping[str, Any]

_SECONDS = re.compile(r"[0-9]{1,11}(\.[0-9]{1,20})?")


class UnknownPayload(Exception):
    """A payload of an unknown kind or shape; with who sent it and how to answer, where that could be read."""

    def __init__(self, what: str, response_url: str | None = None, user_id: str | None = None) -> None:
        self.what = what
        self.response_url = response_url
        self.user_id = user_id
        super().__init__(f"an unknown payload: {what}")


def state_values(body: Body) -> FormValues:
    """What the inputs hold, by block id: `view.state` of a modal or Home, `state` of a message.

    A block that is there and empty has None; one that Slack left out is missing.
    """
    values = at(body, "view", "state", "values")
    if values is None:
        values = at(body, "state", "values")
    if values is None:
        return {}
    try:
        return dict(_block_values(values))
    except (AttributeError, KeyError, TypeError) as error:
        raise unknown(body, "inputs of another shape") from error


def _block_values(values: Mapping[str, Any]) -> Iterator[tuple[str, FormValue]]:
    for block_id, inputs in values.items():
        for element in inputs.values():
            yield block_id, _value(element)


def _value(element: Mapping[str, Any]) -> FormValue:
    match element.get("type"):
        case "static_select" | "radio_buttons":
            return maybe(element, "selected_option", "value")
        case "multi_static_select" | "checkboxes":
            return tuple(str(option["value"]) for option in element.get("selected_options") or ())
        case "datepicker":
            return maybe(element, "selected_date")
        case "datetimepicker":
            return _picked(element.get("selected_date_time"))
        case _:
            # the value of a number_input has been seen as a string and as a number
            value = element.get("value")
            return None if value is None else str(value)


def _picked(seconds: Any) -> datetime | None:
    if seconds is None:
        return None
    if not _SECONDS.fullmatch(str(seconds)):
        raise TypeError(f"no moment: {seconds!r}")
    return _time(seconds)


def _time(seconds: str | int) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


def expect(body: Body, kind: str) -> None:
    """Raise UnknownPayload for a payload of another type."""
    if at(body, "type") != kind:
        raise unknown(body, f"{at(body, 'type')!r} instead of {kind!r}")


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path of keys and positions; None where there is nothing."""
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and len(value) > key else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def maybe(body: Body, *path: str | int) -> str | None:
    """The text at a path; None for an empty one, for one that cannot be stored, and for anything else."""
    value = text(body, *path)
    return value if value and is_storable(value) else None


def text(body: Body, *path: str | int) -> str:
    """The text at a path as it is, which a person wrote; "" for anything else."""
    value = at(body, *path)
    return value if isinstance(value, str) else ""


def moment(body: Body, *path: str | int) -> datetime | None:
    """The time at a path, which Slack writes in seconds; None for anything else."""
    found = text(body, *path)
    return _time(found) if _SECONDS.fullmatch(found) else None


def need(body: Body, *path: str | int) -> str:
    """The text at a path; UnknownPayload without one."""
    value = maybe(body, *path)
    if value is None:
        raise unknown(body, f"no {'.'.join(map(str, path))}")
    return value


def unknown(body: Body, what: str) -> UnknownPayload:
    """The error to raise about a payload."""
    return UnknownPayload(what, maybe(body, "response_url"), maybe(body, "user", "id"))
