"""The shop in a database of the test's own, its provider, and calls as the house makes them."""

import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import structlog
from psycopg.rows import dict_row

from agent.schema import validate
from agent.tool import Context, Facts, Preview, Tool
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.seed import create_shop
from tests.databases import Database


@dataclass(frozen=True)
class Shop:
    """Asks the shop's tables directly."""

    url: str

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values)

    def failed_ids(self) -> list[str]:
        return [
            row["id"] for row in self.rows("SELECT id FROM shop.payments WHERE status = 'failed' ORDER BY id")
        ]


@pytest.fixture
async def shop(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The shop as the story begins, used under the app's role as the tools use it."""
    await create_shop(empty_database.owner_url)
    monkeypatch.setenv("DATABASE_URL", empty_database.url)
    return Shop(empty_database.owner_url)


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RefundProvider]:
    async with RefundProvider.start() as running:
        monkeypatch.setenv("SHOP_PROVIDER_URL", running.url)
        yield running


def context(key: str = "ap_1", attempt: int = 1) -> Context:
    return Context(
        run_id="run_1",
        requested_by="U0MARTA",
        log=structlog.get_logger(),
        idempotency_key=key,
        attempt=attempt,
    )


async def called(function: Any, *values: Any) -> Any:
    """Call a tool's function whether it is `def` or `async def`."""
    result = function(*values)
    return await result if inspect.isawaitable(result) else result


async def measured(tool: Tool, raw: dict[str, Any]) -> tuple[Any, Facts, Preview]:
    """Validate, measure and preview, as when a call is proposed."""
    assert tool.facts
    assert tool.preview
    input = validate(tool, raw)
    facts = await called(tool.facts, input, context())
    return input, facts, await called(tool.preview, input, facts, context())


async def executed(tool: Tool, raw: dict[str, Any], key: str = "ap_1", attempt: int = 1) -> Any:
    return await called(tool.execute, validate(tool, raw), context(key, attempt))
