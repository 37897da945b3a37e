"""A Messages API that answers with planned bytes, broken ones too, under the provider's rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.standins.provider_rules import check


@dataclass(frozen=True)
class Drip:
    """An answer without end, of which a blank comes every so many seconds."""

    seconds: float


Reply = bytes | Drip | None
"""What is sent before the connection is closed; None: nothing at all, and it stays open."""


@dataclass
class Provider:
    """`url` is the base URL for clients; `requests` are the JSON of what was asked, in order."""

    replies: list[Reply]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    broken_rules: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def last_message(self) -> list[dict[str, Any]]:
        """The blocks of the last message of the last request."""
        return list(self.requests[-1]["messages"][-1]["content"])

    @property
    def results(self) -> list[Any]:
        """The JSON of the results in the last message, in order."""
        return [json.loads(b["content"]) for b in self.last_message if b["type"] == "tool_result"]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request with the next reply; one too many is a broken rule."""
        asked = await self._read(reader)
        violation = check(asked)
        if violation is not None:
            self.broken_rules.append(f"request {len(self.requests)}: {violation.message}")
        if not self.replies:
            self.broken_rules.append(f"request {len(self.requests)} was not foreseen")
        reply = self.replies.pop(0) if self.replies else failure(400)
        match reply:
            case None:
                await self.over.wait()
            case Drip():
                await self._drip(writer, reply.seconds)
            case bytes():
                writer.write(reply)
                await writer.drain()
        writer.close()

    async def _drip(self, writer: asyncio.StreamWriter, seconds: float) -> None:
        writer.write(in_chunks([]))
        with suppress(ConnectionError):  # whoever asked has left
            while not self.over.is_set():
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.over.wait(), seconds)

    async def _read(self, reader: asyncio.StreamReader) -> dict[str, Any]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
        asked: dict[str, Any] = json.loads(await reader.readexactly(int(length.partition(":")[2])))
        self.requests.append(asked)
        return asked


@asynccontextmanager
async def provider(*replies: Reply) -> AsyncIterator[Provider]:
    """Serve these replies, one a request; on leaving, all were used and no request broke a rule."""
    made = Provider(list(replies))
    async with await asyncio.start_server(made.handle, "127.0.0.1", 0) as server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield made
        finally:
            made.over.set()
    assert made.broken_rules == []
    assert made.replies == [], "some replies were never asked for"


def http(status: int, body: bytes, *headers: str) -> bytes:
    """A whole HTTP answer; `headers` are lines like "retry-after: 7"."""
    lines = [f"HTTP/1.1 {status} Whatever", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode() + body


def answer(*content: dict[str, Any], stop_reason: str | None = None, tokens: int = 5) -> bytes:
    """A Messages answer with these blocks."""
    calls = any(block["type"] == "tool_use" for block in content)
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": content,
        "stop_reason": stop_reason or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": tokens},
    }
    return http(200, json.dumps(message).encode())


def failure(status: int, *headers: str, message: str = "The provider's words.") -> bytes:
    """The provider's error."""
    error = {"type": "error", "error": {"type": "some_error", "message": message}}
    return http(status, json.dumps(error).encode(), *headers)


def text(words: str) -> dict[str, Any]:
    """A text block of an answer."""
    return {"type": "text", "text": words}


def use(tool: str, input: dict[str, Any], id: str = "toolu_1") -> dict[str, Any]:
    """A call in an answer."""
    return {"type": "tool_use", "id": id, "name": tool, "input": input}


def in_chunks(chunks: Sequence[bytes]) -> bytes:
    """An answer in chunks, each as it is given: also malformed or cut."""
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"".join(chunks)
