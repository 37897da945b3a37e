"""The form of an edit: from a tool's input model and the stored input to inputs, and back without loss.

A field that was not touched keeps its stored value exactly, whatever Slack made of it on the way.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from bot.blocks import limits
from bot.blocks.bounded import Block, lines
from bot.blocks.characters import cut, one_line, width
from bot.blocks.inputs import input_for, value_text
from bot.blocks.phrases import fill
from bot.fields import Field, FormValue, FormValues, Kind, field_titles, fields_of
from bot.reading import EMPTY, is_bare_number, read_value, typed
from bot.texts import Texts

__all__ = [
    "FormValue",
    "FormValues",
    "errors_in_words",
    "field_titles",
    "form_blocks",
    "form_errors",
    "misread",
    "read_form",
]

_MOST_INPUTS = 80  # of the 100 blocks of a view; the rest stays as it is


@dataclass(frozen=True)
class _Input:
    """A field in the form: `shown` is what its input begins with, None for an empty one.

    `untouchable` says, instead, why the field has no input.
    """

    field: Field
    block_id: str
    shown: FormValue = None
    untouchable: Callable[[Texts], str] | None = None


def form_blocks(
    model: type[BaseModel], stored: Mapping[str, Any], revision: int, texts: Texts
) -> list[Block]:
    """The inputs for the fields of `model`, filled with `stored`, the input of that revision.

    Block ids hold the revision, so that Slack forgets what was typed into the form of an earlier one. A
    field that cannot be edited without loss is a line that says that it stays as it is.
    """
    return [_block(one, texts) for one in _inputs(model, stored, revision)]


def read_form(
    model: type[BaseModel], stored: Mapping[str, Any], revision: int, values: FormValues
) -> dict[str, Any]:
    """The raw input after the edit, for `check_edit`; `values` are those of the form of `stored`.

    A field that is absent from `values` or was not touched keeps its stored value. Commas on a line separate
    entries where no entry can hold one, as far as the stored ones and the schema tell. What does not read
    as its field's kind stays text, for the tool's schema to refuse in its own words.
    """
    raw: dict[str, Any] = copy.deepcopy(dict(stored))
    for field, value in _touched(model, stored, revision, values):
        _put(raw, field, value)
    return raw


def misread(
    model: type[BaseModel], stored: Mapping[str, Any], revision: int, values: FormValues, texts: Texts
) -> list[tuple[str, str]]:
    """What was typed that pydantic would read as something else than it says: (path, message) of each.

    That is a bare number for a date or a moment, which it takes for seconds since 1970.
    """
    said = {Kind.DATE: texts.form.a_date, Kind.MOMENT: texts.form.a_moment}
    found = []
    for field, value in _touched(model, stored, revision, values):
        for path, kind, text in typed(field, value):
            if kind in said and is_bare_number(text):
                found.append((".".join(path), said[kind]))
    return found


def form_errors(
    model: type[BaseModel],
    stored: Mapping[str, Any],
    revision: int,
    fields: Iterable[tuple[str, str]],
    texts: Texts,
) -> dict[str, str]:
    """Messages by the block id of an input, as `response_action: errors` wants them.

    A path without an input of its own goes to the first input, with its field named. Empty only where the
    form has no input at all.
    """
    inputs = [one for one in _inputs(model, stored, revision) if one.untouchable is None]
    found: dict[str, list[str]] = {}
    for path, message in fields:
        if inputs:
            block_id, said = _error(inputs, path, message, texts)
            found.setdefault(block_id, []).append(said)
    return {
        block_id: cut(one_line(" ".join(messages)), limits.FIELD_ERROR)
        for block_id, messages in found.items()
    }


def errors_in_words(
    model: type[BaseModel],
    stored: Mapping[str, Any],
    revision: int,
    errors: Mapping[str, str],
    texts: Texts,
) -> str:
    """What `form_errors` gives for the form of `stored`, as words that name each field."""
    inputs = _inputs(model, stored, revision)
    said = [(one.field.title, errors[one.block_id]) for one in inputs if one.block_id in errors]
    return "; ".join(texts.form.about.format(field=title, message=message) for title, message in said)


def _block(one: _Input, texts: Texts) -> Block:
    if one.untouchable is not None:
        return lines([fill(one.untouchable(texts), field=one.field.title)])
    return input_for(one.field, one.block_id, one.shown, texts)


def _error(inputs: list[_Input], path: str, message: str, texts: Texts) -> tuple[str, str]:
    keys = tuple(path.split(".")) if path else ()
    for one in inputs:
        own = one.field.path
        if keys[: len(own)] == own:
            rest = keys[len(own) :]
            numbered = one.field.kind is Kind.LINES and rest and rest[0].isdecimal()
            said = texts.form.entry.format(n=int(rest[0]) + 1, message=message) if numbered else message
            return one.block_id, said
    inside = next((one for one in inputs if keys and one.field.path[: len(keys)] == keys), inputs[0])
    return inside.block_id, texts.form.about.format(field=path, message=message) if path else message


def _inputs(model: type[BaseModel], stored: Mapping[str, Any], revision: int) -> Iterator[_Input]:
    made = 0
    for field, value in _leaves(fields_of(model), stored):
        if field.kind is Kind.FIXED:
            continue
        one = _begin(field, f"{revision}.{'.'.join(field.path)}", value)
        if made >= _MOST_INPUTS or width(one.block_id) > limits.BLOCK_ID:
            one = replace(one, untouchable=lambda texts: texts.form.too_complex)
        made += 1
        if made < limits.BLOCKS_PER_VIEW - 5:
            yield one


def _leaves(fields: Iterable[Field], stored: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
    for field in fields:
        value = stored.get(field.path[-1])
        if field.kind is Kind.GROUP and isinstance(value, Mapping):
            for inner, inner_value in _leaves(field.inner, value):
                yield replace(inner, title=f"{field.title}: {inner.title}"), inner_value
        else:
            yield field, value


def _begin(field: Field, block_id: str, value: Any) -> _Input:
    try:
        shown = None if value is None else _shown(field, value)
    except (TypeError, ValueError, ArithmeticError):  # the stored value is not of the field's kind
        return _Input(field, block_id, untouchable=lambda texts: texts.form.too_complex)
    if field.kind in {Kind.OTHER, Kind.GROUP}:
        return _Input(field, block_id, untouchable=lambda texts: texts.form.too_complex)
    if isinstance(shown, str) and width(shown) > limits.PLAIN_TEXT_INPUT:
        return _Input(field, block_id, untouchable=lambda texts: texts.form.too_long)
    return _Input(field, block_id, shown)


def _shown(field: Field, value: Any) -> FormValue:
    match field.kind:
        case Kind.YES_NO:
            return "true" if value else "false"
        case Kind.CHOICE:
            return str(field.choices.index(value))
        case Kind.CHOICES:
            return tuple(str(field.choices.index(part)) for part in value)
        case Kind.LINES:
            return "\n".join(_shown_line(part) for part in value)
        case Kind.MOMENT:
            return _picked(value) or value_text(value)
        case _:
            return value_text(value)


def _shown_line(value: Any) -> str:
    text = value_text(value)
    if text != text.strip() or not text or len(text.splitlines()) != 1:
        raise ValueError(f"{text!r} cannot stand on a line of its own")
    return text


def _picked(value: Any) -> datetime | None:
    """A moment as a picker shows it; None for one that is local, or that it cannot show."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    seconds = int(moment.timestamp()) if moment.tzinfo is not None else 0
    return datetime.fromtimestamp(seconds, UTC) if seconds in limits.PICKED_MOMENTS else None


