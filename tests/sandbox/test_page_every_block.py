"""The page shows whatever Slack takes: every block and element on every surface it passes on."""

import html
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.block_cases import HOME, MESSAGE, MODAL, Limit
from tests.sandbox.browsing import Browser, Document
from tests.sandbox.drive import show
from tests.sandbox.shape_cases import LIMITS
from tests.sandbox.surface_cases import SURFACES

Json = dict[str, Any]
pytestmark = pytest.mark.asyncio(loop_scope="module")
SHOWN = [
    (f"{name}-{on}", block, on)
    for name, block, passes in SURFACES
    for on in (MESSAGE, MODAL, HOME)
    if on in passes
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def module_browser() -> AsyncIterator[Browser]:
    async with Sandbox.running(rate_limits=RateLimits.off()) as sandbox, aiohttp.ClientSession() as http:
        yield Browser(sandbox, http)


async def page_with(browser: Browser, surface: str, blocks: list[Json], frame: Json) -> Document:
    """Marta's page with these blocks alone on it."""
    browser.sandbox.channel("C0SUPPORT").history.clear()
    browser.sandbox.workspace.modals.clear()
    assert (await show(browser.sandbox, surface, blocks, frame))["ok"]
    return await browser.open("U0MARTA", "home" if surface == HOME else "C0SUPPORT")


@pytest.mark.parametrize(("name", "block", "surface"), SHOWN, ids=[name for name, _, _ in SHOWN])
async def test_every_block_is_shown_on_its_surfaces(
    module_browser: Browser, name: str, block: Json, surface: str
) -> None:
    page = await page_with(module_browser, surface, [block], {})
    assert page.status == 200
    assert f'<div class="block {block["type"]}">' in page.html


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
async def test_what_stands_on_a_limit_is_shown(module_browser: Browser, limit: Limit) -> None:
    page = await page_with(module_browser, limit.surface, limit.good, limit.frame_good)
    assert page.status == 200
    shown = page.html.count('<div class="block ')
    assert shown >= len(limit.good), html.unescape(page.text)
