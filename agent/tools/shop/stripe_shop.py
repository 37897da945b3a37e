"""The example shop with a charge in Stripe's test mode for each of its failed payments.

    python -m agent.tools.shop.stripe_shop

makes the shop anew in the database of DATABASE_OWNER_URL or DATABASE_URL, and the charges in the account of
STRIPE_API_KEY, which must be a test key.
"""

import asyncio
import os
import sys
from uuid import uuid4

import psycopg

from agent.tool import Money, ToolError
from agent.tools.shop.database import Shop, open_database
from agent.tools.shop.minor_units import minor_units
from agent.tools.shop.payment_client import Refused, StripeAccount, Unanswered, open_stripe, stripe_account
from agent.tools.shop.seed import NotOurShop, create_shop

CARD = "tok_visa"
"""A card of https://docs.stripe.com/testing; the money is not real."""


async def charge_failed_payments(database_url: str, account: StripeAccount) -> int:
    """Charge every failed payment that Stripe does not know yet; gives how many.

    Raises ToolError for a live key or without the library, and Refused.
    """
    _refuse_live(account)
    made, once = 0, uuid4().hex
    async with open_database(database_url) as shop, open_stripe(account) as client:
        for payment_id, amount in await _uncharged(shop):
            charge = await client.charge(minor_units(amount), amount.currency, CARD, payment_id, once)
            await shop.execute("UPDATE shop.payments SET charged_as = %s WHERE id = %s", [charge, payment_id])
            made += 1
    return made


def _refuse_live(account: StripeAccount) -> None:
    if account.mode != "test":
        raise ToolError("STRIPE_API_KEY is a live key; these charges are for Stripe's test mode alone")


async def _uncharged(shop: Shop) -> list[tuple[str, Money]]:
    found = await shop.execute(
        """SELECT id, amount, currency FROM shop.payments
            WHERE status = 'failed' AND charged_as IS NULL ORDER BY id"""
    )
    return [(row["id"], Money(row["amount"], row["currency"])) for row in await found.fetchall()]


async def make() -> str:
    """Make it all and say so; what it raises is a clause on what is missing, and nothing is made then."""
    account = stripe_account()
    if account is None:
        raise ToolError("STRIPE_API_KEY is not set; set it to a test key (sk_test_…) of your account")
    url = os.environ.get("DATABASE_OWNER_URL") or os.environ.get("DATABASE_URL")
    if not url:
        raise ToolError("DATABASE_URL is not set; set it to the database that is to have the shop")
    _refuse_live(account)
    async with open_stripe(account) as client:
        await client.try_key()
    await create_shop(url)
    made = await charge_failed_payments(url, account)
    return f"The shop is made, and {made} of its payments are charged in Stripe's test mode."


def main() -> None:
    """The command."""
    try:
        print(asyncio.run(make()))
    except (ToolError, NotOurShop, Refused, Unanswered, psycopg.Error) as error:
        sys.exit(f"The shop cannot be made: {str(error).strip()}.")


if __name__ == "__main__":
    main()
