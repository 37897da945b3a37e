from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from agent.model import AnthropicModel, ModelRefused
from agent.scripted import UnexpectedCall, UnusedSteps, expect_text, say, script, step
from bot.sandbox.model_api import create_model_api
from tests.standins.model import model_under_rules, scripted_server, serve
from tests.standins.proxy import ModelProxy
from tests.standins.rule_cases import CASES, request

HEADERS = {"x-api-key": "test", "anthropic-version": "2026-10-21"}
ONE_STEP = script(step(say("Hi.")))


async def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers=HEADERS if headers is None else headers) as session,
        session.post(f"{url}/v1/messages", data=BytesIO(json.dumps(body).encode())) as response,
    ):
        return response.status, await response.json()


async def ask(url: str, text: str = "Hello") -> None:
    model = AnthropicModel("claude-sonnet-5-5", api_key="test", base_url=url)
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    try:
        await model.answer(system="", messages=messages, tools=[])
    finally:
        await model.close()


async def test_every_broken_rule_is_answered_with_400_and_its_neighbour_is_forwarded() -> None:
    async with scripted_server() as server, ModelProxy.start(server.url) as proxy:
        for rule, wrong, right in CASES:
            status, body = await post(proxy.url, wrong)
            assert (status, body["error"]["type"]) == (400, "invalid_request_error")
            assert body["error"]["message"] == proxy.violations[-1].message
            assert proxy.violations[-1].rule == rule
            await post(proxy.url, right)
            assert proxy.requests[-1].violation is None
    assert len(proxy.violations) == len(CASES) and len(proxy.requests) == 2 * len(CASES)
    # The server has no script, so what was forwarded shows there.
    assert len(server.model.unexpected) == len(CASES)


async def test_a_request_without_a_key_is_unauthorized() -> None:
    async with scripted_server(ONE_STEP) as server, ModelProxy.start(server.url) as proxy:
        for url in (server.url, proxy.url):
            status, body = await post(url, request(), headers={})
            assert (status, body["error"]["type"]) == (401, "authentication_error")


async def test_a_request_of_more_than_32_megabytes_is_too_large() -> None:
    async with ModelProxy.start("http://127.0.0.1:9") as proxy:
        status, body = await post(proxy.url, request(system="a" * 32 * 1024 * 1024))
    assert (status, body["error"]["type"]) == (413, "request_too_large")


async def test_an_upstream_that_is_gone_breaks_the_connection() -> None:
    async with scripted_server() as server:
        pass
    async with ModelProxy.start(server.url) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await post(proxy.url, request())
    assert proxy.requests[-1].status is None


async def test_leaving_raises_what_the_provider_would_have_refused() -> None:
    with pytest.raises(AssertionError, match="max_tokens"):
        async with model_under_rules(ONE_STEP) as m:
            await post(m.url, request(max_tokens=0))


async def test_leaving_raises_what_the_script_did_not_foresee() -> None:
    with pytest.raises(UnexpectedCall):
        async with model_under_rules(script(step(say("Hi."), expect=expect_text("refund")))) as m:
            with pytest.raises(ModelRefused, match="expected a last message with the text 'refund'"):
                await ask(m.url)


async def test_leaving_raises_unused_steps() -> None:
    with pytest.raises(UnusedSteps):
        async with model_under_rules(ONE_STEP):
            pass


async def test_the_error_of_a_test_is_not_replaced_by_unused_steps() -> None:
    with pytest.raises(ZeroDivisionError):
        async with model_under_rules(ONE_STEP):
            raise ZeroDivisionError


async def test_an_answer_can_be_held_until_the_asker_is_gone() -> None:
    async with model_under_rules(ONE_STEP) as m:
        m.hold()
        with pytest.raises(TimeoutError):
            async with aiohttp.ClientSession(headers=HEADERS) as session:
                timeout = aiohttp.ClientTimeout(total=0.2)
                await session.post(f"{m.url}/v1/messages", json=request(), timeout=timeout)
        await m.asked()
        await m.release()
        assert (await post(m.url, request()))[0] == 200


async def test_a_key_that_is_asked_for_must_be_the_right_one() -> None:
    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"type": "message"}

    async with serve(create_model_api(answer, faults=(), api_key="secret")) as url:
        assert (await post(url, request()))[0] == 401
        assert (await post(url, request(), {**HEADERS, "x-api-key": "secret"}))[0] == 200
        assert (await post(url, [], {**HEADERS, "x-api-key": "secret"}))[0] == 400
        assert (await post(f"{url}/v2", request()))[1]["error"]["type"] == "not_found_error"
