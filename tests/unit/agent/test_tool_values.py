"""Money, facts, previews and their one spelling as JSON."""

import json
import os
import subprocess
import sys
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.canonical import canonical, digest, plain
from agent.progress import Count
from agent.sample import pick
from agent.tool import Context, Facts, Money, Preview, ToolError, pick_rows

AMOUNTS = st.decimals(min_value=-(10**15), max_value=10**15, places=4, allow_nan=False)


def test_money_is_exact_and_has_one_json_form() -> None:
    assert Money("4120", "EUR").to_json() == {"amount": "4120.00", "currency": "EUR"}
    assert Money("4120.000", "EUR") == Money(4120, "EUR") == Money(Decimal("4.12E+3"), "EUR")
    assert str(Money("0.10", "EUR") + Money("0.20", "EUR")) == "0.30 EUR"
    assert str(Money("0.10", "EUR") - Money("0.20", "EUR")) == "-0.10 EUR"


@pytest.mark.parametrize(
    ("amount", "currency", "spelled"),
    [("50", "JPY", "50"), ("1.5", "KWD", "1.500"), ("50.125", "EUR", "50.125"), ("-0.00", "EUR", "0.00")],
)
def test_money_has_the_digits_of_its_currency_or_more(amount: str, currency: str, spelled: str) -> None:
    assert Money(amount, currency).to_json()["amount"] == spelled


@given(AMOUNTS, AMOUNTS)
def test_money_adds_like_exact_numbers(a: Decimal, b: Decimal) -> None:
    assert (Money(a, "EUR") + Money(b, "EUR")).amount == a + b
    assert (Money(a, "EUR") > Money(b, "EUR")) is (a > b)


@given(AMOUNTS)
def test_money_survives_its_json_form(amount: Decimal) -> None:
    money = Money(amount, "EUR")
    assert Money.from_json(json.loads(canonical(money))) == money
    assert canonical(Money.from_json(money.to_json())) == canonical(money)


@pytest.mark.parametrize("amount", [1.5, True, None])
def test_money_refuses_what_is_not_exact(amount: object) -> None:
    with pytest.raises(TypeError, match="never a"):
        Money(amount, "EUR")  # type: ignore[arg-type]  # the test is about wrong types


# a Decimal may be short to write and have a billion digits
ENDLESS = [Decimal("1e+999999999"), Decimal("-1e+999999999"), Decimal("1e-999999999")]


@pytest.mark.parametrize(
    "amount", ["", "1e5", "NaN", " 5", "5,00", "١٢", "1" * 19, Decimal("Infinity"), *ENDLESS]
)
def test_money_refuses_text_that_is_no_amount(amount: str | Decimal) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        Money(amount, "EUR")


@pytest.mark.parametrize("currency", ["eur", "EURO", "", "€"])
def test_money_refuses_what_is_no_currency(currency: str) -> None:
    with pytest.raises(ValueError, match="is not a currency"):
        Money("1", currency)


@pytest.mark.parametrize("other", [Money("1", "USD"), None, Decimal(1)])
def test_money_of_another_currency_is_not_compared_or_added(other: object) -> None:
    for operation in (Money.__gt__, Money.__le__, Money.__add__, Money.__sub__):
        with pytest.raises(TypeError, match=r"currenc|only be compared"):
            operation(Money("1", "EUR"), other)  # type: ignore[arg-type]  # wrong types are the point
    assert Money("1", "EUR") != other


def test_money_is_written_as_people_write_it_with_every_digit() -> None:
    assert Money("4120.00", "EUR").text() == "€4,120.00"
    assert Money("50.125", "EUR").text() == "€50.125"
    assert Money("4120.00", "EUR").text("de") == "4.120,00\xa0€"


