"""The shop's way to its schema `shop` in the database that DATABASE_URL names."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from psycopg import AsyncConnection, OperationalError
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from agent.tool import ToolError

Shop: TypeAlias = AsyncConnection[DictRow]
CONNECT_SECONDS = 5
NO_SHOP = (
    "the example shop is not in this database; the demo makes it in one of its own, docs/stripe.md says how "
    "to make it in yours, and VISTOBUENO_TOOLS can name other tools"
)


@asynccontextmanager
async def open_shop() -> AsyncIterator[Shop]:
    """Connect to the shop for one piece of work; ToolError if it is not there."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise ToolError("DATABASE_URL is not set; set it to the database that has the shop")
    async with open_database(url) as shop:
        # not by the error of a later statement: by then something may have been done
        found = await shop.execute("SELECT to_regclass('shop.payments') IS NOT NULL AS there")
        [shops] = await found.fetchall()
        if not shops["there"]:
            raise ToolError(NO_SHOP)
        yield shop


async def shop_is_there() -> None:
    """Raise ToolError if the shop is not in the database; what ails the database itself is said elsewhere."""
    if not os.environ.get("DATABASE_URL"):
        return
    with suppress(OperationalError):
        async with open_shop():
            pass


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Shop]:
    """Connect to a database that has the shop or is to have it, every statement its own transaction."""
    url = url.replace("postgresql+psycopg://", "postgresql://", 1)
    async with await AsyncConnection.connect(
        url, autocommit=True, row_factory=dict_row, connect_timeout=CONNECT_SECONDS
    ) as shop:
        yield shop


async def do_once(key: str, work: Callable[[Shop], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Do `work` and keep its result under `key` in one transaction; a repeat gets the kept result."""
    async with open_shop() as shop, shop.transaction():
        # an attempt still under way makes this wait until it is committed or gone
        begun = await shop.execute(
            "INSERT INTO shop.done (key) VALUES (%s) ON CONFLICT DO NOTHING RETURNING key", [key]
        )
        if await begun.fetchone() is None:
            return await _kept_result(shop, key)
        result = await work(shop)
        await shop.execute("UPDATE shop.done SET result = %s WHERE key = %s", [Jsonb(result), key])
        return result


async def _kept_result(shop: Shop, key: str) -> dict[str, Any]:
    [kept] = await (await shop.execute("SELECT result FROM shop.done WHERE key = %s", [key])).fetchall()
    result: dict[str, Any] = kept["result"]
    return result
