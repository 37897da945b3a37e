"""Refund failed payments, the whole batch in one call."""

import os
from decimal import Decimal
from typing import Any

from aiohttp import ClientSession, ClientTimeout
from psycopg.rows import DictRow
from pydantic import BaseModel, Field, field_validator

from agent.tool import Context, Facts, Money, Preview, Risk, Tool, ToolError, ask_when, forbid_when
from agent.tools.shop.database import Shop, open_shop
from agent.tools.shop.words import counted

REQUEST_SECONDS = 10


class RefundPayments(BaseModel):
    """Refund failed payments back to the card they were charged on. Give all of them in one call."""

    payment_ids: list[str] = Field(title="Payments", min_length=1, max_length=500)
    reason: str = Field(title="Reason", min_length=1, max_length=200)

    @field_validator("payment_ids")
    @classmethod
    def each_once(cls, payment_ids: list[str]) -> list[str]:
        """Refuse an id that is there twice."""
        if len(set(payment_ids)) < len(payment_ids):
            raise ValueError("give every payment once")
        return payment_ids


async def measure(input: RefundPayments, ctx: Context) -> Facts:
    """Count and add up those of the payments that can be refunded now."""
    async with open_shop() as shop:
        rows = await _payments(shop, input.payment_ids)
    unknown = set(input.payment_ids) - {row["id"] for row in rows}
    if unknown:
        raise ToolError(f"there are no payments {', '.join(sorted(unknown))}; search for them again")
    failed = [row for row in rows if row["status"] == "failed"]
    total = Money("0", "EUR")
    for row in failed:
        total += Money(row["amount"], row["currency"])
    settled = sorted(row["id"] for row in rows if row["status"] != "failed")
    return Facts(len(failed), total, [row["id"] for row in failed], not_refundable=settled)


async def show(input: RefundPayments, facts: Facts, ctx: Context) -> Preview:
    """Show what is refunded to whom."""
    async with open_shop() as shop:
        rows = [row for row in await _payments(shop, input.payment_ids) if row["id"] in facts.items]
    if not rows:
        raise ToolError("none of these payments can be refunded; search for them again")
    customers = len({row["customer_id"] for row in rows})
    days = sorted(row["charged_at"].date() for row in rows)
    return Preview(
        title=f"Refund {counted(facts.count, 'payment')} · {facts.amount.text() if facts.amount else '?'}",
        impact=[
            f"to the cards of {counted(customers, 'customer')}",
            f"charged from {days[0]} to {days[-1]}",
            f"the provider is told: {input.reason}",
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
    """Ask the provider for each refund under its own key, marking each as soon as it is granted."""
    provider = os.environ.get("SHOP_PROVIDER_URL")
    if not provider:
        raise ToolError("SHOP_PROVIDER_URL is not set; set it to the refund provider's address")
    done: list[str] = []
    total = Money("0", "EUR")
    async with open_shop() as shop, ClientSession(timeout=ClientTimeout(total=REQUEST_SECONDS)) as http:
        rows = await _still_refundable(shop, input.payment_ids, ctx.idempotency_key)
        for row in rows:
            await _refund_one(http, provider, row, ctx.idempotency_key, input.reason, done)
            await _mark_refunded(shop, row["id"], ctx.idempotency_key)
            done.append(row["id"])
            ctx.progress(len(done), len(rows))
            total += Money(row["amount"], row["currency"])
    ctx.log.info("refunded", payments=len(done), total=str(total))
    return {"refunded": len(done), "total": total.to_json(), "payment_ids": done}


async def _payments(shop: Shop, payment_ids: list[str]) -> list[DictRow]:
    found = await shop.execute(
        """SELECT p.id, p.status, p.amount, p.currency, p.charged_at, p.customer_id, p.refund_key,
                  coalesce(c.name, '(deleted)') AS customer
             FROM shop.payments p LEFT JOIN shop.customers c ON c.id = p.customer_id
            WHERE p.id = ANY(%s) ORDER BY p.charged_at, p.id""",
        [payment_ids],
    )
    return await found.fetchall()


async def _still_refundable(shop: Shop, payment_ids: list[str], key: str) -> list[DictRow]:
    """Give the rows to refund, with those of an earlier attempt with this key: the provider knows them."""
    rows = await _payments(shop, payment_ids)
    ours = [row["id"] for row in rows if row["refund_key"] == key]
    able = [row for row in rows if row["status"] == "failed" or row["refund_key"] == key]
    if len(able) < len(payment_ids):
        gone = sorted(set(payment_ids) - {row["id"] for row in able})
        raise ToolError(f"{', '.join(gone)} can no longer be refunded", done=ours)
    return able


async def _refund_one(
    http: ClientSession, provider: str, row: DictRow, key: str, reason: str, done: list[str]
) -> None:
    amount: Decimal = row["amount"]
    body = {"payment_id": row["id"], "amount": str(amount), "currency": row["currency"], "reason": reason}
    headers = {"Idempotency-Key": f"{key}:{row['id']}"}
    async with http.post(f"{provider}/refunds", json=body, headers=headers) as answer:
        if 400 <= answer.status < 500:
            said = (await answer.json())["error"]
            raise ToolError(f"the provider refused to refund {row['id']}: {said}", done=done)
        # anything else that is no success may have refunded: raised as it is, nobody knows
        answer.raise_for_status()


async def _mark_refunded(shop: Shop, payment_id: str, key: str) -> None:
    await shop.execute(
        "UPDATE shop.payments SET status = 'refunded', refund_key = %s WHERE id = %s AND status = 'failed'",
        [key, payment_id],
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
            "only failed payments can be refunded, and some of these are not failed; search for them again",
        ),
    ),
    preview=show,
    precondition=failed_now,
    execute=refund,
    repeatable=True,
    timeout="60s",
    personal=frozenset({"Customer"}),
    followup="send_email",
    reasons=("Wrong amount", "Needs a closer look first", "The customer was helped another way"),
    doing="Refunding payments",
)
