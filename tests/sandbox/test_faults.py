"""Faults a test can order for the app's calls."""

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncConnectionErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Fault, Sandbox
from tests.sandbox.drive import error_of

Json = dict[str, Any]


async def test_faults_come_as_ordered_and_then_no_more(sandbox: Sandbox, client: AsyncWebClient) -> None:
    sandbox.faults.add("chat.postMessage", Fault.error("fatal_error"))
    sandbox.faults.add("chat.postMessage", Fault.http(500))
    sandbox.faults.add("chat.postMessage", Fault.rate_limited(7), times=2)
    args = {"channel": "C0SUPPORT", "text": "x"}
    assert await error_of(client, "chat.postMessage", **args) == "fatal_error"
    statuses = []
    for _ in range(3):
        with pytest.raises(SlackApiError) as error:
            await client.chat_postMessage(channel="C0SUPPORT", text="x")
        statuses.append((error.value.response.status_code, error.value.response.headers.get("Retry-After")))
    assert statuses == [(500, None), (429, "7"), (429, "7")]
    assert await error_of(client, "chat.postMessage", **args) is None
    assert len(sandbox.channel("C0SUPPORT").messages) == 1


@pytest.mark.parametrize(("fault", "posted"), [(Fault.drop_before(), 0), (Fault.drop_after(), 1)])
async def test_a_dropped_connection_may_come_before_or_after_the_effect(
    sandbox: Sandbox, client: AsyncWebClient, fault: Fault, posted: int
) -> None:
    sandbox.faults.add("chat.postMessage", fault)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await client.chat_postMessage(channel="C0SUPPORT", text="x")
    assert len(sandbox.channel("C0SUPPORT").messages) == posted


async def test_a_client_that_retries_after_a_lost_answer_posts_twice(sandbox: Sandbox) -> None:
    client = AsyncWebClient(
        "xoxb-sandbox", base_url=sandbox.api_url, retry_handlers=[AsyncConnectionErrorRetryHandler()]
    )
    sandbox.faults.add("chat.postMessage", Fault.drop_after())
    await client.chat_postMessage(channel="C0SUPPORT", text="x")
    assert len(sandbox.channel("C0SUPPORT").messages) == 2


async def test_a_hung_call_ends_with_the_callers_patience_or_the_sandbox(sandbox: Sandbox) -> None:
    client = AsyncWebClient("xoxb-sandbox", base_url=sandbox.api_url, retry_handlers=[])
    sandbox.faults.add("auth.test", Fault.hang())
    hung = asyncio.create_task(client.auth_test())
    await sandbox.until(lambda: sandbox.calls)
    await sandbox.stop()
    with pytest.raises(aiohttp.ClientError):
        await hung


async def test_every_call_is_kept_with_its_outcome(sandbox: Sandbox, client: AsyncWebClient) -> None:
    await client.auth_test()
    await error_of(client, "users.info", user="U0NONE")
    assert [(c.method, c.error) for c in sandbox.calls] == [
        ("auth.test", None),
        ("users.info", "user_not_found"),
    ]
