"""A tool's input model as fields that a person can edit: read from its JSON schema, one level deep."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from pydantic import BaseModel

from agent.tool import object_schema
from bot.blocks.limits import OPTIONS

Schema = Mapping[str, Any]
FormValue: TypeAlias = str | tuple[str, ...] | datetime | None
"""What an input holds: text, the values of the chosen options, what a picker of moments shows, or nothing."""
FormValues: TypeAlias = Mapping[str, FormValue]
"""What a form holds, by block id."""


class Kind(StrEnum):
    """What a field holds; OTHER cannot be edited in a form, FIXED has only one value."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    YES_NO = "yes_no"
    DATE = "date"
    MOMENT = "moment"
    CHOICE = "choice"
    CHOICES = "choices"
    LINES = "lines"
    GROUP = "group"
    FIXED = "fixed"
    OTHER = "other"


@dataclass(frozen=True)
class Field:
    """One field: `path` are the keys that lead to it, `schema` its JSON schema without null.

    `choices` are the values of a choice; `entry` is the kind of a line; `inner` are the fields of a group.
    """

    path: tuple[str, ...]
    title: str
    description: str
    kind: Kind
    schema: Schema
    nullable: bool
    required: bool
    choices: tuple[Any, ...] = ()
    entry: Kind = Kind.TEXT
    inner: tuple["Field", ...] = ()


def fields_of(model: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a model in its order; a nested model is a GROUP with fields of its own."""
    taken, given = object_schema(model), object_schema(model, mode="serialization")
    return tuple(_fields(_Pair(taken, given, taken, given), (), nested=False))


def field_titles(model: type[BaseModel]) -> Mapping[str, str]:
    """What people call the fields: key of the input → title."""
    return {field.path[0]: field.title for field in fields_of(model)}


@dataclass(frozen=True)
class _Pair:
    """The schema of what is taken and of what is given, side by side, with their roots.

    Only together they tell a Decimal, which is given as a string, from a float or a string.
    """

    taken: Schema
    given: Schema
    taken_root: Schema
    given_root: Schema

    def at(self, taken: Schema, given: Schema) -> "_Pair":
        """The pair for a part, references resolved and null taken away."""
        return replace(
            self,
            taken=_without_null(taken, self.taken_root)[0],
            given=_without_null(given, self.given_root)[0],
        )


def _fields(pair: _Pair, prefix: tuple[str, ...], *, nested: bool) -> Iterator[Field]:
    required = pair.taken.get("required", ())
    given = pair.given.get("properties", {})
    for name, schema in pair.taken.get("properties", {}).items():
        _, nullable = _without_null(schema, pair.taken_root)
        part = pair.at(schema, given.get(name, {}))
        made = Field(
            path=(*prefix, name),
            title=schema.get("title") or name.replace("_", " ").strip().capitalize(),
            description=schema.get("description", ""),
            kind=_kind(part),
            schema=part.taken,
            nullable=nullable,
            required=name in required,
        )
        yield _completed(made, part, nested=nested)


def _completed(field: Field, pair: _Pair, *, nested: bool) -> Field:
    match field.kind:
        case Kind.GROUP if nested:
            return replace(field, kind=Kind.OTHER)
        case Kind.GROUP:
            return replace(field, inner=tuple(_fields(pair, field.path, nested=True)))
        case Kind.CHOICE:
            return replace(field, choices=tuple(field.schema["enum"]))
        case Kind.OTHER if field.schema.get("type") == "array":
            return _list(field, pair)
        case _:
            return field


def _list(field: Field, pair: _Pair) -> Field:
    items = pair.at(field.schema.get("items", {}), pair.given.get("items", {}))
    match _kind(items):
        case Kind.CHOICE:
            return replace(field, kind=Kind.CHOICES, choices=tuple(items.taken["enum"]))
        case Kind.TEXT | Kind.INTEGER | Kind.FLOAT | Kind.DECIMAL | Kind.DATE | Kind.MOMENT as entry:
            return replace(field, kind=Kind.LINES, entry=entry)
        case _:
            return field


def _kind(pair: _Pair) -> Kind:
    schema = pair.taken
    if "const" in schema:
        return Kind.FIXED
    if "enum" in schema:
        return _choice(schema["enum"])
    if {part.get("type") for part in schema.get("anyOf", ())} == {"number", "string"}:
        return Kind.DECIMAL if pair.given.get("type") == "string" else Kind.OTHER
    match schema.get("type"):
        case "string":
            return {"date": Kind.DATE, "date-time": Kind.MOMENT}.get(schema.get("format", ""), Kind.TEXT)
        case "integer":
            return Kind.INTEGER
        case "number":
            return Kind.FLOAT
        case "boolean":
            return Kind.YES_NO
        case "object" if "properties" in schema:
            return Kind.GROUP
        case _:
            return Kind.OTHER


def _choice(values: list[Any]) -> Kind:
    if len(values) <= OPTIONS:
        return Kind.CHOICE
    return Kind.TEXT if all(isinstance(value, str) for value in values) else Kind.OTHER


def _without_null(schema: Schema, root: Schema) -> tuple[Schema, bool]:
    resolved = _resolved(schema, root)
    options = resolved.get("anyOf")
    if options is None:
        return resolved, False
    rest = [option for option in options if option.get("type") != "null"]
    if len(rest) == len(options):
        return resolved, False
    if len(rest) == 1:
        return _resolved(rest[0], root), True
    return {"anyOf": rest}, True


def _resolved(schema: Schema, root: Schema) -> Schema:
    found = dict(schema)
    while "$ref" in found:
        name = found.pop("$ref").removeprefix("#/$defs/")
        found = {**root["$defs"][name], **found}
    return found
