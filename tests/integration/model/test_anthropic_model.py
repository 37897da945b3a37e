from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.model import Answer, AnthropicModel, ModelBusy, ModelError, ModelRefused, ToolSchema
from agent.scripted import call, expect_results, say, script, step
from tests.standins.model import model_under_rules
from tests.standins.proxy import ModelProxy

HELLO = {"role": "user", "content": [{"type": "text", "text": "Refund them."}]}
SEARCH = ToolSchema("search", "Search.", {"type": "object", "properties": {}})
USAGE = {"input_tokens": 3, "output_tokens": 2}
BODY = {
    "model": "m-1",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": USAGE,
}


@asynccontextmanager
async def raw_server(reply: bytes | None) -> AsyncIterator[str]:
    """Answer every connection with these bytes and close it; with None, say nothing until the end."""
    over = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if reply is None:
            await over.wait()
        else:
            writer.write(reply)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            over.set()


def http(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode() + body


def answered(**fields: Any) -> bytes:
    return http(200, json.dumps({**BODY, **fields}).encode())


def refused(status: int, *headers: str) -> bytes:
    error = {"type": "error", "error": {"type": "some_error", "message": "The provider's words."}}
    return http(status, json.dumps(error).encode(), *headers)


async def ask(
    url: str, *messages: Any, tools: Any = (SEARCH,), closing: bool = False, **options: Any
) -> Answer:
    model = AnthropicModel("claude-sonnet-5-5", api_key="test", base_url=url, **options)
    try:
        return await model.answer(
            system="Be kind.", messages=messages or (HELLO,), tools=tools, closing=closing
        )
    finally:
        await model.close()


async def error_of(reply: bytes | None, **options: Any) -> ModelError:
    async with raw_server(reply) as url:
        with pytest.raises(ModelError) as caught:
            await ask(url, **options)
    return caught.value


async def test_a_conversation_with_calls_goes_through_the_providers_rules() -> None:
    one = step(say("I look."), call("search", {"a": 1}), call("search", {"b": 2}))
    two = step(say("Done."), expect=expect_results(2))
    async with model_under_rules(script(one, two)) as m:
        first = await ask(m.url)
        uses = [block for block in first.content if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "1"} for use in uses]
        turn = {"role": "assistant", "content": first.content}
        second = await ask(m.url, HELLO, turn, {"role": "user", "content": results})
    assert [use["input"] for use in uses] == [{"a": 1}, {"b": 2}]
    assert (first.stop_reason, second.stop_reason) == ("tool_use", "end_turn")
    assert second.content == [{"type": "text", "text": "Done."}]
    assert m.requests[0].system == "Be kind." and m.requests[0].tools[0]["name"] == "search"
    assert m.requests[0].headers["authorization"] == "Bearer test"


async def test_closing_shows_the_tools_and_forbids_them() -> None:
    async with model_under_rules(script(step(say("Bye.")))) as m:
        await ask(m.url, closing=True)
        await ask(m.url)
        await ask(m.url, closing=True, tools=())
    assert [exchange.closing for exchange in m.requests] == [True, False, False]
    assert [len(exchange.tools) for exchange in m.requests] == [1, 1, 0]


async def test_an_answer_keeps_only_what_may_be_sent_back() -> None:
    content = [
        {"type": "thinking", "thinking": "", "signature": "s", "more": 1},
        {"type": "text", "text": "\n", "citations": None},
        {"type": "text", "text": "Hi", "citations": None},
        {"type": "holiday", "where": {"sea": True}},
        {"type": "tool_use", "id": "t", "name": "search", "input": {"a": []}, "caller": {"type": "direct"}},
    ]
    async with raw_server(answered(content=content)) as url:
        answer = await ask(url)
    assert answer.content == [
        {"type": "thinking", "thinking": "", "signature": "s", "more": 1},
        {"type": "text", "text": "Hi"},
        {"type": "holiday", "where": {"sea": True}},
        {"type": "tool_use", "id": "t", "name": "search", "input": {"a": []}},
    ]


