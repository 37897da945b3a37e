"""A recording proxy in front of a model: it refuses what the provider would refuse, and forwards the rest."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from uuid import uuid4

import aiohttp
from aiohttp import web

from tests.standins.provider_rules import MAX_BYTES, Violation, check, check_headers

# Of this hop only, or no longer true once the client has unpacked the body.
HOP_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "host", "keep-alive"}
) | {
    "transfer-encoding",
    "date",
    "server",
}
ERROR_TYPES = {401: "authentication_error", 413: "request_too_large"}


@dataclass(frozen=True)
class Exchange:
    """One request and what was answered; `status` is None if the upstream broke the connection."""

    body: dict[str, Any]
    headers: dict[str, str]
    status: int | None
    response: Any
    violation: Violation | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def system(self) -> str:
        """The system prompt as one text, however it was sent."""
        system = self.body.get("system", "")
        return system if isinstance(system, str) else "\n".join(block["text"] for block in system)

    @property
    def tools(self) -> list[dict[str, Any]]:
        return list(self.body.get("tools", []))

    @property
    def closing(self) -> bool:
        """Whether the request forbids calls."""
        return bool(self.body.get("tool_choice", {}).get("type") == "none")


@dataclass
class ModelProxy:
    """`url` is the base URL for a client; `requests` holds every exchange in the order of their ends."""

    upstream: str
    session: aiohttp.ClientSession
    url: str = ""
    requests: list[Exchange] = field(default_factory=list)

    @property
    def violations(self) -> list[Violation]:
        return [each.violation for each in self.requests if each.violation]

    @classmethod
    @asynccontextmanager
    async def start(cls, upstream_url: str) -> AsyncIterator[ModelProxy]:
        """Serve on a free port of the loopback until the block is left."""
        async with aiohttp.ClientSession() as session:
            proxy = cls(upstream_url.rstrip("/"), session)
            # More than the rule allows, so that the rule answers and not aiohttp.
            app = web.Application(client_max_size=2 * MAX_BYTES)
            app.router.add_route("*", "/{path:.*}", proxy._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=5)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield proxy
            finally:
                await runner.cleanup()

    def assert_no_violations(self) -> None:
        """Raise AssertionError if the provider would have refused a request."""
        assert not self.violations, f"the provider would have refused: {self.violations}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body, headers = _read_json(raw), {name.lower(): value for name, value in request.headers.items()}
        violation = None
        if request.path.endswith("/v1/messages"):
            violation = check_headers(headers) or check(body, len(raw))
        if violation:
            content = _error(violation)
            self._record(body, headers, violation.status, content, violation)
            return web.json_response(content, status=violation.status)
        return await self._forward(request, raw, body, headers)

    async def _forward(
        self, request: web.Request, raw: bytes, body: object, headers: dict[str, str]
    ) -> web.StreamResponse:
        kept = {name: value for name, value in headers.items() if name not in HOP_HEADERS}
        url = f"{self.upstream}{request.rel_url}"
        try:
            async with self.session.request(request.method, url, data=BytesIO(raw), headers=kept) as upstream:
                answer = await upstream.read()
        except aiohttp.ClientError:
            self._record(body, headers, None, None)
            if request.transport:
                request.transport.abort()
            return web.Response(status=502)
        self._record(body, headers, upstream.status, _read_json(answer))
        back = {name: value for name, value in upstream.headers.items() if name.lower() not in HOP_HEADERS}
        return web.Response(body=answer, status=upstream.status, headers=back)

    def _record(
        self,
        body: object,
        headers: dict[str, str],
        status: int | None,
        response: object,
        violation: Violation | None = None,
    ) -> None:
        recorded = body if isinstance(body, dict) else {}
        self.requests.append(Exchange(recorded, headers, status, response, violation))


def _read_json(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _error(violation: Violation) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {
            "type": ERROR_TYPES.get(violation.status, "invalid_request_error"),
            "message": violation.message,
        },
        "request_id": f"req_{uuid4().hex[:24]}",
    }
