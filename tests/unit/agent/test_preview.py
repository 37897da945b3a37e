"""What is frozen of a call, and what has moved since."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from agent.legible import line, storable, visible
from agent.preview import changes, freeze, moved, verify
from agent.tool import Facts, Money, Preview, Risk, Tool
from tests.unit.agent.samples import frozen

HIDDEN = "a\u202eb\u200bc\x07d\u2066e\ufefff\U000e0041g\u00adh\u3164i"
IDS = [f"pay_{n:02}" for n in range(41)]


def payments(ids: list[str]) -> Preview:
    rows = [(payment, Money(n + 1, "EUR")) for n, payment in enumerate(ids)]
    return Preview("Refund", ["impact"], ["Payment", "Amount"], rows)


def test_what_is_frozen_verifies_also_after_the_database() -> None:
    measured = frozen(IDS, preview=payments(IDS), precondition={"failed payments": 41.0})
    assert verify(measured)
    back = json.loads(json.dumps([measured.input, measured.facts, measured.precondition, measured.preview]))
    assert verify(
        replace(measured, input=back[0], facts=back[1], precondition={"failed payments": 41}, preview=back[3])
    )


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("input", {"payment_ids": ["pay_99"], "reason": "failed"}),
        ("items", ("pay_99",)),
        ("items_digest", "0"),
        ("precondition", {"failed payments": 1}),
        ("preview", {"title": "Refund 1 payment"}),
    ],
)
def test_anything_else_than_what_was_frozen_does_not_verify(part: str, other: Any) -> None:
    assert not verify(replace(frozen(IDS), **{part: other}))


def test_other_facts_do_not_verify() -> None:
    measured = frozen(IDS)
    assert not verify(replace(measured, facts=measured.facts | {"count": 1}))
    assert not verify(replace(measured, facts=measured.facts | {"items": []}))


def test_a_call_without_a_preview_shows_its_exact_input_and_its_named_facts() -> None:
    facts = Facts(2, Money("9.50", "EUR"), ["pay_1", "pay_2"], country="PT")
    measured = frozen(["pay_1", "pay_2"], facts=facts)
    assert measured.preview["title"] == "Refund payments"
    assert measured.preview["impact"] == ["Payments: pay_1, pay_2", "Reason: failed", "Country: PT"]
    assert (measured.facts["count"], measured.facts["amount"]["amount"]) == (2, "9.50")


def test_a_tool_that_measures_nothing_shows_no_count() -> None:
    class Close(BaseModel):
        """Close the shop."""

        shop_is_empty: bool
        floors: list[int]

    tool = Tool(name="close", input=Close, risk=Risk.IRREVERSIBLE, execute=lambda i, c: None)
    shown = freeze(tool, Close(shop_is_empty=True, floors=[1, 2]), Facts(1), None, {}).preview
    assert shown["impact"] == ["Shop is empty: true", "Floors: [1, 2]"]


def test_at_most_five_rows_and_eight_columns_are_shown_and_the_rest_is_counted() -> None:
    rows = [[f"{row}/{column}" for column in range(9)] for row in range(7)]
    shown = frozen(IDS, preview=Preview("Wide", [], [f"c{n}" for n in range(9)], rows)).preview
    assert len(shown["sample"]) == 5
    assert {len(row) for row in shown["sample"]} == {8} == {len(shown["columns"])}
    assert shown["hidden"] == {"lines": 0, "columns": 1, "rows": 2}


def test_rows_are_a_choice_with_the_largest_and_never_just_the_first() -> None:
    sample = frozen(IDS, preview=payments(IDS)).preview["sample"]
    assert [row[0] for row in sample[:2]] == ["pay_40", "pay_39"]
    assert [row[0] for row in sample] != IDS[:5]


def test_rows_that_a_replacing_approval_adds_come_first_and_are_marked() -> None:
    old = [*IDS[3:], "pay_gone"]
    shown = frozen(IDS, preview=payments(IDS), replaced=old).preview
    assert [row[0] for row in shown["sample"][:3]] == IDS[:3]
    assert shown["added"] == [0, 1, 2]
    assert shown["change"] == {"added": 3, "left_out": 1}
    assert frozen(IDS).preview["change"] is None


def test_nothing_invisible_is_shown() -> None:
    preview = Preview(HIDDEN, [HIDDEN], [HIDDEN], [[HIDDEN]])
    measured = frozen(
        ["x"], preview=preview, precondition={HIDDEN: HIDDEN}, facts=Facts(1, None, ["x"], note=HIDDEN)
    )
    shown = measured.preview
    assert (shown["title"], shown["impact"], shown["columns"], shown["sample"]) == (
        "abcdefghi",
        ["abcdefghi"],
        ["abcdefghi"],
        [["abcdefghi"]],
    )
    assert measured.precondition == {"abcdefghi": "abcdefghi"}
    assert measured.facts["more"] == {"note": "abcdefghi"}


def test_a_title_of_nothing_visible_becomes_the_tools_name() -> None:
    assert frozen(["x"], preview=Preview("\u200b")).preview["title"] == "Refund payments"


def test_long_texts_are_cut_with_an_ellipsis_and_the_input_is_untouched() -> None:
    long = "x" * 5000
    measured = frozen(["x"], reason=long, preview=Preview(long, [long] * 30, [long], [[long]]))
    shown = measured.preview
    assert measured.input["reason"] == long
    assert len(shown["title"]) == 150
    assert shown["title"].endswith("…")
    assert len("\n".join(shown["impact"])) <= 3000
    assert shown["hidden"]["lines"] == 30 - len(shown["impact"]) > 0
    assert len(shown["sample"][0][0]) == 80


def test_an_item_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be stored"):
        frozen(["x"], facts=Facts(1, None, ["pay\x00"]))


def test_an_item_that_is_too_long_to_be_held_is_refused() -> None:
    assert frozen(["x"], facts=Facts(1, None, ["ü" * 500])).items == ("ü" * 500,)
    with pytest.raises(ValueError, match="has 501 characters; an id may have 500 at most"):
        frozen(["x"], facts=Facts(1, None, ["x" * 501]))


def test_nothing_moved_when_nothing_moved() -> None:
    shown = frozen(["b", "a"], precondition={"failed payments": 2})
    assert moved(shown, frozen(["a", "b"], precondition={"failed payments": 2.0})) == []


def test_a_moved_precondition_is_told_with_was_and_is() -> None:
    changed = moved(
        frozen(IDS, precondition={"failed payments": 38}), frozen(IDS, precondition={"failed payments": 41})
    )
    assert [change.to_json() for change in changed] == [
        {"kind": "precondition", "name": "failed payments", "was": 38, "is": 41}
    ]


def test_a_precondition_that_is_gone_or_null_has_moved() -> None:
    assert moved(frozen(IDS, precondition={"state": None}), frozen(IDS)) != []
    assert moved(frozen(IDS), frozen(IDS, precondition={"state": None})) != []


def test_moved_facts_and_items_are_told_each() -> None:
    shown = frozen(["x"], facts=Facts(2, Money(2, "EUR"), ["a", "b"], country="PT"))
    now = frozen(["x"], facts=Facts(3, Money(3, "EUR"), ["b", "c", "d"], country="ES"))
    assert [change.to_json() for change in moved(shown, now)] == [
        {"kind": "count", "name": "count", "was": 2, "is": 3},
        {
            "kind": "amount",
            "name": "amount",
            "was": {"amount": "2.00", "currency": "EUR"},
            "is": {"amount": "3.00", "currency": "EUR"},
        },
        {"kind": "fact", "name": "country", "was": "PT", "is": "ES"},
        {"kind": "items", "name": "items", "was": 2, "is": 3, "added": 2, "gone": 1},
    ]


def test_other_items_of_the_same_number_have_moved() -> None:
    shown, now = frozen(["x"], facts=Facts(1, None, ["a"])), frozen(["x"], facts=Facts(1, None, ["b"]))
    assert [(change.kind, change.added, change.gone) for change in moved(shown, now)] == [("items", 1, 1)]


def test_another_preview_of_the_same_facts_has_not_moved() -> None:
    assert moved(frozen(IDS, preview=payments(IDS)), frozen(IDS)) == []


def test_changes_are_what_is_added_and_what_is_left_out() -> None:
    assert changes(["a", "b"], ["c", "b", "d"]) == (("c", "d"), ("a",))


def test_line_breaks_become_spaces_and_emoji_stay() -> None:
    assert line("two\r\n lines\t and\u2028 more ", 80) == "two lines and more"
    assert visible("über 👍🏽 ✔️ 日本") == "über 👍🏽 ✔️ 日本"


def test_what_postgres_refuses_is_replaced() -> None:
    assert storable({"k\x00": ["a\ud800b", 1, None]}) == {"k\ufffd": ["a\ufffdb", 1, None]}
