"""One browser for the tests of a process; a demo and windows of its own for each test."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser.app import App, running
from tests.databases import Database

if TYPE_CHECKING:  # tests without a browser are skipped, and not broken
    from playwright.async_api import Browser

    from tests.browser.chromium import Windows

ROOT = Path(__file__).parents[2]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Debian's chromium."""
    from tests.browser import chromium

    async with chromium.running() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def windows(
    database: Database, chromium: Browser, request: pytest.FixtureRequest
) -> AsyncIterator[Windows]:
    """Windows on a demo of the test's own; afterwards nothing may have gone wrong in them."""
    from tests.browser import demo

    async with demo.running(database) as address, _opened(chromium, address, request) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def app() -> AsyncIterator[App]:
    """A workspace of the test's own, with an app in it that does what the test says."""
    async with running() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def on_app(app: App, chromium: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Windows]:
    """Windows on that workspace; afterwards nothing may have gone wrong in them."""
    async with _opened(chromium, app.sandbox.base_url, request) as opened:
        yield opened


@asynccontextmanager
async def _opened(chromium: Browser, address: str, request: pytest.FixtureRequest) -> AsyncIterator[Windows]:
    from tests.browser.chromium import Windows
    from tests.browser.look import Pictures

    test = re.sub(r"^test_|\[.*", "", request.node.name).replace("_", "-")
    opened = Windows(chromium, address, Pictures(ROOT / "build" / "screenshots", test))
    try:
        yield opened
    finally:
        await opened.close()
    assert opened.faults == []
