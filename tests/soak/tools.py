"""The shop's refund for many at once: nobody counts what others refund meanwhile."""

from dataclasses import replace

from agent.tool import Context, Facts, Preview, Tool
from agent.tools.shop.refund_payments import RefundPayments, refund_payments, show


async def named(input: RefundPayments, facts: Facts, ctx: Context) -> Preview:
    """The shop's preview, under a title that tells this request from all others."""
    shown = await show(input, facts, ctx)
    return replace(shown, title=f"Refund {' and '.join(input.payment_ids)}")


TOOLS: tuple[Tool, ...] = (replace(refund_payments, precondition=None, preview=named, followup=None),)
