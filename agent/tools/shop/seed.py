"""The shop as it is when the story begins; made by the demo and the tests, never by `migrate`.

1,204 customers, 6 of them with invoices this quarter. 400 payments: 38 failed, worth exactly
4,120.00 EUR, 5 refunded, the rest paid. Overnight three more fail, worth 255.25 EUR: 41 and 4,375.25 EUR.
All people are invented.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

from psycopg.sql import SQL, Identifier

from agent.tools.shop.database import Shop, open_database

FAILED_COUNT = 38
FAILED_TOTAL = Decimal("4120.00")
OVERNIGHT = {"pay_0401": Decimal("74.90"), "pay_0402": Decimal("129.00"), "pay_0403": Decimal("51.35")}
BILLED_CUSTOMERS = (17, 203, 388, 611, 842, 1130)
MARK = "vistobueno: the example shop; made anew by every demo"

_PAYMENTS = 400
_REFUNDED = (33, 84, 145, 226, 352)
_GIVEN = (
    "Alba Amadou Beatriz Bruno Carla Dario Elena Emil Farida Gaspar Helena Hugo Ines Ivo Jana Joel Karim "
    "Lídia Luca Mira Nuno Olga Pau Rosa Sara Tomás Vera Yusuf"
)
_FAMILY = (
    "Abreu Alonso Antunes Aranda Barros Bauer Benali Bosch Cabral Calvo Campos Costa Diallo Duarte Esteves "
    "Faria Ferrer Fonseca Gallo Herrera Horvat Ibarra Jansen Keller Leal Lopes Maia Moreau Neves Novak Ortiz "
    "Pereira Pinto Quintana Ramos Rossi Salgado Serra Teixeira Urbano Vidal Weiss Zanetti"
)

_SCHEMA = """
CREATE SCHEMA shop;
CREATE TABLE shop.customers (
    id text PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL UNIQUE,
    opened_on date NOT NULL,
    first_purchase_on date NOT NULL
);
CREATE TABLE shop.invoices (
    id text PRIMARY KEY,
    customer_id text NOT NULL REFERENCES shop.customers ON DELETE CASCADE,
    amount numeric(12, 2) NOT NULL,
    issued_on date NOT NULL
);
CREATE INDEX ON shop.invoices (customer_id);
CREATE TABLE shop.payments (
    id text PRIMARY KEY,
    customer_id text REFERENCES shop.customers ON DELETE SET NULL,
    amount numeric(12, 2) NOT NULL CHECK (amount > 0),
    currency text NOT NULL DEFAULT 'EUR' CHECK (currency = 'EUR'),
    status text NOT NULL CHECK (status IN ('paid', 'failed', 'refunded')),
    charged_at timestamptz NOT NULL,
    charged_as text UNIQUE, -- what Stripe calls it: a charge (ch_…) or a payment intent (pi_…)
    refund_key text, -- of the call that refunded it
    refund_id text -- the provider's
);
CREATE INDEX ON shop.payments (customer_id);
CREATE TABLE shop.batches (key text PRIMARY KEY, provider text NOT NULL, attempt integer NOT NULL);
CREATE TABLE shop.reports (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    title text NOT NULL,
    summary text NOT NULL,
    payment_ids text[] NOT NULL,
    drafted_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE shop.outbox (
    key text NOT NULL,
    recipient text NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    put_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key, recipient)
);
CREATE TABLE shop.done (key text PRIMARY KEY, result jsonb);
GRANT USAGE ON SCHEMA shop TO PUBLIC;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shop TO PUBLIC;
"""


class NotOurShop(Exception):
    """The database has a schema `shop` that this module did not make; it is left alone."""


async def create_shop(database_url: str) -> None:
    """Make the shop anew, as the database's owner, whatever an earlier demo left of it.

    Raises NotOurShop, and changes nothing, if the schema `shop` belongs to somebody else.
    """
    async with open_database(database_url) as shop, shop.transaction():
        await _drop_old(shop)
        await shop.execute(_SCHEMA)
        await shop.execute(SQL("COMMENT ON SCHEMA shop IS {}").format(MARK))
        today = datetime.now(UTC).date()
        await _copy(
            shop, "customers", ["id", "name", "email", "opened_on", "first_purchase_on"], _customers(today)
        )
        await _copy(shop, "invoices", ["id", "customer_id", "amount", "issued_on"], _invoices(today))
        columns = ["id", "customer_id", "amount", "status", "charged_at"]
        await _copy(shop, "payments", columns, _payments(datetime.now(UTC)))


async def fail_three_overnight(database_url: str) -> list[str]:
    """Let the three payments of OVERNIGHT fail, if they have not yet; gives their ids."""
    now = datetime.now(UTC)
    async with open_database(database_url) as shop:
        for number, (payment_id, amount) in enumerate(OVERNIGHT.items()):
            await shop.execute(
                """INSERT INTO shop.payments (id, customer_id, amount, status, charged_at)
                   VALUES (%s, %s, %s, 'failed', %s) ON CONFLICT DO NOTHING""",
                [payment_id, _customer_id(70 + number), amount, now],
            )
    return list(OVERNIGHT)


async def count_failed(database_url: str) -> int:
    """Count the payments that have failed and are not refunded."""
    async with open_database(database_url) as shop:
        found = await shop.execute("SELECT count(*) AS n FROM shop.payments WHERE status = 'failed'")
        [row] = await found.fetchall()
    return int(row["n"])


async def _drop_old(shop: Shop) -> None:
    found = await shop.execute(
        "SELECT obj_description(oid, 'pg_namespace') AS mark FROM pg_namespace WHERE nspname = 'shop'"
    )
    old = await found.fetchone()
    if old is not None and old["mark"] != MARK:
        raise NotOurShop(
            "the database has a schema named shop that is not the example's; use another database"
        )
    if old is not None:
        await shop.execute("DROP SCHEMA shop CASCADE")


async def _copy(shop: Shop, table: str, columns: list[str], rows: Iterator[Sequence[Any]]) -> None:
    names = SQL(", ").join(map(Identifier, columns))
    into = SQL("COPY {} ({}) FROM STDIN").format(Identifier("shop", table), names)
    async with shop.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            await copy.write_row(row)


def _customer_id(number: int) -> str:
    return f"cus_{number:04}"


def _customers(today: date) -> Iterator[Sequence[Any]]:
    for number, (family, given) in enumerate(product(_FAMILY.split(), _GIVEN.split()), 1):
        opened_on = today - timedelta(days=31 + number * 787 % 1800)
        first_purchase_on = opened_on + timedelta(days=number % 30)
        email = f"{_ascii(given)}.{_ascii(family)}@example.com".lower()
        yield _customer_id(number), f"{given} {family}", email, opened_on, first_purchase_on


def _invoices(today: date) -> Iterator[Sequence[Any]]:
    quarter_began = date(today.year, 3 * ((today.month - 1) // 3) + 1, 1)
    for at, number in enumerate(BILLED_CUSTOMERS):
        yield f"inv_{at + 1:04}", _customer_id(number), Decimal(4900 + 1375 * at) / 100, quarter_began
    for at in range(300):
        issued_on = quarter_began - timedelta(days=1 + at * 3)
        yield f"inv_{at + 7:04}", _customer_id(1 + at * 4), Decimal(1500 + at * 37) / 100, issued_on


def _payments(now: datetime) -> Iterator[Sequence[Any]]:
    failed = iter(failed_amounts())
    for number in range(1, _PAYMENTS + 1):
        amount = next(failed, None) if number % 10 == 7 else None
        status = "failed" if amount else "refunded" if number in _REFUNDED else "paid"
        charged_at = now - timedelta(hours=7 + (_PAYMENTS - number) * 2, minutes=number * 13 % 60)
        customer_id = _customer_id(1 + number * 3)
        yield f"pay_{number:04}", customer_id, amount or _price(number), status, charged_at


def failed_amounts() -> list[Decimal]:
    """Give the 38 amounts, in EUR with cents; the last is what is missing to 4,120.00."""
    amounts = [_price(number) for number in range(1, FAILED_COUNT)]
    return [*amounts, FAILED_TOTAL - sum(amounts)]


def _price(number: int) -> Decimal:
    return Decimal(1990 + number * 6173 % 17503) / 100


def _ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