def test_facts_are_equal_whatever_the_order_of_their_items() -> None:
    one, other = (Facts(2, Money("5", "EUR"), ids, country="PT") for ids in (["a", "b"], ["b", "a"]))
    assert one == other
    assert one.items_digest == other.items_digest
    assert one.country == "PT"
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "moved",
    [
        Facts(3, Money("5", "EUR"), ["a", "b"], country="PT"),
        Facts(2, Money("5.01", "EUR"), ["a", "b"], country="PT"),
        Facts(2, Money("5", "EUR"), ["a", "c"], country="PT"),
        Facts(2, Money("5", "EUR"), ["a", "b"], country="ES"),
    ],
)
def test_facts_differ_when_any_part_moved(moved: Facts) -> None:
    assert moved != Facts(2, Money("5", "EUR"), ["a", "b"], country="PT")


def test_facts_survive_the_database() -> None:
    facts = Facts(
        2, Money("5", "EUR"), ["a", "b"], oldest=date(2026, 1, 2), worth=Money("9", "EUR"), share=0.5
    )
    stored = Facts.from_json(json.loads(json.dumps(facts.to_json())))
    assert stored == facts
    assert stored.worth > Money("8", "EUR")


def test_facts_say_which_name_they_do_not_have() -> None:
    with pytest.raises(AttributeError, match="no 'country'"):
        _ = Facts(1).country


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Facts(-1), "count"),
        (lambda: Facts(True), "count"),
        (lambda: Facts(1, items="abc"), "list of ids"),
        (lambda: Facts(1, items=[1]), "every item"),
        (lambda: Facts(1, items=[""]), "every item"),
        (lambda: Facts(2, items=["a", "a"]), "'a' is there twice"),
        (lambda: Facts(1, 5), "amount must be Money"),
        (lambda: Facts(1, to_json=1), "already means something"),
        (lambda: Facts(1, when=object()), "no JSON form"),
    ],
)
def test_facts_refuse_what_they_cannot_keep(make, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_a_preview_survives_the_database() -> None:
    rows = [["p1", Money("5", "EUR"), date(2026, 1, 2), None, 3, True, Decimal("1.50")]]
    preview = Preview("Refund", ["one line"], list("abcdefg"), rows)
    assert preview.sample == (("p1", Money("5", "EUR"), "2026-01-02", None, 3, "true", "1.50"),)
    assert Preview.from_json(json.loads(json.dumps(preview.to_json()))) == preview


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preview(" "), "title"),
        (lambda: Preview("t", "one line"), "impact"),
        (lambda: Preview("t", [], ["a", "b"], [["only one"]]), "one cell for each"),
        (lambda: Preview("t", [], ["a"], [[1.5]]), "a cell must be"),
    ],
)
def test_a_preview_refuses_what_it_cannot_show(make, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.text()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
        max_leaves=8,
    )
)
def test_the_spelling_is_json_and_stable(value: object) -> None:
    spelled = canonical(value)
    assert canonical(json.loads(spelled)) == spelled
    assert canonical(json.loads(json.dumps(value))) == spelled


def test_numbers_that_jsonb_makes_equal_are_spelled_alike() -> None:
    assert canonical([1.0, 1e20, -0.0, 1e23]) == canonical([1, 10**20, 0, 10**23])
    assert canonical({"b": 1, "a": 2}) == '{"a":2,"b":1}'
    assert digest({"b", "a"}) == digest(["a", "b"])


class Inner(BaseModel):
    kinds: frozenset[int]


class WithSets(BaseModel):
    tags: set[str]
    more: dict[str, list[Inner]]


SETS = """
from tests.unit.agent.test_tool_values import Inner, WithSets, canonical
print(canonical(WithSets(tags=set("abcdefgh"), more={"x": [Inner(kinds=frozenset([3, 1, 2**61]))]})))
"""


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_the_sets_of_a_model_are_spelled_alike_in_every_process(seed: str) -> None:
    spelled = subprocess.run(
        [sys.executable, "-c", SETS],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    kinds = '{"x":[{"kinds":[1,2305843009213693952,3]}]}'  # in the order of their spelling
    tags = ",".join(f'"{letter}"' for letter in "abcdefgh")
    assert spelled.stdout.strip() == f'{{"more":{kinds},"tags":[{tags}]}}'


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("NaN"), object(), b"x", {1: 2}, *ENDLESS]
)
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        plain(value)


