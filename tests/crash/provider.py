"""Who makes the refunds of a scene: the shop's own provider, or a stand-in for Stripe."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, Self

from aiohttp import web

from agent.tools.shop.payment_client import StripeAccount
from agent.tools.shop.provider import Fault, RefundProvider
from agent.tools.shop.stripe_client import KEY
from agent.tools.shop.stripe_shop import charge_failed_payments
from tests.standins.stripe import line
from tests.standins.stripe.line import TEST_KEY, StripeLine

Stripe = Callable[[], AbstractAsyncContextManager[str]]
"""A stand-in for it: its address while it runs."""


class ForgetfulProvider(RefundProvider):
    """It ignores keys, and stands behind a tool that must not be repeated: who asks twice refunds twice."""

    def __init__(self, pace: float = 0.0) -> None:
        super().__init__(pace)
        self._times = count(1)

    def _answer(self, key: str, body: dict[str, Any]) -> web.Response:
        return super()._answer(f"{key}#{next(self._times)}", body)


@dataclass(frozen=True)
class Refunded:
    """One refund that was made: the key that it was made with, and the payment."""

    key: str
    payment_id: str


class Provider(Protocol):
    """What a scene asks of it; `environ` are the variables of a process that refunds there."""

    environ: dict[str, str]

    @property
    def holding(self) -> asyncio.Event:
        """Set once an answer waits."""
        ...

    def hold(self) -> None:
        """Let the answer about the next refund, which is made, wait for `release`."""
        ...

    def release(self) -> None:
        """Answer what waits, and let nothing wait from now on."""
        ...

    async def charge(self, database_url: str) -> None:
        """Charge the shop's failed payments that it does not know yet, so that they can be refunded."""
        ...

    async def refunds(self) -> Sequence[Refunded]:
        """Every refund that it has, by its own count."""
        ...


class OwnProvider:
    """The shop's own, which knows every payment."""

    def __init__(self, local: RefundProvider) -> None:
        self.environ: dict[str, str] = {}
        self.holding = local.holding
        self._local = local

    def hold(self) -> None:
        self._local.plan(Fault.HELD_ANSWER)

    def release(self) -> None:
        self._local.release()

    async def charge(self, database_url: str) -> None:
        """Nothing to do."""

    async def refunds(self) -> Sequence[Refunded]:
        return [Refunded(made.key, made.payment_id) for made in self._local.refunds]


class AtStripe:
    """A stand-in for Stripe, over a line that can hold an answer."""

    def __init__(self, url: str, way: StripeLine, *, honours_keys: bool) -> None:
        self.environ = {
            "STRIPE_API_KEY": TEST_KEY,
            "STRIPE_API_BASE": way.url,
            "SHOP_PROVIDER_HONOURS_KEYS": "yes" if honours_keys else "no",
        }
        self.holding = way.holding
        self._line = way
        self._account = StripeAccount(TEST_KEY, url)

    @classmethod
    @asynccontextmanager
    async def running(cls, stripe: Stripe, *, honours_keys: bool) -> AsyncIterator[Self]:
        """One of its own, and the line to it."""
        async with stripe() as url, StripeLine.to(url) as way:
            yield cls(url, way, honours_keys=honours_keys)

    def hold(self) -> None:
        self._line.plan(line.Fault.ANSWER_HELD)

    def release(self) -> None:
        self._line.release()

    async def charge(self, database_url: str) -> None:
        await charge_failed_payments(database_url, self._account)

    async def refunds(self) -> Sequence[Refunded]:
        told = [refund["metadata"] for refund in await self._line.refunds()]
        return [Refunded(metadata[KEY], metadata["payment"]) for metadata in told]
