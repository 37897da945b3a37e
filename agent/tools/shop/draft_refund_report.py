"""Draft a report on refunds, which can be taken back."""

from typing import Any

from pydantic import BaseModel, Field

from agent.tool import Context, Facts, Money, Preview, Risk, Tool, ToolError
from agent.tools.shop.database import Shop, do_once, open_shop, shop_is_there
from agent.tools.shop.words import counted


class DraftRefundReport(BaseModel):
    """Draft a report on payments for the finance team. A draft is shown to nobody before it is published."""

    title: str = Field(title="Title", min_length=1, max_length=120)
    summary: str = Field(title="Summary", min_length=1, max_length=2000)
    payment_ids: list[str] = Field(title="Payments", min_length=1, max_length=500)


async def measure(input: DraftRefundReport, ctx: Context) -> Facts:
    """Count and add up the payments that the report is about."""
    async with open_shop() as shop:
        found = await shop.execute(
            "SELECT id, amount, currency FROM shop.payments WHERE id = ANY(%s)", [input.payment_ids]
        )
        rows = await found.fetchall()
    unknown = set(input.payment_ids) - {row["id"] for row in rows}
    if unknown:
        raise ToolError(f"there are no payments {', '.join(sorted(unknown))}; leave them out or look them up")
    total = Money("0", "EUR")
    for row in rows:
        total += Money(row["amount"], row["currency"])
    return Facts(len(rows), total)


def show(input: DraftRefundReport, facts: Facts, ctx: Context) -> Preview:
    """Show what the report is about."""
    amount = facts.amount.text() if facts.amount else "?"
    return Preview(f"Draft a report on {counted(facts.count, 'payment')} · {amount}", [input.title])


async def draft(input: DraftRefundReport, ctx: Context) -> dict[str, Any]:
    """Write the draft and give its id."""

    async def write(shop: Shop) -> dict[str, Any]:
        written = await shop.execute(
            "INSERT INTO shop.reports (title, summary, payment_ids) VALUES (%s, %s, %s) RETURNING id",
            [input.title, input.summary, input.payment_ids],
        )
        [row] = await written.fetchall()
        return {"report_id": row["id"]}

    return await do_once(ctx.idempotency_key, write)


async def discard(input: DraftRefundReport, result: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Delete the draft; one that is gone already is as good as deleted."""
    async with open_shop() as shop:
        await shop.execute("DELETE FROM shop.reports WHERE id = %s", [result["report_id"]])
    return {"discarded": result["report_id"]}


draft_refund_report = Tool(
    name="draft_refund_report",
    input=DraftRefundReport,
    risk=Risk.REVERSIBLE,
    effect="report",
    facts=measure,
    preview=show,
    execute=draft,
    undo=discard,
    repeatable=True,
    timeout="15s",
    doing="Drafting a refund report",
    check=shop_is_there,
)
