"""Reasons: a code with its parts, the sentence that is kept of it, and what other releases stored."""

import json
from typing import Any

import pytest

from agent.tool import ToolError
from agent.why import Code, Why, because, said
from tests.unit.agent.reasons import one_of

STORED = because(Code.TOOL_GONE, tool="pay").to_json()


@pytest.mark.parametrize("code", Code)
def test_every_reason_has_a_sentence_and_comes_back_from_where_it_is_stored(code: Code) -> None:
    why = one_of(code).and_also(because(Code.COUNTED, done=3))
    assert why.text.endswith("It had counted 3 by then.")
    assert Why.from_json(json.loads(json.dumps(why.to_json()))) == why


def test_what_a_tool_says_passes_through_as_it_is() -> None:
    assert said("The bank is {closed}.").text == "The bank is {closed}."
    assert said(ToolError(" ").message) == because(Code.UNSAID)


def test_reasons_stand_in_one_another() -> None:
    why = because(Code.NO_ANSWER, n=8, why=because(Code.MODEL_TIMED_OUT))
    assert why.text == "The model did not answer after 8 tries: The model did not answer in time."


@pytest.mark.parametrize("first", ["It broke off", "It broke off."])
def test_a_sentence_that_another_follows_ends_in_a_full_stop(first: str) -> None:
    why = said(first).and_also(because(Code.COUNTED_OF, done=3, total=5))
    assert why.text == "It broke off. It had counted 3 of 5 by then."


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "a sentence",
        [],
        {},
        {"code": "tool_gone"},
        STORED | {"code": "of_a_newer_release"},
        STORED | {"code": 7},
        STORED | {"parts": {}},
        STORED | {"parts": {"tool": None}},
        STORED | {"parts": {"tool": ["pay"]}},
        STORED | {"parts": {"tool": "pay", "since": "yesterday"}},
        STORED | {"parts": {"tool": {"code": "of_a_newer_release", "parts": {}, "more": []}}},
        {"code": "timed_out", "parts": {"tool": "pay", "seconds": "60"}, "more": []},
        STORED | {"more": [{"code": "of_a_newer_release", "parts": {}, "more": []}]},
    ],
)
def test_what_another_release_stored_is_not_taken_for_something_else(stored: Any) -> None:
    assert Why.from_json(stored) is None


@pytest.mark.parametrize("done", [True, 10**28, 1e308, float("inf"), float("nan")])
def test_a_stored_number_that_nobody_can_be_shown_is_no_reason(done: object) -> None:
    assert Why.from_json({"code": "counted", "parts": {"done": done}, "more": []}) is None


def test_a_part_without_end_is_cut() -> None:
    assert len(because(Code.BROKE_OFF, tool="pay", error="x" * 10**6).text) < 5000
    assert len(said("x" * 10**6).text) == 4000
