"""The form of an edit: what it shows, and that nothing is lost on the way back."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from bot.fields import Kind, fields_of
from bot.forms import FormValue, errors_in_words, field_titles, form_blocks, form_errors, misread, read_form
from bot.payloads import state_values
from bot.texts import texts
from tests.unit.bot.seen import accepted_view, read

EN = texts("en")


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    street: str = Field(title="Street")
    number: int = 1


class Everything(BaseModel):
    """All that a form can hold."""

    ids: list[str] = Field(title="Payments", min_length=1, max_length=500)
    reason: str = Field(title="Reason", description="For the customer.", max_length=100)
    body: str
    count: int = Field(ge=1, lt=100)
    amount: Decimal = Field(ge=Decimal("0.01"), max_digits=12, decimal_places=2)
    rate: float = 0.5
    urgent: bool = False
    size: Size
    level: Level = Level.LOW
    color: Literal["red", "blue"] | None = None
    sizes: list[Size] = []
    numbers: list[int] = []
    day: date
    at: datetime
    local: datetime
    note: str | None = None
    limit: Decimal | None = None
    address: Address
    fixed: Literal["v1"] = "v1"
    extra: dict[str, int] = {}


STORED: dict[str, Any] = {
    "ids": ["p1", "p2", "p3"],
    "reason": "charged twice",
    "body": "Dear customer,\r\n\r\n  thanks \n",
    "count": 3,
    "amount": "4120.10",
    "rate": 0.25,
    "urgent": True,
    "size": "large",
    "level": 2,
    "color": None,
    "sizes": ["small"],
    "numbers": [1, 2],
    "day": "2026-11-30",
    "at": "2026-11-30T23:10:30.250000Z",
    "local": "2026-11-30T23:10:00",
    "note": "x",
    "limit": None,
    "address": {"street": "Calle Mayor", "number": 4},
    "fixed": "v1",
    "extra": {"a": 1},
}


def view(model: type[BaseModel], stored: dict[str, Any], revision: int = 1) -> dict[str, Any]:
    return accepted_view(
        {
            "type": "modal",
            "title": {"type": "plain_text", "text": "Edit"},
            "submit": {"type": "plain_text", "text": "Go"},
            "blocks": form_blocks(model, stored, revision, EN),
        }
    )


def untouched(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The state that Slack sends when nobody touched anything."""
    values: dict[str, Any] = {}
    for block in blocks:
        if block["type"] == "input":
            element = block["element"]
            values[block["block_id"]] = {element["action_id"]: _state(element)}
    return {"view": {"state": {"values": values}}}


def _state(element: dict[str, Any]) -> dict[str, Any]:
    kind = element["type"]
    match kind:
        case "static_select":
            return {"type": kind, "selected_option": element.get("initial_option")}
        case "multi_static_select":
            return {"type": kind, "selected_options": element.get("initial_options", [])}
        case "datepicker":
            return {"type": kind, "selected_date": element.get("initial_date")}
        case "datetimepicker":
            return {"type": kind, "selected_date_time": element.get("initial_date_time")}
        case _:
            initial = element.get("initial_value")
            return {"type": kind, "value": initial.replace("\r\n", "\n").strip() if initial else None}


def edited(**changes: FormValue) -> dict[str, Any]:
    values = dict(state_values(untouched(view(Everything, STORED)["blocks"])))
    values |= {f"1.{name.replace('__', '.')}": value for name, value in changes.items()}
    return read_form(Everything, STORED, 1, values)


def test_an_untouched_form_gives_back_exactly_what_was_stored() -> None:
    assert edited() == STORED


class Named(BaseModel):
    """Lists whose entries may hold a comma, and one whose form says that they do not."""

    names: list[str] = []
    codes: list[Annotated[str, Field(pattern="^[a-z]+,[0-9]+$")]] = []
    parts: list[Annotated[str, Field(pattern="^[a-z0-9]+$")]] = []
    slow: list[Annotated[str, Field(pattern="^([a-z0-9]+-?)+$")]] = []
    numbers: list[int] = []
    amounts: list[Decimal] = []


