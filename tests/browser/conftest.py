"""One browser for the tests of a process; a demo and windows of its own for each test."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

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
    from tests.browser.chromium import Windows
    from tests.browser.look import Pictures

    test = re.sub(r"^test_|\[.*", "", request.node.name).replace("_", "-")
    async with demo.running(database) as address:
        opened = Windows(chromium, address, Pictures(ROOT / "build" / "screenshots", test))
        yield opened
        await opened.close()
    assert opened.faults == []
