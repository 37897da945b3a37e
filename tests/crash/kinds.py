"""The kinds of tools that the matrix is played with."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from agent.tools.shop.provider import RefundProvider
from tests.acceptance.stage import Stage
from tests.crash.provider import AtStripe, ForgetfulProvider, OwnProvider, Provider, Stripe
from tests.needs import lack
from tests.standins.stripe.careless import CarelessStripe
from tests.standins.stripe.outsider import INSTALLED, outsiders_stripe


@dataclass(frozen=True)
class Kind:
    """What the tool promises of a second call with the same key, and the processes that it is played with.

    Refunds are made by the shop's own provider, which is `refunds`, or at `stripe`.
    """

    name: str
    repeatable: bool
    tools: str
    commands: tuple[str, ...]
    refunds: type[RefundProvider] = RefundProvider
    stripe: Stripe | None = None

    @property
    def finds_refunds(self) -> bool:
        """Whether another attempt looks first at what the earlier ones made, so that a person may let it."""
        return self.stripe is not None

    def provider(self, stage: Stage) -> AbstractAsyncContextManager[Provider]:
        """Who makes the refunds."""
        if self.stripe is None:
            return nullcontext(OwnProvider(stage.provider))
        return AtStripe.running(self.stripe, honours_keys=self.repeatable)


_ALONE, _APART = ("dev",), ("web", "worker")
_MAY, _MAY_NOT = "agent.tools:TOOLS", "tests.crash.tools:TOOLS"

KINDS = (
    Kind("repeatable", True, _MAY, _ALONE),
    Kind("not repeatable", False, _MAY_NOT, _APART, refunds=ForgetfulProvider),
)
"""With the shop's own provider."""
WITH_KEYS = Kind("Stripe", True, _MAY, _ALONE, stripe=outsiders_stripe)
WITHOUT_KEYS = Kind("Stripe without keys", False, _MAY_NOT, _APART, stripe=CarelessStripe.running)
AT_STRIPE = (WITH_KEYS, WITHOUT_KEYS)


def lack_of(kind: Kind) -> str | None:
    """What this machine lacks for it, as a clause; None: it can be played."""
    return lack(**INSTALLED.mark.kwargs) if kind is WITH_KEYS else None