@pytest.mark.parametrize(
    ("name", "stored", "typed", "entries"),
    [
        ("names", ["p1", "p2"], "p1, p3", ["p1", "p3"]),
        ("names", ["p1", "p2"], "p1,p3\np2,", ["p1", "p3", "p2"]),
        ("names", ["p1", "Ruiz, Ana"], "p1, p3", ["p1, p3"]),
        ("names", ["Ana Ruiz"], "Ana, Leo", ["Ana, Leo"]),
        ("names", ["p1"], "Ana Ruiz, p3", ["Ana Ruiz, p3"]),
        ("names", [], "p1, p3", ["p1, p3"]),
        ("codes", ["a1"], "a,1", ["a,1"]),
        ("codes", ["a1"], "a,1, b,2", ["a", "1", "b", "2"]),
        ("parts", ["a1"], "a1, b2", ["a1", "b2"]),
        # a pattern for which an engine that goes back would take for ever
        ("slow", ["x1"], "a" * 60 + ", b", ["a" * 60, "b"]),
        ("numbers", [1, 2], "1,204", ["1,204"]),
        ("amounts", ["1.50"], "1,50", ["1,50"]),
    ],
)
def test_commas_separate_only_entries_that_surely_hold_none(
    name: str, stored: list[Any], typed: str, entries: list[Any]
) -> None:
    assert read_form(Named, {name: stored}, 1, {f"1.{name}": typed})[name] == entries


def test_a_field_that_slack_left_out_keeps_its_stored_value() -> None:
    assert read_form(Everything, STORED, 1, {}) == STORED


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("ids", "p1\n\n p3 \n", ["p1", "p3"]),
        ("reason", "by mistake", "by mistake"),
        ("count", "7", 7),
        ("count", "7.5", "7.5"),
        ("amount", "4120.09", "4120.09"),
        ("amount", "0.10000000000000000001", "0.10000000000000000001"),
        ("rate", "0.125", 0.125),
        ("rate", "nan", "nan"),
        ("urgent", "false", False),
        ("size", "0", "small"),
        ("level", "0", 1),
        ("color", "1", "blue"),
        ("sizes", ("0", "1"), ["small", "large"]),
        ("sizes", (), []),
        ("numbers", "3\n4\nx", [3, 4, "x"]),
        ("day", "2026-12-01", "2026-12-01"),
        ("at", datetime.fromtimestamp(1796084000, UTC), "2026-12-01T00:13:20Z"),
        ("at", "1796084000", "1796084000"),  # typed, where there is no picker
        ("local", "20261201120000", "20261201120000"),
        ("local", "2026-12-01T08:00", "2026-12-01T08:00"),
        ("note", None, None),
        ("body", None, ""),
        ("limit", "5", "5"),
    ],
)
def test_an_edited_field_is_read_as_its_kind(field: str, value: FormValue, expected: object) -> None:
    raw = edited(**{field: value})
    assert raw == {**STORED, field: expected}
    assert type(raw[field]) is type(expected)


class Times(BaseModel):
    """Dates and moments, some of which are typed."""

    begins: datetime | None = None
    day: date | None = None
    moments: list[datetime] = []
    days: list[date] = []
    count: int = 0


@pytest.mark.parametrize(
    ("name", "typed", "wrong"),
    [
        ("begins", "20261201", {"1.begins": EN.form.a_moment}),
        ("begins", "1.7E+9", {"1.begins": EN.form.a_moment}),
        ("begins", " +20261201120000.5 ", {"1.begins": EN.form.a_moment}),
        ("begins", "2026-12-01T08:00", {}),
        ("begins", "tomorrow", {}),  # pydantic says so itself
        ("begins", datetime.fromtimestamp(1796084000, UTC), {}),
        ("begins", None, {}),
        ("day", "0", {"1.day": EN.form.a_date}),
        ("moments", "2026-12-01T08:00\n\n12", {"1.moments": f"Entry 2: {EN.form.a_moment}"}),
        ("days", "1767225600\n2026-12-01", {"1.days": f"Entry 1: {EN.form.a_date}"}),
        ("count", "20261201", {}),
    ],
)
def test_a_number_is_no_date_and_no_moment(name: str, typed: FormValue, wrong: dict[str, str]) -> None:
    found = misread(Times, {}, 1, {f"1.{name}": typed}, EN)
    assert form_errors(Times, {}, 1, found, EN) == wrong


