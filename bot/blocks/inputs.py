"""The input of one field: which element of Slack holds it, with which bounds and which hint."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from bot.blocks.bounded import Block, input_block, option, text_input
from bot.blocks.characters import width
from bot.fields import Field, FormValue, Kind
from bot.texts import Texts

ACTION_ID = "value"
_LONG_TEXT = 150  # characters from which a text gets several lines
_NUMBERS = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL})


def input_for(field: Field, block_id: str, shown: FormValue, texts: Texts) -> Block:
    """The input block for a field that begins with `shown`; None for an empty one."""
    optional = field.nullable or not field.required or shown in (None, "", ())
    element = _element(field, shown, texts)
    return input_block(
        block_id, ACTION_ID, element, field.title, _hint(field, shown, texts), optional=optional
    )


def value_text(value: object) -> str:
    """Text or a number as an input shows it, every digit of it; TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is neither text nor a number")
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)


def _element(field: Field, shown: FormValue, texts: Texts) -> Block:
    match field.kind:
        case Kind.YES_NO:
            options = [option(texts.common.yes, "true"), option(texts.common.no, "false")]
            return _select("static_select", options, shown)
        case Kind.CHOICE | Kind.CHOICES:
            options = [option(str(value), str(at)) for at, value in enumerate(field.choices)]
            return _select(
                "static_select" if field.kind is Kind.CHOICE else "multi_static_select", options, shown
            )
        case kind if kind in _NUMBERS:
            return _number_input(field, shown)
        case Kind.DATE:
            return {"type": "datepicker"} | ({"initial_date": shown} if shown else {})
        case Kind.MOMENT if isinstance(shown, datetime):
            return {"type": "datetimepicker", "initial_date_time": int(shown.timestamp())}
        case _:
            return _text_element(field, shown if isinstance(shown, str) else "")


def _select(kind: str, options: list[Block], shown: FormValue) -> Block:
    made: Block = {"type": kind, "options": options}
    if isinstance(shown, tuple):
        chosen = [one for one in options if one["value"] in shown]
        return made | {"initial_options": chosen} if chosen else made
    chosen = [one for one in options if one["value"] == shown]
    return made | {"initial_option": chosen[0]} if chosen else made


def _text_element(field: Field, shown: str) -> Block:
    if field.kind is Kind.LINES:
        return text_input(shown, multiline=True)
    longest = field.schema.get("maxLength")
    multiline = "\n" in shown or width(shown) > _LONG_TEXT or longest is None or longest > _LONG_TEXT
    return text_input(shown, multiline=multiline, longest=longest)


def _number_input(field: Field, shown: FormValue) -> Block:
    made: Block = {"type": "number_input", "is_decimal_allowed": field.kind is not Kind.INTEGER}
    least, most = _bounds(field)
    if least is not None:
        made["min_value"] = least
    if most is not None:
        made["max_value"] = most
    return made | {"initial_value": shown} if shown else made


def _bounds(field: Field) -> tuple[str | None, str | None]:
    schema = _number_schema(field)
    least, most = schema.get("minimum"), schema.get("maximum")
    if field.kind is Kind.INTEGER:  # Slack's bounds are inclusive
        least = schema["exclusiveMinimum"] + 1 if "exclusiveMinimum" in schema else least
        most = schema["exclusiveMaximum"] - 1 if "exclusiveMaximum" in schema else most
    return (None if least is None else value_text(least)), (None if most is None else value_text(most))


def _number_schema(field: Field) -> Mapping[str, Any]:
    options = field.schema.get("anyOf", ())
    return next((part for part in options if part.get("type") == "number"), field.schema)


def _hint(field: Field, shown: FormValue, texts: Texts) -> str:
    words = texts.form
    schema = _number_schema(field) if field.kind in _NUMBERS else field.schema
    bounds = (
        ("minimum", words.at_least),
        ("maximum", words.at_most),
        ("exclusiveMinimum", words.more_than),
        ("exclusiveMaximum", words.less_than),
        ("maxLength", words.longest),
        ("minItems", words.entries_at_least),
        ("maxItems", words.entries_at_most),
    )
    said = [template.format(n=value_text(schema[name])) for name, template in bounds if name in schema]
    if field.kind is Kind.LINES:
        said.insert(0, words.one_per_line)
    if field.kind is Kind.MOMENT and not isinstance(shown, datetime):
        said.insert(0, words.iso_moment)
    return " ".join([field.description, *said])
