"""What is wrong with a field of an edit, in the words of the reader's language."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, FutureDate, NaiveDatetime, PastDate
from pydantic_core import PydanticCustomError

from agent.schema import Fault, InvalidInput, validate
from agent.tool import Risk, Tool
from bot.faults import fault_text
from bot.texts import texts
from bot.texts.words import FormWords

EN = texts("en")
FOREIGN = replace(EN, form=FormWords(**{name: f"[{words}]" for name, words in vars(EN.form).items()}))


class Colour(StrEnum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


def of_our_own(value: str) -> str:
    """A validator of the tool's own."""
    if value == "twice":
        raise ValueError("give every payment once")
    if value == "odd":
        raise PydanticCustomError("greater_than", "an error that only looks like one of pydantic's")
    return value


class Everything(BaseModel):
    """One field of each kind."""

    needed: str = "x"
    few: list[str] = Field([], min_length=1)
    many: list[str] = Field([], max_length=2)
    many_numbers: set[int] = Field(set(), max_length=2)
    short: str = Field("", min_length=3)
    long: str = Field("", max_length=3)
    code: str = Field("A1", pattern="^[A-Z][0-9]$")
    least: int = Field(1, ge=1)
    more: Decimal = Field(Decimal(1), gt=Decimal("0.50"))
    most: int = Field(1, le=9)
    less: float = Field(1.0, lt=2.5)
    step: int = Field(0, multiple_of=5)
    money: Decimal = Field(Decimal(0), max_digits=4, decimal_places=2)
    whole: int = 0
    number: float = 0.0
    exact: Decimal = Decimal(0)
    yes: bool = False
    text: str = ""
    day: date = date(2026, 1, 1)
    since: date = Field(date(2026, 2, 1), ge=date(2026, 1, 31))
    moment: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    aware: AwareDatetime | None = None
    naive: NaiveDatetime | None = None
    past: PastDate | None = None
    future: FutureDate | None = None
    colour: Colour = Colour.RED
    size: Literal["s", "m"] = "s"
    own: Annotated[str, AfterValidator(of_our_own)] = ""


class Needed(BaseModel):
    """A field that must be given."""

    needed: str


def fault(raw: dict[str, Any], model: type[BaseModel] = Everything) -> Fault:
    """The one fault of an input."""
    tool = Tool(name="any", input=model, risk=Risk.READ_ONLY, execute=lambda input, ctx: None)
    with pytest.raises(InvalidInput) as caught:
        validate(tool, raw)
    (found,) = caught.value.faults
    return found


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"unheard_of": 1}, "There is no such field"),
        ({"few": []}, "Give at least 1; there are 0"),
        ({"many": ["a", "b", "c"]}, "Give at most 2; there are 3"),
        ({"many_numbers": [1, 2, 3]}, "At most 2."),
        ({"short": "x"}, "Give at least 3 characters."),
        ({"long": "xxxx"}, "Give at most 3 characters."),
        ({"code": "a"}, "This is not of the form that is asked for: ^[A-Z][0-9]$"),
        ({"least": 0}, "At least 1."),
        ({"more": "0.5"}, "More than 0.50."),
        ({"most": 10}, "At most 9."),
        ({"less": 2.5}, "Less than 2.5."),
        ({"step": 7}, "Give a multiple of 5."),
        ({"money": "12345"}, "At most 4 digits."),
        ({"money": "123"}, "At most 2 digits before the point."),
        ({"money": "1.234"}, "At most 2 digits after the point."),
        ({"whole": "twelve"}, "Give a whole number."),
        ({"whole": 1.5}, "Give a whole number."),
        ({"whole": None}, "Give a whole number."),
        ({"number": "twelve"}, "Give a number."),
        ({"exact": "twelve"}, "Give a number."),
        ({"exact": "NaN"}, "Give a number."),
        ({"yes": "perhaps"}, "Choose yes or no."),
        ({"text": None}, "Give a text."),
        ({"day": "soon"}, "Give a date, like 2026-11-30."),
        ({"since": "2026-01-30"}, "At least 2026-01-31."),
        ({"moment": "soon"}, "Give a date and a time, like 2026-11-30T23:10."),
        ({"aware": "2026-11-30T23:10"}, "Give the time zone too, like 2026-11-30T23:10+01:00."),
        ({"naive": "2026-11-30T23:10Z"}, "Give it without a time zone, like 2026-11-30T23:10."),
        ({"past": "2999-01-01"}, "This must be in the past."),
        ({"future": "1999-01-01"}, "This must be in the future."),
        ({"colour": "green"}, "This is none of the possible values."),
        ({"size": "xl"}, "This is none of the possible values."),
        ({"text": "nul \x00"}, "This holds a character that cannot be stored (NUL or half of a pair)"),
    ],
)
def test_the_usual_faults_are_said_in_the_readers_language(raw: dict[str, Any], words: str) -> None:
    found = fault(raw)
    assert fault_text(found, EN) == words
    assert fault_text(found, FOREIGN) == f"[{words}]"
    assert found.path == next(iter(raw))


def test_a_field_that_is_missing_is_said_in_the_readers_language() -> None:
    assert fault_text(fault({}, Needed), FOREIGN) == "[This is needed]"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"own": "twice"}, "give every payment once"),
        ({"own": "odd"}, "an error that only looks like one of pydantic's"),
        ({"many": "a, b"}, "Input should be a valid list"),
    ],
)
def test_what_the_tool_says_itself_and_what_is_not_usual_is_said_as_it_is(
    raw: dict[str, Any], words: str
) -> None:
    assert fault_text(fault(raw), FOREIGN) == words