async def test_tokens_from_the_cache_are_counted_as_read() -> None:
    usage = {**USAGE, "cache_creation_input_tokens": 10, "cache_read_input_tokens": None}
    async with raw_server(answered(usage=usage)) as url:
        answer = await ask(url)
    assert (answer.input_tokens, answer.output_tokens, answer.model) == (13, 2, "m-1")


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "pause_turn"])
async def test_an_answer_that_stopped_for_another_reason_is_returned_as_it_is(reason: str) -> None:
    async with raw_server(answered(stop_reason=reason, content=[])) as url:
        answer = await ask(url)
    assert (answer.stop_reason, answer.content) == (reason, [])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_transient_status_means_busy(status: int) -> None:
    error = await error_of(refused(status))
    assert isinstance(error, ModelBusy) and (error.status, error.retry_after) == (status, None)
    assert "The provider's words." in error.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (("retry-after: 7",), 7.0),
        (("retry-after: 7", "retry-after-ms: 1500"), 1.5),
        (("date: Wed, 21 Oct 2026 07:26:30 GMT", "retry-after: Wed, 21 Oct 2026 07:28:00 GMT"), 90.0),
        (("date: Wed, 21 Oct 2026 07:29:00 GMT", "retry-after: Wed, 21 Oct 2026 07:28:00 GMT"), 0.0),
        (("retry-after: Wed, 21 Oct 2020 07:28:00 GMT",), 0.0),
        (("retry-after: Wed, 99 Oct 2026 07:28:00 GMT",), None),
        (("retry-after: soon",), None),
        (("retry-after: -1",), None),
        (("retry-after: nan",), None),
    ],
)
async def test_busy_says_after_how_many_seconds_to_ask_again(headers: Any, seconds: float | None) -> None:
    error = await error_of(refused(429, *headers))
    assert isinstance(error, ModelBusy) and error.retry_after == seconds


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "has to be changed"),
        (401, "ANTHROPIC_API_KEY"),
        (402, "billing"),
        (403, "VISTOBUENO_MODEL"),
        (404, "VISTOBUENO_MODEL"),
        (413, "start a new one"),
    ],
)
async def test_a_permanent_status_means_refused_and_says_what_to_do(status: int, advice: str) -> None:
    error = await error_of(refused(status))
    assert isinstance(error, ModelRefused) and error.status == status
    assert "The provider's words." in error.message and advice in error.message


async def test_a_prompt_that_is_too_long_means_a_new_conversation() -> None:
    said = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "Prompt is too long: 3 > 2"},
    }
    error = await error_of(http(400, json.dumps(said).encode()))
    assert isinstance(error, ModelRefused) and "start a new one" in error.message


async def test_a_429_that_will_not_pass_by_waiting_is_refused() -> None:
    error = await error_of(refused(429, "x-should-retry: false"))
    assert isinstance(error, ModelRefused) and "spend limit" in error.message


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n",
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"typ',
        http(
            200,
            b'event: message_start\ndata: {"type": "message_start"}\n\n',
            "content-type: text/event-stream",
        ),
        http(200, b"<html>a proxy</html>"),
        http(200, b'{"type": "message"}'),
        http(200, b"[]"),
        answered(content=None),
        answered(content=[{"text": "Hi"}]),
        answered(usage={}),
        answered(usage={**USAGE, "input_tokens": float("inf")}),
        http(200, b"[" * 200_000),
    ],
    ids=[
        "timeout",
        "dropped",
        "cut",
        "malformed chunk",
        "cut chunk",
        "a stream that nobody asked for",
        "html",
        "empty",
        "list",
        "no content",
        "no type",
        "no usage",
        "endless usage",
        "too deep to read",
    ],
)
async def test_an_answer_that_did_not_arrive_whole_means_busy(reply: bytes | None) -> None:
    error = await error_of(reply, timeout=0.2 if reply is None else 30.0)
    assert isinstance(error, ModelBusy) and (error.status, error.retry_after) == (None, None)


async def test_nobody_listening_means_busy() -> None:
    async with raw_server(b"") as url:
        pass
    with pytest.raises(ModelBusy):
        await ask(url)


async def test_a_busy_provider_is_asked_only_once() -> None:
    async with model_under_rules(script(step(say("Hi.")))) as m:
        m.fail_next(529, retry_after=2)
        with pytest.raises(ModelBusy) as busy:
            await ask(m.url)
        asked_while_busy = len(m.requests)
        await ask(m.url)
    assert (asked_while_busy, busy.value.retry_after) == (1, 2.0)


async def test_without_a_key_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelRefused, match="Set ANTHROPIC_API_KEY"):
        AnthropicModel("claude-sonnet-5-5")


def test_an_address_that_is_set_and_empty_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    model = AnthropicModel("claude-sonnet-5-5", api_key="test")
    assert str(model._client.base_url).rstrip("/") == "https://api.anthropic.com"


async def test_a_large_answer_may_be_asked_for_without_streaming() -> None:
    async with model_under_rules(script(step(say("Hi.")))) as m:
        await ask(m.url, max_tokens=64_000)
    assert m.requests[0].body["max_tokens"] == 64_000


async def test_llmock_answers_through_the_proxy(llmock: Any) -> None:
    llmock.call_tool("search", {"status": "failed"}).reply("All done.")
    async with ModelProxy.start(llmock.base_url("anthropic")) as proxy:
        first = await ask(proxy.url)
        results = [{"type": "tool_result", "tool_use_id": first.content[-1]["id"], "content": "[]"}]
        turn = {"role": "assistant", "content": first.content}
        second = await ask(proxy.url, HELLO, turn, {"role": "user", "content": results})
    assert (first.content[-1]["name"], first.content[-1]["input"]) == ("search", {"status": "failed"})
    assert second.content == [{"type": "text", "text": "All done."}]
    assert not proxy.violations and len(proxy.requests) == 2


@pytest.mark.parametrize("fault", [lambda m: m.rate_limit(retry_after=3), lambda m: m.fail(529)])
async def test_faults_of_llmock_mean_busy(llmock: Any, fault: Callable[[Any], Any]) -> None:
    fault(llmock)
    async with ModelProxy.start(llmock.base_url("anthropic")) as proxy:
        with pytest.raises(ModelBusy):
            await ask(proxy.url)
    assert proxy.requests[0].status in (429, 529)
