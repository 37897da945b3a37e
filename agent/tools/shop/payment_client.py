"""The shop's way to its payment provider: Stripe if STRIPE_API_KEY is set, else the one of SHOP_PROVIDER_URL.

A client makes one refund at a time, under a key, and says what became of it in one of three ways:

    Made       the provider has made it, now or at an earlier attempt with this key
    Refused    an exception: it was certainly not made with this key, and will not be
    any other exception: nobody knows
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agent.tool import Money, ToolError
from agent.tools.shop.minor_units import minor_units

if TYPE_CHECKING:
    from agent.tools.shop.stripe_client import StripeClient

NOT_INSTALLED = (
    "STRIPE_API_KEY is set, but the package stripe is not installed; install it with pip install "
    "'vistobueno[stripe]', or from requirements.lock"
)
STRIPE_IDS = ("ch_", "py_", "pi_")
"""A charge, a payment that is no card's, a payment intent: https://docs.stripe.com/api/refunds/create"""


@dataclass(frozen=True)
class Wanted:
    """One refund to make; `charged_as` is how the provider calls the payment, if not as the shop does."""

    payment_id: str
    charged_as: str | None
    amount: Money
    reason: str
    key: str


@dataclass(frozen=True)
class Made:
    """A refund that the provider has made; `pending`: the money is still on its way."""

    id: str
    pending: bool = False


class Refused(Exception):
    """The provider did not make the refund; the text says why, as a clause that begins with the payment."""


class RefundedBefore(Refused):
    """Nothing is left to refund: others did it, not this call."""


class Unanswered(Exception):
    """The provider could not be asked; the text says why, as a clause."""


class Misplaced(Exception):
    """The provider made another refund than was wanted; `made` is that one, and the text says which."""

    def __init__(self, made: Made, message: str) -> None:
        self.made = made
        super().__init__(message)


class PaymentClient(Protocol):
    """A connection to a payment provider, which `provider` names for people."""

    provider: str

    async def refund(self, wanted: Wanted, *, again: bool) -> Made:
        """Make this refund; `again`: an earlier attempt of the call may have made it.

        Raises Refused if it was certainly not made, Misplaced, or anything else if nobody knows.
        """
        ...


@dataclass(frozen=True)
class StripeAccount:
    """What STRIPE_API_KEY and STRIPE_API_BASE name; `base` is None for Stripe's own address."""

    key: str = field(repr=False)
    base: str | None

    @property
    def provider(self) -> str:
        """What people read: "Stripe, test mode"."""
        return f"Stripe, {self.mode} mode"

    @property
    def mode(self) -> str:
        """ "test" or "live": the key says it, and one that does not is taken for live."""
        return "test" if "_test_" in self.key else "live"


def stripe_account(environ: Mapping[str, str] = os.environ) -> StripeAccount | None:
    """The account at Stripe, None if there is none; ToolError for a variable that cannot be used."""
    key, base = (environ.get(name, "").strip() for name in ("STRIPE_API_KEY", "STRIPE_API_BASE"))
    if not key:
        return None
    if not key.startswith(("sk_", "rk_")) or not (key.isascii() and key.isprintable()) or " " in key:
        raise ToolError(
            "STRIPE_API_KEY is no secret key of Stripe; copy one that begins with sk_ or rk_ from the page "
            "API keys of its dashboard"
        )
    account = StripeAccount(key, base.rstrip("/") or None)
    if account.base is not None:
        _check_base(account.base, account)
    return account


def _check_base(base: str, account: StripeAccount) -> None:
    try:
        parts = urlsplit(base)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is no number
        good = False
    if not good:
        raise ToolError("STRIPE_API_BASE is not a web address; write it as http://host:port, or unset it")
    if account.mode == "live":
        raise ToolError(
            "STRIPE_API_BASE is for tests, and a live key is sent to nobody but Stripe; unset it, or use a "
            "test key"
        )


def honours_keys(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the provider remembers idempotency keys, so that a refund may be asked for again.

    Stripe does, and the local one. SHOP_PROVIDER_HONOURS_KEYS set to anything but "yes" says that this one
    does not.
    """
    return environ.get("SHOP_PROVIDER_HONOURS_KEYS", "").strip().lower() in {"", "yes"}


def check_refundable(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Raise ToolError if the provider could refund none of these payments: before anybody is asked.

    Gives what people should know of the provider ("Stripe, test mode"), or None for the local one.
    """
    account = stripe_account()
    if account is None:
        return None
    if find_spec("stripe") is None:
        raise ToolError(NOT_INSTALLED)
    unmapped = [row["id"] for row in rows if not (row["charged_as"] or "").startswith(STRIPE_IDS)]
    if unmapped:
        raise ToolError(
            f"it is not known how Stripe calls {', '.join(sorted(unmapped))}; the column charged_as of "
            "shop.payments needs the id of the charge (ch_…) or of the payment intent (pi_…)"
        )
    for row in rows:
        minor_units(Money(row["amount"], row["currency"]))
    return account.provider


@asynccontextmanager
async def open_client() -> AsyncIterator[PaymentClient]:
    """Connect to the provider for one batch; ToolError if the environment names none that can be used."""
    account = stripe_account()
    if account is not None:
        async with open_stripe(account) as client:
            yield client
        return
    from agent.tools.shop.local_client import LocalClient

    async with LocalClient.opened(os.environ.get("SHOP_PROVIDER_URL")) as local:
        yield local


@asynccontextmanager
async def open_stripe(account: StripeAccount) -> "AsyncIterator[StripeClient]":
    """Connect to Stripe; ToolError without its library, which is large, and loaded only here."""
    try:
        module = await asyncio.to_thread(import_module, "agent.tools.shop.stripe_client")
    except ModuleNotFoundError as error:
        raise ToolError(NOT_INSTALLED) from error
    client: type[StripeClient] = module.StripeClient
    async with client.opened(account) as opened:
        yield opened