ROWS = [(f"p{n:02}", Money(n % 10, "EUR")) for n in range(38)]


def test_the_sample_is_the_largest_two_and_a_spread_and_never_the_first_five() -> None:
    chosen = [row[0] for row in pick_rows(ROWS)]
    assert chosen[:2] == ["p09", "p19"]
    assert len(set(chosen)) == 5
    assert chosen[2:] == sorted(chosen[2:])
    assert int(chosen[4][1:]) > 25


def test_amounts_of_several_currencies_are_not_compared() -> None:
    rows = [(f"y{n:02}", Money(1000 + n, "JPY")) for n in range(20)]
    rows += [(f"e{n:02}", Money(900 + n, "EUR")) for n in range(20)]
    assert pick(rows)[1] == 0
    assert {row[1].currency for row in pick(rows)[0]} == {"JPY", "EUR"}
    assert pick(rows[:20]) == (pick_rows(rows[:20]), 2)


def test_what_was_added_comes_first() -> None:
    assert [row[0] for row in pick_rows(ROWS, added={"p01", "p02", "p03"})][:3] == ["p01", "p02", "p03"]


def test_more_additions_than_rows_are_chosen_from_in_the_same_way() -> None:
    added = {f"p{n:02}" for n in range(10, 30)}
    chosen = [row[0] for row in pick_rows(ROWS, added=added)]
    assert chosen[:2] == ["p19", "p29"]
    assert set(chosen) <= added


def test_rows_have_the_size_that_the_tool_says() -> None:
    assert pick_rows(ROWS, limit=1, size=lambda row: row[0]) == [ROWS[-1]]


@given(st.integers(0, 40), st.integers(1, 8))
def test_a_sample_never_repeats_a_row_and_is_as_long_as_it_may_be(rows: int, limit: int) -> None:
    chosen = pick_rows([(str(n),) for n in range(rows)], limit=limit, added={"3", "5"})
    assert len(chosen) == len(set(chosen)) == min(rows, limit)


def test_a_tool_error_always_says_something() -> None:
    assert ToolError(" ").message
    error = ToolError("the provider is down", done=["p1"])
    assert (str(error), error.done) == ("the provider is down", ("p1",))


def test_the_key_does_not_exist_while_a_call_is_only_measured() -> None:

    measuring = Context(run_id="r1", requested_by="U0ANA", log=structlog.get_logger())
    with pytest.raises(RuntimeError, match="only in execute and undo"):
        _ = measuring.idempotency_key


def test_a_count_is_kept_as_the_tool_says_it() -> None:
    count = Count()
    ctx = Context(run_id="r1", requested_by="U0ANA", log=structlog.get_logger(), count=count)
    said = []
    for step in ((12, 41), (13, None), (0, 0)):
        ctx.progress(*step)
        said.append(count.said)
    assert said == [(12, 41), (13, None), (0, 0)]


@pytest.mark.parametrize(
    "step", [(-1, 41), (42, 41), ("12", 41), (12, "41"), (None, None), (1.5, 3), (True, 3), (10**28, None)]
)
def test_a_count_that_makes_no_sense_is_left_out(step: Any) -> None:
    count = Count()
    ctx = Context(run_id="r1", requested_by="U0ANA", log=structlog.get_logger(), count=count)
    ctx.progress(1, 2)
    ctx.progress(*step)
    assert count.said == (1, 2)


def test_where_nobody_looks_a_count_harms_nothing() -> None:
    Context(run_id="r1", requested_by="U0ANA", log=structlog.get_logger()).progress(1, 2)
