"""A tool's input: what the model is told about it, and how what the model sends is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent.canonical import Json, plain
from agent.tool import Tool

_RATIONALE: dict[str, Json] = {
    "type": "string",
    "title": "Rationale",
    "description": (
        "Why this call is needed, in one or two sentences, for the person who may have to approve it."
    ),
}
# pydantic speaks of lists "after validation"
_WORDS = {
    "too_short": "Give at least {min_length}; there are {actual_length}",
    "too_long": "Give at most {max_length}; there are {actual_length}",
    "missing": "This is needed",
    "extra_forbidden": "There is no such field",
}
_UNSTORABLE = "it holds a character that cannot be stored (NUL or half of a pair)"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one field, the path "" for the whole input.

    `message` is what the model reads. `kind` and `context` are those of pydantic's error, for who says it in
    other words: https://docs.pydantic.dev/latest/errors/validation_errors/
    """

    path: str
    message: str
    kind: str
    context: Mapping[str, Any] = field(default_factory=dict)


class InvalidInput(Exception):
    """The input does not fit the tool's schema; `fields` are (path, message) of each fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        self.fields = [(fault.path, fault.message) for fault in faults]
        told = (f"{path}: {message}" if path else message for path, message in self.fields)
        super().__init__("; ".join(told))


def schema_hash(tool: Tool) -> str:
    """Give the SHA-256 of the tool's name, version and input schema, as 64 hex digits."""
    return tool.schema_hash


def model_schema(tool: Tool) -> dict[str, Any]:
    """Give {"name", "description", "input_schema"} as the model gets them, with `rationale` if it can ask."""
    schema = dict(tool.input_schema)
    schema["properties"] = dict(schema.get("properties", {}))
    if tool.can_ask:
        schema["properties"]["rationale"] = dict(_RATIONALE)
    if tool.input.model_config.get("extra") != "allow":
        schema["additionalProperties"] = False
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def split_input(tool: Tool, raw: object) -> tuple[dict[str, Any], str | None]:
    """Take the rationale off what the model sent; InvalidInput if that is no object."""
    if not isinstance(raw, Mapping):
        raise InvalidInput([Fault("", "the input must be an object", "not_an_object")])
    rest = dict(raw)
    rationale = rest.pop("rationale", None) if tool.can_ask else None
    if not isinstance(rationale, str) or not rationale.strip():
        return rest, None
    return rest, rationale.strip()


def validate(tool: Tool, raw: object) -> BaseModel:
    """Check an input without rationale, from the model, an edit or the database, against the tool's schema.

    Raises InvalidInput with every field that is wrong; unknown fields are wrong unless the model allows them.
    """
    unstorable = _unstorable_paths(raw, "")
    if unstorable:
        raise InvalidInput([Fault(path, _UNSTORABLE, "unstorable") for path in unstorable])
    try:
        return tool.input.model_validate(raw, extra=tool.input.model_config.get("extra") or "forbid")
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InvalidInput([_fault(one) for one in details]) from None


def input_json(input: BaseModel) -> dict[str, Json]:
    """Give the input as it is stored, hashed and validated again."""
    return cast(dict[str, Json], plain(input))


def lost_fields(tool: Tool, input: BaseModel, kept: Mapping[str, Json]) -> list[str]:
    """The fields of an input that are others when what is kept of it is read again; [] as it should be."""
    try:
        again = vars(validate(tool, kept))
    except InvalidInput as error:
        return [path or "the input" for path, _ in error.fields]
    return [name for name, value in vars(input).items() if again.get(name) != value]


def _fault(error: ErrorDetails) -> Fault:
    return Fault(_path(error["loc"]), _message(error), error["type"], error.get("ctx", {}))


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))


def _message(error: ErrorDetails) -> str:
    template = _WORDS.get(error["type"])
    if template is not None:
        return template.format(**error.get("ctx", {}))
    return error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _unstorable_paths(value: object, path: str) -> list[str]:
    # Postgres text and jsonb refuse both: https://www.postgresql.org/docs/current/datatype-json.html
    match value:
        case str():
            return [path] if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value) else []
        case Mapping():
            parts = [(str(name), part) for name, part in value.items()]
            keys = [path for name, _ in parts if _unstorable_paths(name, path)]
        case list() | tuple():
            parts, keys = [(str(at), part) for at, part in enumerate(value)], []
        case _:
            return []
    inner = [found for name, part in parts for found in _unstorable_paths(part, f"{path}.{name}".lstrip("."))]
    return keys + inner
