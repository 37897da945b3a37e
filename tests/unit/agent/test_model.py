"""What a model's answer may hold, whatever the model."""

import json
from typing import Any

import pytest

from agent.model import MOST_DEPTH, flaw_of


def nested(depth: int) -> list[Any]:
    """A list with so many lists inside one another."""
    made: list[Any] = []
    for _ in range(depth - 1):
        made = [made]
    return made


def use(input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": "pay", "input": input}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "Hi", "citations": [{"at": 1.5}]},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "holiday", "where": {"sea": True, "sun": None}},
        use({}),
        use({"bills": ["b1"], "amount": 1e308, "deep": nested(MOST_DEPTH - 2)}),
    ],
)
def test_what_can_be_kept_has_no_flaw(block: dict[str, Any]) -> None:
    assert flaw_of([block, block]) is None


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (use(None), "a tool_use that is not in its form"),
        (use(["b1"]), "a tool_use that is not in its form"),
        ({**use({}), "id": None}, "a tool_use that is not in its form"),
        ({"type": "tool_use", "id": "t1", "input": {}}, "a tool_use that is not in its form"),
        ({"type": "text", "text": 7}, "a text that is not in its form"),
        (use({"note": json.loads("1e999")}), "not finite"),
        ({"type": "holiday", "where": [{"x": json.loads("NaN")}]}, "not finite"),
        (use({"deep": nested(MOST_DEPTH - 1)}), "nested too deeply"),
        (use({"deep": nested(100_000)}), "nested too deeply"),
    ],
)
def test_what_cannot_be_kept_has_a_flaw(block: dict[str, Any], words: str) -> None:
    flaw = flaw_of([use({}), block])
    assert flaw is not None and words in flaw.text
