"""Refund failed payments, the whole batch in one call."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import DictRow
from pydantic import BaseModel, Field, field_validator

from agent.tool import Context, Facts, Money, Preview, Risk, Tool, ToolError, ask_when, forbid_when
from agent.tools.shop.database import Shop, open_shop, shop_is_there
from agent.tools.shop.payment_client import (
    Misplaced,
    PaymentClient,
    RefundedBefore,
    Refused,
    Unanswered,
    Wanted,
    check_refundable,
    honours_keys,
    open_client,
    open_stripe,
    stripe_account,
)
from agent.tools.shop.words import counted, repeated


class RefundPayments(BaseModel):
    """Refund failed payments back to the card they were charged on. Give all of them in one call."""

    payment_ids: list[str] = Field(title="Payments", min_length=1, max_length=500)
    reason: str = Field(title="Reason", min_length=1, max_length=200)

    @field_validator("payment_ids")
    @classmethod
    def each_once(cls, payment_ids: list[str]) -> list[str]:
        """Refuse an id that is there twice."""
        if again := repeated(payment_ids):
            raise ValueError(f"give every payment once; repeated: {again}")
        return payment_ids


async def measure(input: RefundPayments, ctx: Context) -> Facts:
    """Count and add up those of the payments that can be refunded now."""
    async with open_shop() as shop:
        rows = await _payments(shop, input.payment_ids)
    unknown = set(input.payment_ids) - {row["id"] for row in rows}
    if unknown:
        raise ToolError(f"there are no payments {', '.join(sorted(unknown))}; leave them out or look them up")
    failed = [row for row in rows if row["status"] == "failed"]
    settled = sorted(row["id"] for row in rows if row["status"] != "failed")
    provider = check_refundable(failed)
    # what was approved for test mode must not run in live mode
    more = {} if provider is None else {"provider": provider}
    return Facts(len(failed), _total(failed), [row["id"] for row in failed], not_refundable=settled, **more)


async def show(input: RefundPayments, facts: Facts, ctx: Context) -> Preview:
    """Show what is refunded to whom."""
    async with open_shop() as shop:
        rows = [row for row in await _payments(shop, input.payment_ids) if row["id"] in facts.items]
    if not rows:
        raise ToolError("none of these payments can be refunded; look up which have failed")
    customers = len({row["customer_id"] for row in rows})
    days = sorted(row["charged_at"].date() for row in rows)
    provider = facts.more.get("provider")
    return Preview(
        title=f"Refund {counted(facts.count, 'payment')} · {facts.amount.text() if facts.amount else '?'}",
        impact=[
            f"to the cards of {counted(customers, 'customer')}",
            f"charged on {days[0]}" if days[0] == days[-1] else f"charged from {days[0]} to {days[-1]}",
            f"the provider is told: {input.reason}",
            *([f"through {provider}"] if provider else []),
        ],
        columns=["Payment", "Customer", "Amount", "Charged"],
        sample=[
            [r["id"], r["customer"], Money(r["amount"], r["currency"]), r["charged_at"].date()] for r in rows
        ],
    )


async def failed_now(input: RefundPayments, ctx: Context) -> dict[str, int]:
    """Count the failed payments of the whole shop: more of them, and the batch is no longer all."""
    async with open_shop() as shop:
        counted_now = await shop.execute("SELECT count(*) AS n FROM shop.payments WHERE status = 'failed'")
        [row] = await counted_now.fetchall()
    return {"failed payments": row["n"]}


async def refund(input: RefundPayments, ctx: Context) -> dict[str, Any]:
    """Ask the provider for each refund under its own key, marking each as soon as it is granted.

    A repeat leaves alone what is marked with this key, and asks for the rest in the same order: so the one
    whose answer was lost comes first.
    """
    batch = _Batch(input.reason, ctx)
    async with open_shop() as shop, open_client() as provider:
        rows = await _payments(shop, input.payment_ids)
        if ctx.attempt <= 1:
            _check_refundable(rows, ctx.idempotency_key)
        await _begin(shop, ctx, provider.provider)
        for row in rows:
            if row["refund_key"] != ctx.idempotency_key:
                await _check_turn(shop, ctx)
                await batch.refund(shop, provider, row)
            batch.done.append(row["id"])
            ctx.progress(len(batch.done), len(rows))
    ctx.log.info("refunded", payments=len(batch.done), total=str(_total(rows)))
    on_the_way = {"pending": batch.pending} if batch.pending else {}
    return {
        "refunded": len(batch.done),
        "total": _total(rows).to_json(),
        "payment_ids": batch.done,
        **on_the_way,
    }


class _Batch:
    """The refunds of one call: what is done so far, and how many of those the provider has not paid yet."""

    def __init__(self, reason: str, ctx: Context) -> None:
        self.done: list[str] = []
        self.pending = 0
        self._reason = reason
        self._key = ctx.idempotency_key
        self._again = ctx.attempt > 1

    async def refund(self, shop: Shop, provider: PaymentClient, row: DictRow) -> None:
        """Refund one payment and mark it; ToolError, with what was done before, if that is not possible."""
        if row["status"] != "failed":
            raise ToolError(f"{row['id']} can no longer be refunded", done=self.done)
        try:
            made = await provider.refund(self._wanted(row), again=self._again)
        except RefundedBefore as error:
            # or every later batch would stop at it
            await _mark_refunded(shop, row["id"], None, None)
            raise ToolError(str(error), done=self.done) from error
        except Refused as error:
            raise ToolError(str(error), done=self.done) from error
        except Misplaced as error:
            await _mark_refunded(shop, row["id"], self._key, error.made.id)
            raise ToolError(str(error), done=[*self.done, row["id"]]) from error
        await _mark_refunded(shop, row["id"], self._key, made.id)
        self.pending += made.pending

    def _wanted(self, row: DictRow) -> Wanted:
        amount = Money(row["amount"], row["currency"])
        return Wanted(row["id"], row["charged_as"], amount, self._reason, f"{self._key}:{row['id']}")


async def provider_answers() -> str | None:
    """Ask Stripe whether it takes the key, if there is one; the local provider is the demo's own.

    ToolError if it does not, or without the shop.
    """
    await shop_is_there()
    account = stripe_account()
    if account is None:
        return None
    async with open_stripe(account) as client:
        try:
            await client.try_key()
        except (Refused, Unanswered) as error:
            raise ToolError(str(error)) from error
    return f"Stripe takes the key, {account.mode} mode"


async def _payments(shop: Shop, payment_ids: list[str]) -> list[DictRow]:
    found = await shop.execute(
        """SELECT p.id, p.status, p.amount, p.currency, p.charged_at, p.customer_id, p.charged_as,
                  p.refund_key, coalesce(c.name, '(deleted)') AS customer
             FROM shop.payments p LEFT JOIN shop.customers c ON c.id = p.customer_id
            WHERE p.id = ANY(%s) ORDER BY p.charged_at, p.id""",
        [payment_ids],
    )
    return await found.fetchall()


def _total(rows: Sequence[DictRow]) -> Money:
    total = Money("0", "EUR")
    for row in rows:
        total += Money(row["amount"], row["currency"])
    return total


def _check_refundable(rows: Sequence[DictRow], key: str) -> None:
    """Raise ToolError, before anything is asked for, if one of the payments is refunded or gone."""
    gone = sorted(row["id"] for row in rows if row["status"] != "failed" and row["refund_key"] != key)
    if gone:
        raise ToolError(f"{', '.join(gone)} can no longer be refunded")


async def _begin(shop: Shop, ctx: Context, provider: str) -> None:
    """Note where the refunds of a call are made, and which attempt makes them from now on.

    Another provider knows nothing of its keys. What is raised is no ToolError: nothing is known of the
    earlier attempt.
    """
    noted = await shop.execute(
        """INSERT INTO shop.batches AS b (key, provider, attempt) VALUES (%s, %s, %s)
           ON CONFLICT (key) DO UPDATE SET attempt = greatest(b.attempt, excluded.attempt)
           RETURNING provider""",
        [ctx.idempotency_key, provider, ctx.attempt],
    )
    [begun] = await noted.fetchall()
    if begun["provider"] != provider:
        raise RuntimeError(f"it was begun at {begun['provider']}, and the provider is {provider} now")


async def _check_turn(shop: Shop, ctx: Context) -> None:
    """Raise RuntimeError if a later attempt makes the refunds now: this one slept, and was replaced."""
    found = await shop.execute("SELECT attempt FROM shop.batches WHERE key = %s", [ctx.idempotency_key])
    [batch] = await found.fetchall()
    if batch["attempt"] != ctx.attempt:
        raise RuntimeError(f"attempt {batch['attempt']} has taken over from attempt {ctx.attempt}")


async def _mark_refunded(shop: Shop, payment_id: str, key: str | None, refund_id: str | None) -> None:
    await shop.execute(
        """UPDATE shop.payments SET status = 'refunded', refund_key = %s, refund_id = %s
            WHERE id = %s AND status = 'failed'""",
        [key, refund_id, payment_id],
    )


refund_payments = Tool(
    name="refund_payments",
    input=RefundPayments,
    risk=Risk.IRREVERSIBLE,
    effect="refund",
    facts=measure,
    policy=(
        ask_when(lambda i, f: f.count > 1 or f.amount > Money("50", "EUR")),
        forbid_when(
            lambda i, f: len(f.not_refundable) > 0,
            "only failed payments can be refunded, and some of these are not; look up which have failed",
        ),
    ),
    preview=show,
    precondition=failed_now,
    execute=refund,
    repeatable=honours_keys(),
    timeout="10m",  # 500 refunds, one after the other
    personal=frozenset({"Customer"}),
    followup="send_email",
    reasons=("Wrong amount", "Needs a closer look first", "The customer was helped another way"),
    doing="Refunding payments",
    check=provider_answers,
)
