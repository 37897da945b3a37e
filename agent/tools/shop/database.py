"""The shop's way to its schema `shop` in the database that DATABASE_URL names."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from agent.tool import ToolError

Shop: TypeAlias = AsyncConnection[DictRow]
CONNECT_SECONDS = 5


@asynccontextmanager
async def open_shop(database_url: str | None = None) -> AsyncIterator[Shop]:
    """Connect for one piece of work, every statement its own transaction."""
    url = database_url or os.environ.get("DATABASE_URL")
    if not url:
        raise ToolError("DATABASE_URL is not set; set it to the database that has the shop")
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
