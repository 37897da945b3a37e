"""Delete customers with all that is known about them."""

from datetime import date
from typing import Any, Self

from psycopg.rows import DictRow
from pydantic import BaseModel, Field, model_validator

from agent.tool import Context, Facts, Preview, Risk, Tool, ToolError, always_ask
from agent.tools.shop.database import Shop, do_once, open_shop, shop_is_there
from agent.tools.shop.words import counted

# the quarter is reckoned in UTC, in the seed as well: a session's time zone must not decide
BILLED_THIS_QUARTER = """EXISTS (SELECT 1 FROM shop.invoices i WHERE i.customer_id = c.id
    AND i.issued_on >= date_trunc('quarter', now() AT TIME ZONE 'UTC')::date)"""


class DeleteCustomers(BaseModel):
    """Delete customers for good: a list of them, or every account opened before a day."""

    customer_ids: list[str] = Field(default=[], title="Customers", max_length=500)
    opened_before: date | None = Field(default=None, title="Opened before")

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """Refuse both ways to choose, and none."""
        if bool(self.customer_ids) == (self.opened_before is not None):
            raise ValueError("give either customer_ids or opened_before")
        return self


async def measure(input: DeleteCustomers, ctx: Context) -> Facts:
    """Count the customers, and those of them who were billed this quarter."""
    async with open_shop() as shop:
        rows = await _chosen(shop, input)
    unknown = set(input.customer_ids) - {row["id"] for row in rows}
    if unknown:
        raise ToolError(f"there are no customers {', '.join(sorted(unknown))}")
    if not rows:
        raise ToolError("no customer fits; nothing would be deleted")
    billed = sum(row["billed"] for row in rows)
    return Facts(len(rows), items=[row["id"] for row in rows], billed_this_quarter=billed)


async def show(input: DeleteCustomers, facts: Facts, ctx: Context) -> Preview:
    """Show how many go, and first those who were billed this quarter."""
    async with open_shop() as shop:
        rows = await _chosen(shop, input)
    rows.sort(key=lambda row: (not row["billed"], row["id"]))
    return Preview(
        title=f"Delete {counted(facts.count, 'customer')}",
        impact=[
            counted(facts.count, "customer"),
            f"{facts.billed_this_quarter} of them with invoices this quarter",
            f"oldest account opened on {min(row['opened_on'] for row in rows)}",
        ],
        columns=["Customer", "Name", "Opened", "First purchase", "Invoice this quarter"],
        sample=[
            [r["id"], r["name"], r["opened_on"], r["first_purchase_on"], "yes" if r["billed"] else "no"]
            for r in rows
        ],
    )


async def billed_now(input: DeleteCustomers, ctx: Context) -> dict[str, int]:
    """Count all customers, and how many of the chosen ones were billed this quarter."""
    async with open_shop() as shop:
        [row] = await (await shop.execute("SELECT count(*) AS n FROM shop.customers")).fetchall()
        billed = sum(row["billed"] for row in await _chosen(shop, input))
    return {"customers": row["n"], "with invoices this quarter": billed}


async def delete(input: DeleteCustomers, ctx: Context) -> dict[str, Any]:
    """Delete them and their invoices; payments stay, without the customer."""

    async def remove(shop: Shop) -> dict[str, Any]:
        gone = await shop.execute(
            "DELETE FROM shop.customers WHERE id = ANY(%s) OR opened_on < %s RETURNING id",
            [input.customer_ids, input.opened_before],
        )
        return {"deleted": len(await gone.fetchall())}

    return await do_once(ctx.idempotency_key, remove)


async def _chosen(shop: Shop, input: DeleteCustomers) -> list[DictRow]:
    found = await shop.execute(
        f"""SELECT c.id, c.name, c.opened_on, c.first_purchase_on, {BILLED_THIS_QUARTER} AS billed
              FROM shop.customers c WHERE c.id = ANY(%s) OR c.opened_on < %s ORDER BY c.id""",
        [input.customer_ids, input.opened_before],
    )
    return await found.fetchall()


delete_customers = Tool(
    name="delete_customers",
    input=DeleteCustomers,
    risk=Risk.IRREVERSIBLE,
    effect="delete_customer",
    facts=measure,
    policy=always_ask,
    preview=show,
    precondition=billed_now,
    execute=delete,
    repeatable=True,
    timeout="60s",
    personal=frozenset({"Name"}),
    reasons=("Still needed for the books", "Too many at once"),
    doing="Deleting customers",
    check=shop_is_there,
)