def _touched(
    model: type[BaseModel], stored: Mapping[str, Any], revision: int, values: FormValues
) -> Iterator[tuple[Field, FormValue]]:
    for one in _inputs(model, stored, revision):
        if one.untouchable is None and one.block_id in values:
            value = values[one.block_id]
            if _comparable(value) != _comparable(one.shown):
                yield one.field, _one_per_line(one, value)


def _comparable(value: FormValue) -> FormValue:
    # Slack may trim a text or change its line ends; an empty input comes back as null
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip() or None
    if not value:
        return None
    return tuple(sorted(value)) if isinstance(value, tuple) else value


def _one_per_line(one: _Input, value: FormValue) -> FormValue:
    if one.field.kind is not Kind.LINES or not isinstance(value, str):
        return value
    return "\n".join(part for line in value.splitlines() for part in _entries(one, line))


def _entries(one: _Input, line: str) -> list[str]:
    # only ids: "Ruiz, Ana" may be one name, and "1,204" one number
    known = one.shown.splitlines() if isinstance(one.shown, str) else []
    parts = [part.strip() for part in line.split(",")]
    ids = known and one.field.entry is Kind.TEXT and not any(map(_is_no_id, (*known, *parts)))
    return [part for part in parts if part] if ids and not _may_be_one(one.field, line.strip()) else [line]


def _is_no_id(text: str) -> bool:
    return "," in text or len(text.split()) > 1


def _may_be_one(field: Field, line: str) -> bool:
    """Whether the schema speaks of entries and may mean such a line by one."""
    entry = field.schema.get("items", {})
    pattern = entry.get("pattern")
    if pattern is None:
        return "type" not in entry
    try:
        # pydantic's own, which takes no longer for a line that is long
        SchemaValidator(core_schema.str_schema(pattern=pattern)).validate_python(line)
    except SchemaError:
        return True
    except ValidationError:
        return False
    return True


def _put(raw: dict[str, Any], field: Field, value: FormValue) -> None:
    *outer, name = field.path
    inside = raw
    for key in outer:
        inside = inside[key]
    if value in (None, "", ()) and not field.nullable and field.kind not in EMPTY:
        inside.pop(name, None)
        return
    inside[name] = read_value(field, value)
