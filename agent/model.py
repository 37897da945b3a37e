"""The model: what the loop asks, what it gets, and Anthropic's client.

Everything that goes in or out is a plain dict, as it is kept in the database. The errors:

    ModelError            base: `why` for people, as `message` in English; `status` of the HTTP answer
                          if there was one
    ├── ModelBusy         transient: ask again later; `retry_after` in seconds, if the provider said so
    └── ModelRefused      permanent: the same question is refused again; the message says what to do
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from agent.why import Code, Why, because, said

if TYPE_CHECKING:  # else imported where it is used: it takes longer to load than all the rest together
    import anthropic
    from anthropic.types import MessageParam, TextBlockParam, ToolParam

Message = dict[str, Any]
"""`{"role": "user" | "assistant", "content": [blocks]}` in Anthropic's form, never an object of the SDK."""

CONNECT_SECONDS = 5.0
PROVIDER_URL = "https://api.anthropic.com"
MOST_DEPTH = 64  # of values inside one another: what reads them further on is recursive
_FORMS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}


@dataclass(frozen=True)
class ToolSchema:
    """A tool as the model sees it; `input_schema` is JSON Schema of type object."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One turn of the model.

    `content` holds plain blocks that can be sent back as they are, and is empty if the model said nothing.
    `input_tokens` counts everything that was read, from the cache or not.
    """

    content: list[dict[str, Any]]
    stop_reason: str
    input_tokens: int
    output_tokens: int
    model: str


def flaw_of(content: Sequence[Mapping[str, Any]]) -> Why | None:
    """Why these blocks, of whatever model, cannot be kept and sent back; None: they can."""
    for block in content:
        form = _FORMS.get(block.get("type", ""), {})
        if not all(isinstance(block.get(key), kind) for key, kind in form.items()):
            return because(Code.MODEL_OUT_OF_FORM, kind=block["type"])
    level: list[Any] = list(content)
    for _ in range(MOST_DEPTH):
        if any(isinstance(value, float) and not math.isfinite(value) for value in level):
            return because(Code.MODEL_NOT_FINITE)
        level = [part for value in level for part in _parts(value)]
        if not level:
            return None
    return because(Code.MODEL_TOO_DEEP)


def _parts(value: object) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


class Model(Protocol):
    """Whatever answers a conversation."""

    name: str

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """Answer `messages` once, without any retry.

        With `closing` the answer has no calls: the tools are shown, as the history needs them, and
        may not be used. Raises ModelBusy and ModelRefused.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections; the model answers no more."""
        ...


class ModelError(Exception):
    """The model gave no answer."""

    def __init__(self, why: Why | str, status: int | None = None) -> None:
        self.why = said(why) if isinstance(why, str) else why
        self.message = self.why.text
        self.status = status
        super().__init__(self.message)


