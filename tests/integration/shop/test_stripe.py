"""Refunds at Stripe: once per payment whatever is lost, and told as it is; against two stand-ins."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
import pytest
import stripe

from agent.tool import ToolError
from agent.tools.shop import stripe_shop
from agent.tools.shop.payment_client import StripeAccount
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.stripe_shop import charge_failed_payments
from tests.integration.shop.conftest import Shop, executed, measured
from tests.standins.stripe.careless import CarelessStripe
from tests.standins.stripe.line import TEST_KEY, Fault, StripeLine
from tests.standins.stripe.outsider import INSTALLED, outsiders_stripe

FOUR = ["pay_0007", "pay_0017", "pay_0027", "pay_0037"]
BATCH = {"payment_ids": FOUR, "reason": "the order failed"}
NOBODY_KNOWS = (stripe.APIConnectionError, stripe.APIError, aiohttp.ClientError)


@asynccontextmanager
async def connected(
    shop: Shop, patch: pytest.MonkeyPatch, running: AbstractAsyncContextManager[str]
) -> AsyncIterator[StripeLine]:
    """A line to a Stripe that has a charge for every failed payment."""
    async with running as url, StripeLine.to(url) as made:
        await charge_failed_payments(shop.url, StripeAccount(TEST_KEY, url))
        patch.setenv("STRIPE_API_KEY", TEST_KEY)
        patch.setenv("STRIPE_API_BASE", f"{made.url}/")
        yield made


@pytest.fixture(
    params=[
        pytest.param(outsiders_stripe, marks=INSTALLED, id="outsider"),
        pytest.param(CarelessStripe.running, id="careless"),
    ]
)
async def line(
    shop: Shop, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[StripeLine]:
    """To one that others wrote, and to one that forgets keys."""
    async with connected(shop, monkeypatch, request.param()) as made:
        yield made


@pytest.fixture
async def outsider(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StripeLine]:
    """To the one that others wrote, which remembers keys and refuses a second refund."""
    async with connected(shop, monkeypatch, outsiders_stripe()) as made:
        yield made


@pytest.fixture
async def careless(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StripeLine]:
    """To the one that forgets keys, and refunds as often as it is asked."""
    async with connected(shop, monkeypatch, CarelessStripe.running()) as made:
        yield made


def marked(shop: Shop, payment_id: str) -> dict[str, object]:
    [row] = shop.rows("SELECT status, refund_key, refund_id FROM shop.payments WHERE id = %s", payment_id)
    return row


def charge_of(shop: Shop, payment_id: str) -> str:
    [row] = shop.rows("SELECT charged_as FROM shop.payments WHERE id = %s", payment_id)
    return str(row["charged_as"])


async def test_every_payment_is_refunded_once_under_a_key_of_its_own(shop: Shop, line: StripeLine) -> None:
    result = await executed(refund_payments, BATCH)
    assert result == {
        "refunded": 4,
        "total": {"amount": "346.84", "currency": "EUR"},
        "payment_ids": sorted(FOUR),
    }
    assert await line.refunded() == FOUR
    assert sorted(line.asked) == [f"ap_1:{payment_id}" for payment_id in FOUR]
    assert sum(refund["amount"] for refund in await line.refunds()) == 34684
    [refund] = [each for each in await line.refunds() if each["metadata"]["payment"] == "pay_0007"]
    assert marked(shop, "pay_0007") == {
        "status": "refunded",
        "refund_key": "ap_1",
        "refund_id": refund["id"],
    }


@pytest.mark.parametrize(
    "fault",
    [
        Fault.REQUEST_LOST,
        Fault.ANSWER_LOST,
        Fault.ERROR_BEFORE,
        Fault.ERROR_AFTER,
        Fault.KEY_IN_USE,
        Fault.NONSENSE,
    ],
)
async def test_what_nobody_knows_is_no_tool_error_and_a_repeat_does_the_rest_with_the_same_keys(
    line: StripeLine, fault: Fault
) -> None:
    line.plan(None, fault)
    with pytest.raises(NOBODY_KNOWS):
        await executed(refund_payments, BATCH)
    result = await executed(refund_payments, BATCH, attempt=2)
    assert result["payment_ids"] == sorted(FOUR)
    assert await line.refunded() == FOUR
    assert set(line.asked) == {f"ap_1:{payment_id}" for payment_id in FOUR}
    assert len(line.asked) <= 5


@pytest.mark.parametrize("fault", [Fault.DISPUTED, Fault.KEY_REVOKED, Fault.NOT_ALLOWED])
async def test_a_refusal_in_the_middle_says_what_went_through_and_a_new_call_does_the_rest(
    shop: Shop, line: StripeLine, fault: Fault
) -> None:
    line.plan(None, None, fault)
    with pytest.raises(ToolError, match=r"pay_0027 was not refunded\. Stripe ") as caught:
        await executed(refund_payments, BATCH)
    assert caught.value.done == ("pay_0007", "pay_0017")
    assert await line.refunded() == FOUR[:2]
    await executed(refund_payments, BATCH | {"payment_ids": FOUR[2:]}, key="ap_2")
    assert await line.refunded() == FOUR


async def test_a_stripe_that_is_busy_is_asked_again(line: StripeLine) -> None:
    line.plan(Fault.BUSY)
    await executed(refund_payments, BATCH)
    assert await line.refunded() == FOUR
    assert len(line.asked) == 5


async def test_a_stripe_that_stays_busy_has_refunded_nothing(
    line: StripeLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.shop.stripe_client.BUSY_SECONDS", (0.0, 0.0))
    line.plan(*[Fault.BUSY] * 3)
    with pytest.raises(ToolError, match="Too many requests"):
        await executed(refund_payments, BATCH)
    assert await line.refunded() == []


async def test_the_amount_goes_out_in_cents_with_the_reason(line: StripeLine) -> None:
    await executed(refund_payments, BATCH | {"payment_ids": ["pay_0007"]})
    [refund] = await line.refunds()
    assert (refund["amount"], refund["currency"]) == (8163, "eur")
    assert refund["metadata"] == {
        "vistobueno_key": "ap_1:pay_0007",
        "payment": "pay_0007",
        "reason": "the order failed",
    }


async def test_the_card_says_that_it_is_stripe_and_in_which_mode(shop: Shop, line: StripeLine) -> None:
    _, facts, preview = await measured(refund_payments, BATCH)
    assert facts.provider == "Stripe, test mode"
    assert "through Stripe, test mode" in preview.impact


async def test_what_was_shown_for_test_mode_is_not_what_is_measured_in_live_mode(
    shop: Shop, careless: StripeLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, shown, _ = await measured(refund_payments, BATCH)
    monkeypatch.setenv("STRIPE_API_KEY", "sk_live_of_nobody")
    monkeypatch.delenv("STRIPE_API_BASE")
    _, now, _ = await measured(refund_payments, BATCH)
    assert (shown.provider, now.provider) == ("Stripe, test mode", "Stripe, live mode")
    assert shown != now


async def test_an_attempt_that_wakes_up_after_another_has_taken_over_asks_for_nothing_more(
    line: StripeLine,
) -> None:
    line.plan(None, Fault.ANSWER_HELD)
    slept = asyncio.create_task(executed(refund_payments, BATCH))
    await line.holding.wait()
    assert (await executed(refund_payments, BATCH, attempt=2))["refunded"] == 4
    asked = len(line.asked)
    line.release()
    with pytest.raises(RuntimeError, match="attempt 2 has taken over from attempt 1"):
        await slept
    assert len(line.asked) == asked
    assert await line.refunded() == FOUR


async def test_an_attempt_that_begins_after_a_later_one_asks_for_nothing(line: StripeLine) -> None:
    line.plan(None, Fault.ANSWER_HELD)
    later = asyncio.create_task(executed(refund_payments, BATCH, attempt=2))
    await line.holding.wait()
    with pytest.raises(RuntimeError, match="attempt 2 has taken over from attempt 1"):
        await executed(refund_payments, BATCH)
    assert len(line.asked) == 2
    line.release()
    assert (await later)["refunded"] == 4
    assert await line.refunded() == FOUR


async def test_a_repeat_finds_its_refund_behind_pages_of_others(shop: Shop, careless: StripeLine) -> None:
    careless.plan(Fault.ANSWER_LOST)
    with pytest.raises(NOBODY_KNOWS):
        await executed(refund_payments, BATCH)
    for _ in range(3):
        await careless.refund(charge_of(shop, "pay_0007"))
    assert (await executed(refund_payments, BATCH, attempt=2))["payment_ids"] == sorted(FOUR)
    assert await careless.refunded() == ["by hand"] * 3 + FOUR


async def test_what_was_begun_at_one_provider_is_not_gone_on_with_at_another(
    careless: StripeLine, provider: RefundProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless.plan(None, Fault.ANSWER_LOST)
    with pytest.raises(NOBODY_KNOWS):
        await executed(refund_payments, BATCH)
    monkeypatch.setenv("STRIPE_API_KEY", "")
    with pytest.raises(RuntimeError, match="begun at Stripe, test mode, and the provider is the local"):
        await executed(refund_payments, BATCH, attempt=2)
    assert provider.requests == 0
    assert await careless.refunded() == FOUR[:2]


async def test_without_the_library_it_is_said_before_anybody_is_asked_and_again_when_it_runs(
    shop: Shop, careless: StripeLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "agent.tools.shop.stripe_client")
    monkeypatch.setitem(sys.modules, "stripe", None)
    for calling in (measured(refund_payments, BATCH), executed(refund_payments, BATCH)):
        with pytest.raises(ToolError, match=r"the package stripe is not installed; install it with pip"):
            await calling
    assert await careless.refunds() == []


async def test_the_shop_is_made_with_a_charge_for_each_failed_payment(
    shop: Shop, careless: StripeLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", shop.url)
    said = await stripe_shop.make()
    assert said == "The shop is made, and 38 of its payments are charged in Stripe's test mode."
    [row] = shop.rows("SELECT count(DISTINCT charged_as) FROM shop.payments WHERE status = 'failed'")
    assert row == {"count": 38}


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"STRIPE_API_KEY": ""}, "STRIPE_API_KEY is not set; set it to a test key"),
        ({"STRIPE_API_KEY": "sk_live_1", "STRIPE_API_BASE": ""}, "STRIPE_API_KEY is a live key"),
        ({"DATABASE_URL": ""}, "DATABASE_URL is not set"),
        ({"STRIPE_API_BASE": "http://127.0.0.1:1"}, "Stripe cannot be reached; look at the network"),
    ],
)
def test_a_shop_that_cannot_be_made_says_why_in_one_sentence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], why: str
) -> None:
    owner = {"DATABASE_URL": shop.url, "STRIPE_API_KEY": TEST_KEY, "STRIPE_API_BASE": "http://127.0.0.1:1"}
    for name, value in (owner | variables).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=f"^The shop cannot be made: {why}[^\n]*\\.$"):
        stripe_shop.main()


async def test_payments_that_stripe_does_not_know_are_named_before_anybody_is_asked(
    shop: Shop, line: StripeLine
) -> None:
    shop.run("UPDATE shop.payments SET charged_as = NULL WHERE id = 'pay_0017'")
    with pytest.raises(
        ToolError, match=r"how Stripe calls pay_0017; the column charged_as of shop\.payments"
    ):
        await measured(refund_payments, BATCH)


@INSTALLED
async def test_what_others_refunded_is_told_is_not_counted_and_holds_up_no_later_batch(
    shop: Shop, outsider: StripeLine
) -> None:
    await outsider.refund(charge_of(shop, "pay_0017"))
    with pytest.raises(ToolError, match="pay_0017 had been refunded at Stripe before, not by this") as caught:
        await executed(refund_payments, BATCH)
    assert caught.value.done == ("pay_0007",)
    assert marked(shop, "pay_0017") == {"status": "refunded", "refund_key": None, "refund_id": None}
    await executed(refund_payments, BATCH | {"payment_ids": FOUR[2:]}, key="ap_2")
    assert await outsider.refunded() == ["by hand", "pay_0007", "pay_0027", "pay_0037"]


@INSTALLED
async def test_a_refund_that_this_call_made_is_known_though_the_key_says_nothing_of_it(
    shop: Shop, outsider: StripeLine
) -> None:
    """The key was used with other words, or is forgotten: the refunds of the charge say whose it was."""
    outsider.plan(None, Fault.ANSWER_LOST)
    with pytest.raises(NOBODY_KNOWS):
        await executed(refund_payments, BATCH)
    result = await executed(refund_payments, BATCH | {"reason": "in other words"})
    assert result["payment_ids"] == sorted(FOUR)
    assert await outsider.refunded() == FOUR


async def test_a_payment_intent_is_refunded_as_one(shop: Shop, careless: StripeLine) -> None:
    shop.run("UPDATE shop.payments SET charged_as = 'pi_7' WHERE id = 'pay_0007'")
    await executed(refund_payments, BATCH | {"payment_ids": ["pay_0007"]})
    [refund] = await careless.refunds()
    assert (refund["payment_intent"], refund.get("charge")) == ("pi_7", None)


async def test_a_charge_in_another_currency_ends_the_batch_and_names_the_refund(
    shop: Shop, careless: StripeLine
) -> None:
    yen = await careless.charge(400000, "jpy")
    shop.run("UPDATE shop.payments SET charged_as = %s WHERE id = 'pay_0017'", yen)
    with pytest.raises(ToolError, match=r"JPY in its smallest unit for pay_0017.* look at re_2") as caught:
        await executed(refund_payments, BATCH)
    assert caught.value.done == ("pay_0007", "pay_0017")
    assert await careless.refunded() == FOUR[:2]


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_a_refund_that_stripe_gave_up_is_none(careless: StripeLine, status: str) -> None:
    careless.answers_with(status)
    with pytest.raises(ToolError, match=f"pay_0007: the refund re_1 is {status} at Stripe") as caught:
        await executed(refund_payments, BATCH)
    assert caught.value.done == ()


async def test_a_refund_that_is_on_its_way_is_made_and_said_to_be_on_its_way(careless: StripeLine) -> None:
    careless.answers_with("pending")
    result = await executed(refund_payments, BATCH)
    assert (result["refunded"], result["pending"]) == (4, 4)
