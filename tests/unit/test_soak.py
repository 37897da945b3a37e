"""The soak's verdict finds what it is there for."""

from datetime import UTC, datetime
from json import dumps
from types import SimpleNamespace
from typing import Any

import pytest

from tests.soak.model import SoakModel
from tests.soak.people import Press
from tests.soak.verdict import Verdict, _heard, _refunds

AT = 1_800_000_000.0
YES, NOTHING, UNSURE = (
    "You approved “Refund a”.",
    "… so nothing was recorded: press again.",
    "It is not confirmed …",
)
BEFORE = "Already approved by Lead 2 (lead) today at 10:00; your click changed nothing."


def press(*told: str) -> Press:
    return Press("apr_1", "U0LEAD1", "approve", AT, AT + 1, 1, told)


def row(by: str | None = "U0LEAD1", at: float | None = AT + 0.5, status: str = "executed") -> dict[str, Any]:
    decided = None if at is None else datetime.fromtimestamp(at, UTC)
    return {
        "id": "apr_1",
        "status": status,
        "decided_by": by,
        "decided_at": decided,
        "items": ["soak_1", "soak_2"],
        "decisions": 1,
    }


def heard(told: str, found: dict[str, Any]) -> list[str]:
    return list(_heard(press(told), told, found, Verdict()))


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (YES, row()),
        (NOTHING, row(None, None)),
        (NOTHING, row(at=AT + 5)),
        (NOTHING, row("U0LEAD2")),
        (UNSURE, row()),
        (UNSURE, row(None, None)),
        (BEFORE, row("U0LEAD2", AT - 5)),
    ],
)
def test_whoever_was_told_the_truth_is_no_violation(told: str, found: dict[str, Any]) -> None:
    assert heard(told, found) == []


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (YES, row(None, None)),
        (YES, row("U0LEAD2")),
        (YES, row(at=AT + 9)),
        (NOTHING, row()),
        (BEFORE, row(None, None)),
        ("Ready.", row()),
    ],
)
def test_whoever_was_told_anything_else_is_one(told: str, found: dict[str, Any]) -> None:
    assert len(heard(told, found)) == 1


@pytest.mark.parametrize(
    ("made", "sentences"),
    [
        (["soak_1", "soak_2"], 0),
        (["soak_1"], 1),
        (["soak_1", "soak_2", "soak_2"], 1),
        (["soak_1", "soak_2", "soak_9"], 1),
    ],
)
def test_refunds_are_held_against_what_was_approved(made: list[str], sentences: int) -> None:
    refunds = tuple(SimpleNamespace(payment_id=each) for each in made)
    place = SimpleNamespace(provider=SimpleNamespace(refunds=refunds))
    assert len(list(_refunds(place, Verdict(), [row()]))) == sentences  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "decisions"), [("pending", 1), ("unknown", 1), ("executed", 0), ("executed", 2)]
)
def test_every_approval_ends_with_one_decision(status: str, decisions: int) -> None:
    refunds = (SimpleNamespace(payment_id="soak_1"), SimpleNamespace(payment_id="soak_2"))
    made = refunds if status == "executed" else ()
    place = SimpleNamespace(provider=SimpleNamespace(refunds=made))
    found = row(status=status) | {"decisions": decisions}
    assert len(list(_refunds(place, Verdict(), [found]))) == 1  # type: ignore[arg-type]


async def test_its_model_asks_again_only_when_nothing_ran_and_nobody_refused() -> None:
    model, first = SoakModel(), {"role": "user", "content": "please refund soak_1 and soak_2"}

    async def after(**result: Any) -> str:
        asked = await model.answer({"messages": [first]})
        told = {"type": "tool_result", "tool_use_id": asked["content"][0]["id"], "content": dumps(result)}
        messages = [
            first,
            {"role": "assistant", "content": asked["content"]},
            {"role": "user", "content": [told]},
        ]
        return str((await model.answer({"messages": messages}))["content"][0]["type"])

    assert await after(executed=False, failed=True) == "tool_use"
    assert await after(executed=False, approvalDenied=True) == "text"
    assert await after(executed=True) == "text"
    assert await after(executed=None, unknown=True) == "text"
