"""Refunds at Stripe: each under its own idempotency key, and found again by it.

What Stripe answers is told apart by what is certain (https://docs.stripe.com/error-low-level):

    400, 401, 402, 403, 404   it was not made
    429                       it was not made: asked again after a while, a few times
    charge_already_refunded   nothing is left to refund: made by this call, if its refunds say so
    409, 5xx, no answer       nobody knows: the house asks again, with the same key
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import stripe
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TraceConfig, TraceRequestEndParams
from stripe.params import ChargeCreateParams, RefundCreateParams, RefundListParams

from agent.tools.shop.minor_units import minor_units
from agent.tools.shop.payment_client import (
    Made,
    Misplaced,
    RefundedBefore,
    Refused,
    StripeAccount,
    Unanswered,
    Wanted,
)

REQUEST_SECONDS = 20
BUSY_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""How long to wait before each further try when Stripe takes no more requests."""
KEY = "vistobueno_key"
"""Where a refund says in its metadata which item of which call made it."""

CERTAIN = (
    stripe.CardError,
    stripe.AuthenticationError,
    stripe.PermissionError,
    stripe.RateLimitError,
)
"""With InvalidRequestError: what Stripe says when it has done nothing."""

# it would keep an id in the user's home, and report how long requests take
stripe.enable_telemetry = False


class StripeClient:
    """Asks Stripe in the name of one account."""

    def __init__(self, api: stripe.StripeClient, provider: str) -> None:
        self.provider = provider
        self._refunds = api.v1.refunds
        self._charges = api.v1.charges

    @classmethod
    @asynccontextmanager
    async def opened(cls, account: StripeAccount) -> AsyncIterator[Self]:
        """Connect for one batch."""
        limit = ClientTimeout(total=REQUEST_SECONDS)
        async with _session() as session:
            api = stripe.StripeClient(
                account.key,
                base_addresses={"api": account.base} if account.base else None,
                http_client=stripe.AIOHTTPClient(timeout=limit, session=session),
                max_network_retries=0,  # the house tries again, and counts its tries
            )
            yield cls(api, account.provider)

    async def try_key(self) -> None:
        """Ask for something that costs nothing; raises Refused or Unanswered if refunds cannot be read."""
        try:
            await self._refunds.list_async({"limit": 1})
        except (stripe.APIConnectionError, stripe.APIError, stripe.RateLimitError) as error:
            raise Unanswered(said(error)) from error
        except stripe.StripeError as error:
            raise Refused(said(error)) from error

    async def charge(self, units: int, currency: str, card: str, payment_id: str, once: str) -> str:
        """Charge a card of test mode, in the currency's smallest unit, once; gives the charge's id.

        Raises Refused, whatever went wrong.
        """
        params: ChargeCreateParams = {
            "amount": units,
            "currency": currency.lower(),
            "source": card,
            "metadata": {"payment": payment_id},
        }
        try:
            charge = await self._charges.create_async(params, {"idempotency_key": f"{once}:{payment_id}"})
        except stripe.StripeError as error:
            raise Refused(f"{payment_id} cannot be charged: {said(error)}") from error
        return charge.id

    async def refund(self, wanted: Wanted, *, again: bool) -> Made:
        """Make this refund, or find the one that an earlier attempt made.

        A repeat looks first: a key may have been forgotten, or a 500 be all that it brings again.
        """
        made = await self._find(wanted) if again else None
        return made or await self._create(wanted)

    async def _create(self, wanted: Wanted) -> Made:
        try:
            refund = await self._ask(wanted)
        except stripe.InvalidRequestError as error:
            if error.code == "charge_already_refunded":
                return await self._was_refunded(wanted)
            raise _refused(wanted, error) from error
        except stripe.IdempotencyError:
            # an earlier request had this key and other words: what became of that one, its refunds say
            made = await self._find(wanted)
            if made is None:
                raise
            return made
        except CERTAIN as error:
            raise _refused(wanted, error) from error
        return _made(wanted, refund)

    async def _ask(self, wanted: Wanted) -> stripe.Refund:
        params: RefundCreateParams = {
            "amount": minor_units(wanted.amount),
            "metadata": {KEY: wanted.key, "payment": wanted.payment_id, "reason": wanted.reason},
        }
        _name_charge(params, wanted)
        for seconds in BUSY_SECONDS:
            try:
                return await self._refunds.create_async(params, {"idempotency_key": wanted.key})
            except stripe.RateLimitError:
                await asyncio.sleep(seconds)
        return await self._refunds.create_async(params, {"idempotency_key": wanted.key})

    async def _find(self, wanted: Wanted) -> Made | None:
        """The refund of this payment that was made with this key."""
        params: RefundListParams = {"limit": 100}
        _name_charge(params, wanted)
        page = await self._refunds.list_async(params)
        async for refund in page.auto_paging_iter():
            if refund.metadata is not None and refund.metadata.to_dict().get(KEY) == wanted.key:
                return _made(wanted, refund)
        return None

    async def _was_refunded(self, wanted: Wanted) -> Made:
        made = await self._find(wanted)
        if made is None:
            raise RefundedBefore(
                f"{wanted.payment_id} had been refunded at Stripe before, not by this call, and was not "
                "refunded again"
            )
        return made


@asynccontextmanager
async def _session() -> AsyncIterator[ClientSession]:
    """A session that lets go of every answer: the library keeps one whose body broke off."""
    answers: list[ClientResponse] = []

    async def keep(session: ClientSession, context: object, ended: TraceRequestEndParams) -> None:
        answers.append(ended.response)

    trace = TraceConfig()
    trace.on_request_end.append(keep)
    async with ClientSession(trace_configs=[trace]) as session:
        try:
            yield session
        finally:
            for answer in answers:
                answer.close()


def _name_charge(params: RefundCreateParams | RefundListParams, wanted: Wanted) -> None:
    charged_as = wanted.charged_as or ""
    if charged_as.startswith("pi_"):
        params["payment_intent"] = charged_as
    else:
        params["charge"] = charged_as


def said(error: stripe.StripeError) -> str:
    """What is wrong, as a clause without a full stop."""
    if isinstance(error, stripe.AuthenticationError):
        return "Stripe does not take STRIPE_API_KEY; copy it again"
    if isinstance(error, stripe.APIConnectionError):
        return "Stripe cannot be reached; look at the network, and at STRIPE_API_BASE if it is set"
    words = " ".join((error.user_message or type(error).__name__).split()).rstrip(".")
    return f"Stripe says: {words}"


def _refused(wanted: Wanted, error: stripe.StripeError) -> Refused:
    return Refused(f"{wanted.payment_id} was not refunded. {said(error)}")


def _made(wanted: Wanted, refund: stripe.Refund) -> Made:
    if refund.status in {"failed", "canceled"}:
        raise Refused(f"{wanted.payment_id}: the refund {refund.id} is {refund.status} at Stripe")
    made = Made(refund.id, pending=refund.status != "succeeded")
    units, currency = minor_units(wanted.amount), wanted.amount.currency
    if (refund.amount, refund.currency.upper()) != (units, currency):
        raise Misplaced(
            made,
            f"Stripe refunded {refund.amount} {refund.currency.upper()} in its smallest unit for "
            f"{wanted.payment_id}, where {units} {currency} was asked; look at {refund.id} in its dashboard",
        )
    return made