def test_a_stored_number_that_nobody_touched_is_left_alone() -> None:
    assert misread(Times, {"begins": "12"}, 1, {"1.begins": "12"}, EN) == []


ODD = [
    *(
        "",
        " ",
        "0",
        "-1",
        "9" * 5_000,
        "1e999",
        "1e99999999999999999999",
        "1_0",
        "٣",
        "²",
        "nan",
        "sNaN",
        "inf",
    ),
    *("true", "maybe", "2026-02-30", "99999999999999", "\x00", "\ud800", "a\r\nb", "-", "+", ".", "5.", None),
    *((), ("0",), ("9" * 5_000, "٣", ""), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
]


@pytest.mark.parametrize("value", ODD)
def test_whatever_an_input_holds_is_read(value: FormValue) -> None:
    for name in STORED:
        raw = edited(**{name: value})
        json.dumps(raw, allow_nan=False)
        misread(Everything, STORED, 1, {f"1.{name}": value}, EN)


def test_a_moment_that_a_picker_cannot_show_is_typed() -> None:
    for moment in ("0001-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "20261201", "tomorrow"):
        (block, *_) = view(Times, {"begins": moment})["blocks"]
        element = block["element"]
        assert (element["type"], element["initial_value"]) == ("plain_text_input", moment)


def test_a_field_of_a_nested_model_is_edited_in_place() -> None:
    assert edited(address__street="Gran Vía")["address"] == {"street": "Gran Vía", "number": 4}


def test_a_cleared_field_that_cannot_be_empty_takes_the_models_default() -> None:
    raw = edited(rate=None, day=None)
    assert "rate" not in raw and "day" not in raw


def test_reading_does_not_change_what_was_stored() -> None:
    before = json.dumps(STORED)
    edited(address__street="x", ids="p9")
    assert json.dumps(STORED) == before


def test_an_edited_form_validates_against_the_model() -> None:
    made = Everything.model_validate(edited(amount="99.99", size="0", note=None, numbers="5"))
    assert (made.amount, made.size, made.note, made.numbers) == (Decimal("99.99"), Size.SMALL, None, [5])


def test_inputs_are_labelled_with_titles_and_hinted_with_bounds() -> None:
    by_id = {b["block_id"]: b for b in view(Everything, STORED)["blocks"] if b["type"] == "input"}
    assert by_id["1.ids"]["label"]["text"] == "Payments"
    assert "One per line. At least 1. At most 500." in by_id["1.ids"]["hint"]["text"]
    assert by_id["1.reason"]["hint"]["text"] == "For the customer. At most 100 characters."
    assert by_id["1.address.street"]["label"]["text"] == "Address: Street"
    assert by_id["1.count"]["element"] | {} == {
        "type": "number_input",
        "is_decimal_allowed": False,
        "min_value": "1",
        "max_value": "99",
        "initial_value": "3",
        "action_id": "value",
    }
    assert by_id["1.amount"]["element"]["min_value"] == "0.01"
    assert [by_id[f"1.{name}"]["optional"] for name in ("ids", "note", "rate")] == [False, True, True]


def test_a_long_text_and_a_list_get_several_lines() -> None:
    by_id = {b["block_id"]: b["element"] for b in view(Everything, STORED)["blocks"] if b["type"] == "input"}
    assert by_id["1.body"]["multiline"] and by_id["1.ids"]["multiline"]
    assert not by_id["1.reason"]["multiline"]


def test_block_ids_change_with_the_revision() -> None:
    first, second = (
        {b["block_id"] for b in view(Everything, STORED, n)["blocks"] if b["type"] == "input"} for n in (1, 2)
    )
    assert not first & second


class Batch(BaseModel):
    """A batch."""

    ids: list[str]
    reason: str = ""


def test_more_than_a_hundred_entries_are_edited_as_text() -> None:
    stored = {"ids": [f"pay_{n:03}" for n in range(300)], "reason": ""}
    values = {"1.ids": "\n".join(stored["ids"][:-1])}
    assert read_form(Batch, stored, 1, values)["ids"] == stored["ids"][:-1]


@pytest.mark.parametrize("ids", [["x" * 3_001], ["x" * 1_000] * 3, ["two\nlines"], [" padded"], [""]])
def test_a_list_that_cannot_be_shown_without_loss_stays_as_it_is(ids: list[str]) -> None:
    stored = {"ids": ids, "reason": "r"}
    made = view(Batch, stored)
    assert "Ids " in read(made) and "stays as it is" in read(made)
    assert read_form(Batch, stored, 1, {"1.ids": "y"}) == stored


def test_what_a_form_cannot_hold_stays_as_it_is() -> None:
    made = view(Everything, STORED)
    assert "Extra cannot be edited in Slack and stays as it is." in read(made)
    assert "Fixed" not in read(made)


def test_a_model_of_very_many_fields_still_opens() -> None:
    many = type("Many", (BaseModel,), {"__annotations__": {f"f{n}": str for n in range(150)}})
    stored = {f"f{n}": "x" for n in range(150)}
    made = view(many, stored)
    assert sum(block["type"] == "input" for block in made["blocks"]) == 80
    assert read_form(many, stored, 1, {"1.f0": "y"}) == {**stored, "f0": "y"}


def test_a_choice_of_more_than_a_hundred_is_typed() -> None:
    class Big(BaseModel):
        """Big."""

        pick: str = Field(json_schema_extra={"enum": [f"v{n}" for n in range(120)]})

    (block,) = view(Big, {"pick": "v7"})["blocks"]
    assert block["element"]["type"] == "plain_text_input"


def test_a_number_or_text_is_not_taken_for_a_decimal() -> None:
    class Either(BaseModel):
        """Either."""

        value: float | str
        exact: Decimal

    kinds = {field.path[0]: field.kind for field in fields_of(Either)}
    assert kinds == {"value": Kind.OTHER, "exact": Kind.DECIMAL}


def test_errors_go_to_the_input_of_their_field() -> None:
    fields = [("ids.2", "too long"), ("ids", "too few"), ("address.street", "empty"), ("count", "too big")]
    assert form_errors(Everything, STORED, 1, fields, EN) == {
        "1.ids": "Entry 3: too long too few",
        "1.address.street": "empty",
        "1.count": "too big",
    }


def test_errors_without_an_input_go_to_the_first_one_with_their_field_named() -> None:
    fields = [("", "ids and reason do not fit"), ("extra.a", "no number"), ("address", "incomplete")]
    assert form_errors(Everything, STORED, 1, fields, EN) == {
        "1.ids": "ids and reason do not fit extra.a: no number",
        "1.address.street": "address: incomplete",
    }


def test_errors_in_words_name_each_field_in_the_order_of_the_form() -> None:
    errors = {"1.address.street": "empty", "1.ids": "too few"}
    said = errors_in_words(Everything, STORED, 1, errors, EN)
    assert said == "Payments: too few; Address: Street: empty"


def test_errors_are_cut_and_keyed_by_blocks_that_are_inputs() -> None:
    errors = form_errors(Everything, STORED, 1, [("ids", "x" * 5_000)], EN)
    assert len(errors["1.ids"]) <= 300
    inputs = {b["block_id"] for b in view(Everything, STORED)["blocks"] if b["type"] == "input"}
    assert set(errors) <= inputs


def test_a_form_without_inputs_has_no_place_for_errors() -> None:
    class Fixed(BaseModel):
        """Fixed."""

        mode: Literal["only"]

    assert form_errors(Fixed, {"mode": "only"}, 1, [("mode", "wrong")], EN) == {}


def test_titles_are_those_of_the_fields() -> None:
    assert field_titles(Batch) == {"ids": "Ids", "reason": "Reason"}
    assert field_titles(Everything)["ids"] == "Payments"
