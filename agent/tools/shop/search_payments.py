"""Look for payments."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from agent.tool import Context, Risk, Tool
from agent.tools.shop.database import open_shop, shop_is_there


class SearchPayments(BaseModel):
    """Look for payments by status: how many there are, what they are worth, and the newest of them.

    "failed" are payments that were charged although the order failed; only those can be refunded.
    """

    status: Literal["paid", "failed", "refunded"] = Field(title="Status")
    limit: int = Field(default=100, title="Most payments to list", ge=1, le=500)


async def search(input: SearchPayments, ctx: Context) -> dict[str, Any]:
    """Count and add up everything that matches, list the newest `limit` of it."""
    async with open_shop() as shop:
        found = await shop.execute(
            """SELECT p.id, c.name AS customer, p.amount, p.currency, p.charged_at::date AS charged_on,
                      count(*) OVER () AS matching, sum(p.amount) OVER () AS total
                 FROM shop.payments p LEFT JOIN shop.customers c ON c.id = p.customer_id
                WHERE p.status = %s ORDER BY p.charged_at DESC, p.id LIMIT %s""",
            [input.status, input.limit],
        )
        rows = await found.fetchall()
    return {
        "count": rows[0]["matching"] if rows else 0,
        "total": {"amount": str(rows[0]["total"] if rows else "0.00"), "currency": "EUR"},
        "ids": [row["id"] for row in rows],
        "payments": [_listed(row) for row in rows],
    }


def _listed(row: dict[str, Any]) -> dict[str, str]:
    return {
        "id": row["id"],
        "customer": row["customer"] or "(deleted)",
        "amount": f"{row['amount']} {row['currency']}",
        "charged_on": row["charged_on"].isoformat(),
    }


search_payments = Tool(
    name="search_payments",
    input=SearchPayments,
    risk=Risk.READ_ONLY,
    execute=search,
    timeout="15s",
    doing="Looking at payments",
    check=shop_is_there,
)
