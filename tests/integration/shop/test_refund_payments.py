"""Refunds: measured by queries, once per payment at the provider, honest about what went through."""

import aiohttp
import pytest

from agent.judge import judge
from agent.schema import InvalidInput, validate
from agent.tool import Money, ToolError, Verdict
from agent.tools.shop.provider import Fault, RefundProvider
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.seed import OVERNIGHT, fail_three_overnight
from tests.integration.shop.conftest import Shop, called, context, executed, measured


def refund_of(ids: list[str]) -> dict[str, object]:
    return {"payment_ids": ids, "reason": "the order failed"}


async def test_the_batch_is_counted_and_added_up_by_code(shop: Shop) -> None:
    ids = shop.failed_ids()
    _, facts, preview = await measured(refund_payments, refund_of(ids))
    assert (facts.count, facts.amount, facts.items) == (38, Money("4120.00", "EUR"), tuple(ids))
    assert preview.title == "Refund 38 payments · €4,120.00"
    assert preview.columns == ("Payment", "Customer", "Amount", "Charged")
    assert len(preview.sample) == 38


async def test_the_precondition_is_the_number_of_failed_payments_of_the_whole_shop(shop: Shop) -> None:
    input = validate(refund_payments, refund_of(shop.failed_ids()[:2]))
    assert await called(refund_payments.precondition, input, context()) == {"failed payments": 38}
    await fail_three_overnight(shop.url)
    assert await called(refund_payments.precondition, input, context()) == {"failed payments": 41}


async def test_after_the_night_the_batch_is_41_and_worth_4375_25(shop: Shop) -> None:
    await fail_three_overnight(shop.url)
    _, facts, preview = await measured(refund_payments, refund_of(shop.failed_ids()))
    assert set(OVERNIGHT) < set(facts.items)
    assert preview.title == "Refund 41 payments · €4,375.25"


async def test_one_small_refund_is_allowed_and_anything_more_asks(shop: Shop) -> None:
    cheap, dear = "pay_0057", "pay_0017"
    verdicts = []
    for ids in ([cheap], [dear], [cheap, dear]):
        input, facts, _ = await measured(refund_payments, refund_of(ids))
        verdicts.append((facts.amount > Money("50", "EUR"), judge(refund_payments, input, facts)[0]))
    assert verdicts == [(False, Verdict.ALLOW), (True, Verdict.ASK), (True, Verdict.ASK)]


async def test_unknown_payments_fail_the_call_by_name(shop: Shop) -> None:
    with pytest.raises(ToolError, match="no payments pay_9998, pay_9999"):
        await measured(refund_payments, refund_of(["pay_9999", "pay_0007", "pay_9998"]))


async def test_payments_that_did_not_fail_are_left_out_and_forbidden(shop: Shop) -> None:
    input, facts, _ = await measured(refund_payments, refund_of(["pay_0007", "pay_0001"]))
    assert (facts.count, facts.items, facts.not_refundable) == (1, ("pay_0007",), ["pay_0001"])
    verdict, why = judge(refund_payments, input, facts)
    assert verdict is Verdict.FORBID
    assert why is not None and "only failed payments" in why.text


async def test_a_payment_given_twice_is_invalid() -> None:
    with pytest.raises(InvalidInput) as refused:
        validate(refund_payments, refund_of(["pay_0007", "pay_0017", "pay_0007"]))
    [(_, problem)] = refused.value.fields
    assert problem == "give every payment once; repeated: pay_0007"


async def test_of_many_payments_given_twice_the_first_are_named() -> None:
    twice = [f"pay_{number:04}" for number in range(1, 8)] * 2
    with pytest.raises(InvalidInput) as refused:
        validate(refund_payments, refund_of(twice))
    [(_, problem)] = refused.value.fields
    assert problem.endswith("repeated: pay_0001, pay_0002, pay_0003, pay_0004, pay_0005 and 2 more")


async def test_payments_of_one_day_are_charged_on_it(shop: Shop) -> None:
    one, *_, last = shop.failed_ids()
    _, _, of_one = await measured(refund_payments, refund_of([one]))
    _, _, of_two = await measured(refund_payments, refund_of([one, last]))
    days = [row[3] for row in of_two.sample]
    assert of_one.impact[1] == f"charged on {days[0]}"
    assert of_two.impact[1] == f"charged from {days[0]} to {days[1]}"


async def test_every_payment_is_refunded_once_and_no_longer_failed(
    shop: Shop, provider: RefundProvider
) -> None:
    ids = shop.failed_ids()
    result = await executed(refund_payments, refund_of(ids))
    assert result["total"] == {"amount": "4120.00", "currency": "EUR"}
    assert sorted(result["payment_ids"]) == ids
    assert sorted(refund.payment_id for refund in provider.refunds) == ids
    assert {refund.key for refund in provider.refunds} == {f"ap_1:{payment_id}" for payment_id in ids}
    assert shop.failed_ids() == []


async def test_a_repeat_with_the_same_key_asks_for_nothing_that_is_marked(
    shop: Shop, provider: RefundProvider
) -> None:
    batch = refund_of(shop.failed_ids()[:3])
    first = await executed(refund_payments, batch)
    assert await executed(refund_payments, batch, attempt=2) == first
    assert (len(provider.refunds), provider.requests) == (3, 3)


async def test_a_lost_answer_is_no_tool_error_and_the_same_key_finishes_the_batch(
    shop: Shop, provider: RefundProvider
) -> None:
    batch = refund_of(shop.failed_ids()[:3])
    provider.plan(None, Fault.LOST_ANSWER)
    with pytest.raises(aiohttp.ClientError):
        await executed(refund_payments, batch)
    assert len(provider.refunds) == 2
    result = await executed(refund_payments, batch, attempt=2)
    assert result["refunded"] == 3
    assert len(provider.refunds) == len({refund.payment_id for refund in provider.refunds}) == 3


async def test_a_server_error_leaves_open_what_happened(shop: Shop, provider: RefundProvider) -> None:
    provider.plan(Fault.SERVER_ERROR)
    with pytest.raises(aiohttp.ClientResponseError):
        await executed(refund_payments, refund_of(["pay_0007"]))
    assert shop.failed_ids()[0] == "pay_0007"


async def test_a_refusal_of_the_provider_names_what_went_through(
    shop: Shop, provider: RefundProvider
) -> None:
    provider.refused_payments.add("pay_0027")
    with pytest.raises(ToolError, match="pay_0027: the card is closed") as caught:
        await executed(refund_payments, refund_of(["pay_0007", "pay_0017", "pay_0027", "pay_0037"]))
    assert caught.value.done == ("pay_0007", "pay_0017")
    assert [refund.payment_id for refund in provider.refunds] == ["pay_0007", "pay_0017"]
    assert {"pay_0007", "pay_0017"}.isdisjoint(shop.failed_ids())


async def test_a_payment_that_somebody_else_refunded_stops_the_batch_before_it_begins(
    shop: Shop, provider: RefundProvider
) -> None:
    await executed(refund_payments, refund_of(["pay_0007"]), key="ap_other")
    with pytest.raises(ToolError, match="pay_0007 can no longer be refunded") as caught:
        await executed(refund_payments, refund_of(["pay_0007", "pay_0017"]))
    assert caught.value.done == ()
    assert len(provider.refunds) == 1


async def test_without_a_provider_nothing_happens_and_the_variable_is_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_PROVIDER_URL", raising=False)
    with pytest.raises(ToolError, match="SHOP_PROVIDER_URL"):
        await executed(refund_payments, refund_of(["pay_0007"]))
