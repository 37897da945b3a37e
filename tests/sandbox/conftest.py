"""A running sandbox and a real Web API client for it."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import client_of


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox.running(rate_limits=RateLimits.off(), retry_delays=(0.0, 0.0, 0.0)) as running:
        yield running


@pytest.fixture
def client(sandbox: Sandbox) -> AsyncWebClient:
    return client_of(sandbox)


@pytest.fixture
async def browser(sandbox: Sandbox) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession() as http:
        yield Browser(sandbox, http)
