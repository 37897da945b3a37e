"""The refund provider is another party: it honours keys, counts, and fails as it is told."""

import asyncio
from typing import Any

import aiohttp
import pytest

from agent.tools.shop.provider import Fault, RefundProvider

BODY = {"payment_id": "pay_0007", "amount": "12.50", "currency": "EUR", "reason": "failed"}


async def post(
    provider: RefundProvider, key: str | None = "k1", **changes: str
) -> tuple[int, dict[str, Any]]:
    headers = {"Idempotency-Key": key} if key else {}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{provider.url}/refunds", json=BODY | changes, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


async def test_the_same_key_gives_the_same_answer_and_one_refund(provider: RefundProvider) -> None:
    assert await post(provider) == await post(provider)
    assert (len(provider.refunds), provider.requests) == (1, 2)


async def test_the_same_key_for_another_refund_is_refused(provider: RefundProvider) -> None:
    await post(provider)
    status, said = await post(provider, amount="12.51")
    assert (status, said) == (422, {"error": "the key was used for another refund"})
    assert len(provider.refunds) == 1


async def test_a_request_without_a_key_is_refused(provider: RefundProvider) -> None:
    assert (await post(provider, key=None))[0] == 400


async def test_two_keys_refund_one_payment_twice_so_that_a_mistake_can_be_counted(
    provider: RefundProvider,
) -> None:
    await post(provider, "k1")
    await post(provider, "k2")
    async with aiohttp.ClientSession() as http, http.get(f"{provider.url}/refunds") as answer:
        counted = await answer.json()
    assert (counted["count"], counted["distinct_payments"]) == (2, 1)


async def test_a_lost_answer_has_refunded(provider: RefundProvider) -> None:
    provider.plan(Fault.LOST_ANSWER)
    with pytest.raises(aiohttp.ClientError):
        await post(provider)
    assert len(provider.refunds) == 1


async def test_a_held_answer_comes_when_it_is_released(provider: RefundProvider) -> None:
    provider.plan(Fault.HELD_ANSWER)
    asking = asyncio.create_task(post(provider))
    await provider.holding.wait()
    assert len(provider.refunds) == 1
    assert not asking.done()
    provider.release()
    assert (await asking)[0] == 200


async def test_a_server_error_has_not_refunded(provider: RefundProvider) -> None:
    provider.plan(Fault.SERVER_ERROR)
    assert (await post(provider))[0] == 500
    assert provider.refunds == ()


async def test_a_refused_payment_is_refused_under_every_key(provider: RefundProvider) -> None:
    provider.refused_payments.add("pay_0007")
    assert [(await post(provider, key))[0] for key in ("k1", "k2")] == [402, 402]


async def test_a_key_keeps_its_answer_when_the_card_is_closed_later(provider: RefundProvider) -> None:
    first = await post(provider)
    provider.refused_payments.add("pay_0007")
    assert await post(provider) == first
