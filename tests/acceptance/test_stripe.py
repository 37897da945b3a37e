"""Workers die by SIGKILL around refunds at Stripe, at one that remembers keys and at one that forgets them.

What counts is what Stripe has: never two refunds of one payment, and in the end as many as were approved.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import psycopg
import pytest

from agent.tools.shop.payment_client import StripeAccount
from agent.tools.shop.stripe_shop import charge_failed_payments
from bot.sandbox import Message
from store import audit
from store.transitions import ApprovalStatus
from tests.acceptance.children import Child, child
from tests.acceptance.scripts import ask_for_refunds
from tests.acceptance.stage import Stage, eventually, staged
from tests.databases import Database
from tests.integration.store.rows import execute, shift_clock
from tests.standins.stripe.careless import CarelessStripe
from tests.standins.stripe.line import TEST_KEY, Fault, StripeLine
from tests.standins.stripe.outsider import INSTALLED, outsiders_stripe

PAYMENT = "SELECT FROM shop.payments WHERE id = %(payment)s FOR UPDATE"
APPROVAL = "SELECT FROM approvals FOR UPDATE"
POINTS = [
    pytest.param(21, Fault.REQUEST_HELD, None, id="a request is not there yet"),
    pytest.param(21, Fault.ANSWER_HELD, None, id="an answer is on its way"),
    pytest.param(21, Fault.ANSWER_HELD, PAYMENT, id="an answer is there and not marked"),
    pytest.param(38, Fault.ANSWER_HELD, APPROVAL, id="everything is done and not recorded"),
]
"""Where the worker dies: at which refund, what is held there, and what is locked before that is let go."""


@dataclass
class Scene:
    """The product without a worker, a line to a Stripe, and what a worker is started with."""

    stage: Stage
    line: StripeLine
    database: Database
    environ: dict[str, str]

    def worker(self) -> AbstractAsyncContextManager[Child]:
        """A worker of the product."""
        return child(self.stage, "worker", **self.environ)

    async def dies(self, at: int, held: Fault, locked: str | None) -> Message:
        """Marta approves the 38 refunds that Leo asks for, and the worker that makes them dies there.

        Its lease is over then; gives what Leo asked.
        """
        self.line.plan(*[None] * (at - 1), held)
        async with self.worker() as first:
            asked = await self.stage.ask()
            await self.stage.marta.click(await self.stage.card("Refund 38 payments"), "Approve")
            await asyncio.wait_for(self.line.holding.wait(), 20)
            if locked is None:
                await first.kill()
            else:
                await self._killed_at(first, locked)
        self.line.release()
        shift_clock(self.database, "16 seconds")
        return asked

    async def _killed_at(self, worker: Child, locked: str) -> None:
        """The answer comes in, and the worker dies where it wants what is locked."""
        payment = self.line.asked[-1].split(":")[1]
        async with await psycopg.AsyncConnection.connect(self.database.owner_url) as connection:
            await connection.execute(locked.encode(), {"payment": payment})
            self.line.release()
            waiting = (
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            await eventually(lambda: self.stage.db.query(waiting))
            await worker.kill()

    def marked(self) -> int:
        """How many payments the shop knows to be refunded by the call."""
        [(count,)] = execute(
            self.database.owner_url, "SELECT count(*) FROM shop.payments WHERE refund_id IS NOT NULL"
        )
        return int(count)


@asynccontextmanager
async def scene(
    database: Database,
    patch: pytest.MonkeyPatch,
    running: AbstractAsyncContextManager[str],
    *,
    honours_keys: str,
) -> AsyncIterator[Scene]:
    """38 payments, each with its charge at a Stripe."""
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(staged(database, patch, ask_for_refunds(), work=False))
        url = await stack.enter_async_context(running)
        line = await stack.enter_async_context(StripeLine.to(url))
        await charge_failed_payments(database.owner_url, StripeAccount(TEST_KEY, url))
        environ = {
            "STRIPE_API_KEY": TEST_KEY,
            "STRIPE_API_BASE": line.url,
            "SHOP_PROVIDER_HONOURS_KEYS": honours_keys,
        }
        yield Scene(stage, line, database, environ)


def assert_each_once(refunded: list[str], count: int) -> None:
    assert (len(refunded), len(set(refunded))) == (count, count)


@INSTALLED
@pytest.mark.parametrize(("at", "held", "locked"), POINTS)
async def test_where_keys_are_remembered_another_worker_refunds_the_rest_and_each_payment_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, at: int, held: Fault, locked: str | None
) -> None:
    async with scene(database, monkeypatch, outsiders_stripe(), honours_keys="yes") as on:
        asked = await on.dies(at, held, locked)
        marked = on.marked()
        async with on.worker():
            await on.stage.said(asked, "That is all.")
        assert (await on.stage.approval()).status is ApprovalStatus.EXECUTED
        assert_each_once(await on.line.refunded(), 38)
        assert len(on.line.asked) <= at + 38 - marked, "what is marked was asked for again"
        assert on.marked() == 38
        assert (await audit.verify(on.stage.db)).broken == ()


@pytest.mark.parametrize(("at", "held", "locked"), POINTS)
async def test_where_keys_are_forgotten_nothing_is_asked_for_again_until_a_person_lets_it_be_tried(
    database: Database, monkeypatch: pytest.MonkeyPatch, at: int, held: Fault, locked: str | None
) -> None:
    async with scene(database, monkeypatch, CarelessStripe.running(), honours_keys="no") as on:
        asked = await on.dies(at, held, locked)
        async with on.worker():
            [card] = on.stage.cards
            await on.stage.sandbox.until(lambda: "Try again" in on.stage.marta.buttons(card), timeout=20)
            assert (await on.stage.approval()).status is ApprovalStatus.UNKNOWN
            assert len(on.line.asked) == at
            assert_each_once(await on.line.refunded(), at - (held is Fault.REQUEST_HELD))
            await on.stage.marta.click(card, "Try again")
            await on.stage.said(asked, "That is all.")
        assert_each_once(await on.line.refunded(), 38)
        assert (await on.stage.approval()).status is ApprovalStatus.EXECUTED
        assert (await audit.verify(on.stage.db)).broken == ()
