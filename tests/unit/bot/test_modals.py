"""The windows of Edit and Reject."""

from collections.abc import Callable

import pytest
from pydantic import BaseModel, Field

from bot.blocks.bounded import View
from bot.blocks.modals import (
    Callback,
    confirm_edit_view,
    edit_view,
    note_of,
    opening_view,
    problem_view,
    reason_block,
    reason_of,
    reject_view,
    waiting_view,
)
from bot.blocks.target import Target
from bot.replies import stranger
from bot.texts import texts
from tests.unit.bot.rows import approval, draft
from tests.unit.bot.seen import accepted_view, read

EN = texts("en")
TARGET = Target("ap_1", 1)


class Refund(BaseModel):
    """Refund payments."""

    payment_ids: list[str] = Field(title="Payments")
    reason: str = Field(title="Reason", max_length=200)


class Nothing(BaseModel):
    """Nothing to edit."""

    options: dict[str, dict[str, str]]


VIEWS: list[Callable[[], View]] = [
    lambda: opening_view("edit", TARGET, EN),
    lambda: opening_view("reject", TARGET, EN),
    lambda: waiting_view(TARGET, EN),
    lambda: reject_view(TARGET, EN),
    lambda: reject_view(TARGET, EN, approval()),
    lambda: edit_view(approval(), Refund, EN),
    lambda: confirm_edit_view(approval(), draft(), EN, irreversible=True, note=True),
    lambda: problem_view("approve", stranger(EN), EN),
]


@pytest.mark.parametrize("make", VIEWS)
def test_every_window_is_accepted_by_slack(make: Callable[[], View]) -> None:
    accepted_view(make())


def test_windows_are_titled_with_the_verb() -> None:
    titles = [make()["title"]["text"] for make in VIEWS]
    assert titles == ["Edit", "Reject", "Edit", "Reject", "Reject", "Edit", "Edit", "Approve"]


@pytest.mark.parametrize("make", VIEWS[:3])
def test_a_window_that_waits_cannot_be_submitted(make: Callable[[], View]) -> None:
    assert "submit" not in make()
    assert make()["callback_id"] == Callback.NOTHING


def test_private_metadata_is_opaque_ids_only() -> None:
    assert edit_view(approval(revision=4), Refund, EN)["private_metadata"] == "ap_1:4"
    assert confirm_edit_view(approval(), draft(), EN)["private_metadata"] == "ap_1:1:dr_1"


def test_the_skeleton_says_that_it_opens() -> None:
    assert "Opening…" in read(opening_view("edit", TARGET, EN))


def test_rejecting_asks_for_a_reason_and_says_what_the_agent_is_told() -> None:
    view = reject_view(TARGET, EN, approval())
    (asked,) = [block for block in view["blocks"] if block["type"] == "input"]
    assert asked["label"]["text"] == "Reason"
    assert not asked["optional"]
    assert view["submit"]["text"] == "Reject"
    assert "The agent is told that you refused" in read(view)
    assert "Refund 38 payments" in read(view)


def test_what_was_typed_before_the_row_was_read_is_kept() -> None:
    ids = [
        [(block["block_id"], block["element"]["action_id"]) for block in view["blocks"] if "element" in block]
        for view in (reject_view(TARGET, EN), reject_view(TARGET, EN, approval()))
    ]
    assert ids[0] == ids[1] == [(reason_block(TARGET), "reason")]


def test_the_reason_is_read_back() -> None:
    assert reason_of({reason_block(TARGET): "  not now \n"}) == "not now"
    assert reason_of({reason_block(TARGET): None}) == ""


def test_editing_prefills_the_fields_under_their_titles() -> None:
    view = edit_view(approval(), Refund, EN)
    inputs = [block for block in view["blocks"] if block["type"] == "input"]
    assert [block["label"]["text"] for block in inputs] == ["Payments", "Reason"]
    assert inputs[1]["element"]["initial_value"] == "charged twice"
    assert inputs[0]["block_id"] == "1.payment_ids"


def test_a_tool_without_editable_fields_says_so() -> None:
    view = accepted_view(edit_view(approval(), Nothing, EN))
    assert "submit" not in view
    assert "Nothing in this request can be edited here" in read(view)


def test_confirming_shows_the_new_preview_next_to_what_it_changes() -> None:
    view = confirm_edit_view(approval(), draft(), EN, irreversible=True, titles={"payment_ids": "Payments"})
    said = read(view)
    for words in (
        "Refund 37 payments · €4,000.00",
        "38 items · €4,120.00 → 37 items · €4,000.00",
        "failed payments = 38 → failed payments = 37",
        "Payments: 38 → 37, 1 left out: pay_001",
        "Instead of: Refund 38 payments · €4,120.00",
        "This cannot be undone.",
        "pay_001 · €120.00",
    ):
        assert words in said
    assert view["submit"]["text"] == "Approve these changes"
    assert not [block for block in view["blocks"] if block["type"] in {"table", "input"}]


def test_a_note_is_optional_and_read_back() -> None:
    view = confirm_edit_view(approval(), draft(), EN, note=True)
    (asked,) = [block for block in view["blocks"] if block["type"] == "input"]
    assert asked["optional"] and asked["label"]["text"] == "Note"
    assert note_of({asked["block_id"]: "fine by me"}) == "fine by me"
    assert note_of({asked["block_id"]: None}) is None


def test_a_problem_is_one_sentence_and_close() -> None:
    view = problem_view("edit", stranger(EN), EN)
    assert len(view["blocks"]) == 1
    assert view["close"]["text"] == "Close" and "submit" not in view


@pytest.mark.parametrize("target", [Target("ap_1", 1), Target("ap-X", 12, "dr_9")])
def test_a_target_survives_the_way_through_slack(target: Target) -> None:
    assert Target.read(target.value) == target


@pytest.mark.parametrize("text", ["", "ap_1", "ap_1:0", "ap_1:x", "ap 1:1", "ap_1:1:", "a:1:b:c", "ap_1:1\n"])
def test_a_made_up_target_is_refused(text: str) -> None:
    assert Target.read(text) is None
