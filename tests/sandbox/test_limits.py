"""Every documented limit of blocks and views: what stands exactly on it passes, one more is refused."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.block_cases import HOME, MESSAGE, MODAL, Limit
from tests.sandbox.drive import show
from tests.sandbox.shape_cases import LIMITS
from tests.sandbox.surface_cases import SURFACES

Json = dict[str, Any]
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared() -> AsyncIterator[Sandbox]:
    async with Sandbox.running(rate_limits=RateLimits.off()) as running:
        yield running


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
async def test_what_stands_on_the_limit_passes(shared: Sandbox, limit: Limit) -> None:
    answered = await show(shared, limit.surface, limit.good, limit.frame_good)
    assert answered["ok"], answered


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
async def test_what_passes_the_limit_is_refused_with_the_code_and_the_place(
    shared: Sandbox, limit: Limit
) -> None:
    answered = await show(shared, limit.surface, limit.bad, limit.frame_bad)
    assert answered["error"] == ("invalid_blocks" if limit.surface == MESSAGE else "invalid_arguments")
    assert any(limit.pointer in line for line in answered["response_metadata"]["messages"]), answered


@pytest.mark.parametrize("surface", [MESSAGE, MODAL, HOME])
@pytest.mark.parametrize(("name", "block", "passes_on"), SURFACES, ids=[name for name, _, _ in SURFACES])
async def test_a_block_passes_only_on_its_surfaces(
    shared: Sandbox, name: str, block: Json, passes_on: set[str], surface: str
) -> None:
    answered = await show(shared, surface, [block], {})
    refused = "invalid_blocks" if surface == MESSAGE else "invalid_arguments"
    assert answered.get("error") == (None if surface in passes_on else refused), answered