class ModelBusy(ModelError):
    """Transient: ask again later, after `retry_after` seconds if it is not None."""

    def __init__(self, why: Why | str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(why, status)
        self.retry_after = retry_after


class ModelRefused(ModelError):
    """Permanent: the same question would be refused again."""


class AnthropicModel:
    """Anthropic's Messages API, one request per answer.

    `max_tokens` limits an answer, `timeout` the whole request, in seconds. Without `api_key` and `base_url`
    they are those of ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL. Raises ModelRefused if there is no key at all.
    """

    def __init__(
        self,
        name: str,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = 16_000,
        timeout: float = 600.0,
    ) -> None:
        import anthropic

        self.name = name
        self._max_tokens = max_tokens
        self._seconds = timeout
        self._timeout = anthropic.Timeout(timeout, connect=CONNECT_SECONDS)
        # A retry of the SDK would sleep while the run's lease is held: the worker gives the run back instead.
        # set and empty, as in a filled-in .env.example, the SDK would take the variable for an address
        base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or PROVIDER_URL
        self._client = anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, max_retries=0)
        if not (self._client.api_key or self._client.auth_token or self._client.credentials):
            raise ModelRefused(f"There is no key for the model. {because(Code.SET_KEY).text}")

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """See Model.answer."""
        import anthropic

        async with _translated(self._seconds):
            response = await self._client.messages.with_raw_response.create(
                model=self.name,
                max_tokens=self._max_tokens,
                system=_system(system),
                messages=cast("Iterable[MessageParam]", messages),
                tools=[_tool(tool) for tool in tools] if tools else anthropic.omit,
                # The provider refuses a choice without tools.
                tool_choice={"type": "none"} if closing and tools else anthropic.omit,
                # Given per request, as the SDK otherwise refuses a `max_tokens` it would rather stream.
                timeout=self._timeout,
            )
            body = await response.text()
        return _read_answer(body)

    async def try_key(self, seconds: float) -> None:
        """Ask what costs nothing, whether the key and the model's name are accepted; waits so many seconds.

        https://platform.claude.com/docs/en/build-with-claude/token-counting. Raises as `answer` does.
        """
        async with _translated(seconds):
            response = await self._client.messages.with_raw_response.count_tokens(
                model=self.name, messages=[{"role": "user", "content": "Hello"}], timeout=seconds
            )
            body = await response.text()
        try:
            int(json.loads(body)["input_tokens"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelRefused(
                "What answers is no Messages API: check ANTHROPIC_BASE_URL.", response.status_code
            ) from error

    async def close(self) -> None:
        """See Model.close."""
        await self._client.close()


@asynccontextmanager
async def _translated(seconds: float) -> AsyncIterator[None]:
    """Turn an error of the SDK in the block into one of ours; the block may take so long."""
    import anthropic

    try:
        async with asyncio.timeout(seconds):  # the client's own limit begins anew with every byte
            yield
    except anthropic.APIStatusError as error:
        raise _status_error(error) from error
    except (anthropic.APITimeoutError, TimeoutError) as error:
        raise ModelBusy(because(Code.MODEL_TIMED_OUT)) from error
    except anthropic.APIConnectionError as error:
        raise ModelBusy(because(Code.MODEL_UNREACHABLE)) from error
    except anthropic.AnthropicError as error:
        not_asked = because(Code.MODEL_NOT_ASKED, error=str(error))
        raise ModelRefused(not_asked.and_also(because(Code.SET_KEY))) from error


def _system(text: str) -> list[TextBlockParam] | anthropic.Omit:
    """The system prompt, marked as the end of what the provider's cache keeps: the tools come before it.

    https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    """
    import anthropic

    if not text.strip():
        return anthropic.omit
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def _tool(tool: ToolSchema) -> ToolParam:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def _read_answer(body: str) -> Answer:
    """The raw body is read instead of the SDK's objects, so that unknown blocks go back untouched."""
    try:
        message = json.loads(body)
        usage = message["usage"]
        cached = (usage.get("cache_creation_input_tokens"), usage.get("cache_read_input_tokens"))
        return Answer(
            content=[kept for block in message["content"] if (kept := _keep(block))],
            stop_reason=str(message["stop_reason"]),
            input_tokens=int(usage["input_tokens"]) + sum(int(tokens or 0) for tokens in cached),
            output_tokens=int(usage["output_tokens"]),
            model=str(message["model"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelBusy(because(Code.MODEL_CUT)) from error


def _keep(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an answered block that may be sent back; None for a text the provider would refuse."""
    match block["type"]:
        case "text":
            if not str(block["text"]).strip():
                return None
            kept = {"type": "text", "text": block["text"]}
            return {**kept, "citations": block["citations"]} if block.get("citations") else kept
        case "tool_use":
            return {key: block[key] for key in ("type", "id", "name", "input")}
        case _:
            # Thinking is signed, and kinds unknown here have their own rules: not a byte is changed.
            return dict(block)


_ADVICE: Mapping[int, Code] = {
    401: Code.SET_KEY,
    402: Code.SETTLE_BILLING,
    403: Code.USE_ANOTHER_KEY,
    404: Code.NAME_ANOTHER_MODEL,
    413: Code.START_ANEW,
    429: Code.RAISE_LIMIT,
}

# https://platform.claude.com/docs/en/api/errors; 408 and 409 as in the SDK's own policy.
_TRANSIENT = frozenset({408, 409, 429})


def _status_error(error: anthropic.APIStatusError) -> ModelError:
    status, words = error.status_code, (error.api_message or error.message).rstrip(".")
    transient = status in _TRANSIENT or status >= 500
    # A limit on spending is a 429 too, and does not pass by waiting; the provider says so in this header.
    if transient and error.response.headers.get("x-should-retry") != "false":
        retry_after = _seconds(error.response.headers)
        return ModelBusy(because(Code.MODEL_BUSY, status=str(status), said=words), status, retry_after)
    too_long = status == 400 and "prompt is too long" in words.lower()
    advice = because(_ADVICE.get(413 if too_long else status, Code.REPORT_IT))
    return ModelRefused(because(Code.MODEL_REFUSED, status=str(status), said=words).and_also(advice), status)


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, from its number or its date; None when it is missing or is neither.

    https://www.rfc-editor.org/rfc/rfc9110.html#field.retry-after
    """
    for header, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[header]) / scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    until = _date(headers.get("retry-after"))
    if until is None:
        return None
    # by the provider's own clock where it tells it: ours may be wrong
    now = _date(headers.get("date")) or datetime.now(UTC)
    return max((until - now).total_seconds(), 0.0)


def _date(text: str | None) -> datetime | None:
    """A date of HTTP, or None."""
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
