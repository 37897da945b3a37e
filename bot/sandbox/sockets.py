"""Slack's side of Socket Mode: the WebSockets that the app opens, the envelopes on them, and its answers.

Frames and rules: docs.slack.dev/apis/events-api/using-socket-mode, and the mock server of Slack's SDK.
"""

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any
from uuid import uuid4

from aiohttp import WSMessage, WSMsgType, web

from bot.sandbox.changes import Changes
from bot.sandbox.errors import Json
from bot.sandbox.limits import SOCKETS_PER_APP

SECONDS_OF_A_CONNECTION = 18_060


class NoConnection(Exception):
    """The app has no WebSocket to send on, or that one has just broken."""


@dataclass(eq=False)
class Connection:
    """One WebSocket; `sent` are the ids of the envelopes on it, `acks` what the app answered on it."""

    socket: web.WebSocketResponse
    request: web.Request
    sent: list[str] = field(default_factory=list)
    acks: list[Json] = field(default_factory=list)

    async def disconnect(self, reason: str) -> None:
        """Announce the end: "warning", "refresh_requested", "link_disabled" or "too_many_websockets"."""
        await self.socket.send_json(
            {"type": "disconnect", "reason": reason, "debug_info": {"host": "sandbox"}}
        )

    async def close(self) -> None:
        """Close it properly."""
        await self.socket.close()

    def break_off(self) -> None:
        """Lose it, as a network does."""
        transport = self.request.transport
        if transport is not None:
            transport.abort()


@dataclass
class Sockets:
    """Every open WebSocket of the app; an envelope goes to one of them, in turn."""

    app_id: str
    changes: Changes
    open: list[Connection] = field(default_factory=list)
    acks: list[Json] = field(default_factory=list)
    _tickets: set[str] = field(default_factory=set)
    _turns: Iterator[int] = field(default_factory=itertools.count)
    _waiting: dict[str, list["asyncio.Future[Json]"]] = field(default_factory=lambda: defaultdict(list))
    _runner: web.AppRunner | None = None
    _base_url: str = ""

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        app = web.Application()
        app.router.add_get("/link/", self._link)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._base_url = f"ws://127.0.0.1:{self._runner.addresses[0][1]}/link/"

    async def stop(self) -> None:
        """Close every connection, and listen no more."""
        if self._runner is not None:
            for connection in tuple(self.open):
                connection.break_off()
            await self._runner.cleanup()

    def new_url(self) -> str:
        """Where the app may connect, once."""
        ticket = str(uuid4())
        self._tickets.add(ticket)
        return f"{self._base_url}?ticket={ticket}&app_id={self.app_id}"

    async def send(self, envelope: Json, to: int | None) -> Json:
        """What the app answers to an envelope on one connection: `{}` or its payload. NoConnection."""
        if not self.open:
            raise NoConnection
        connection = self.open[(next(self._turns) if to is None else to) % len(self.open)]
        answered: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[envelope["envelope_id"]]
        waiting.append(answered)
        try:
            connection.sent.append(envelope["envelope_id"])
            await connection.socket.send_json(envelope)
            return await answered
        except ConnectionError as error:
            raise NoConnection from error
        finally:
            waiting.remove(answered)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=404)
        self._tickets.discard(ticket)
        connection = Connection(web.WebSocketResponse(), request)
        await connection.socket.prepare(request)
        if len(self.open) >= SOCKETS_PER_APP:
            await connection.disconnect("too_many_websockets")
            await connection.close()
            return connection.socket
        await self._serve(connection)
        return connection.socket

    async def _serve(self, connection: Connection) -> None:
        self.open.append(connection)
        try:
            await connection.socket.send_json(self._hello())
            self.changes.announce()
            async for message in connection.socket:
                self._hear(connection, message)
        finally:
            self.open.remove(connection)
            self.changes.announce()

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "debug_info": {
                "host": f"applink-{token_hex(4)}",
                "build_number": 10,
                "approximate_connection_time": SECONDS_OF_A_CONNECTION,
            },
            "connection_info": {"app_id": self.app_id},
        }

    def _hear(self, connection: Connection, message: WSMessage) -> None:
        ack: Any = json.loads(message.data) if message.type is WSMsgType.TEXT else None
        if not isinstance(ack, dict) or "envelope_id" not in ack:
            return
        connection.acks.append(ack)
        self.acks.append(ack)
        for answered in self._waiting.get(str(ack["envelope_id"]), []):
            if not answered.done():
                answered.set_result(dict(ack.get("payload") or {}))
                break
        self.changes.announce()
