"""One WebSocket to Slack: the SDK's client, which tells of its end instead of replacing itself.

The SDK closes a connection before it opens the next one; between the two Slack has nobody to send to, and an
answer would go out on another connection than its request came in on. Here bot/socket_mode.py opens the next
one first, and this client only receives, sends, and watches that Slack still answers its pings.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack import is_direct

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 10.0
HANG_UP_SECONDS = 1.0
LOOK_SECONDS = 0.25  # a connection that breaks off says nothing: it has to be looked at
LOST = "the connection was lost"
NO_FRAME = "a frame over Socket Mode is not one of Slack's"


class NoLine(Exception):
    """A WebSocket that Slack offered could not be used; the text is Slack's reason, or says what failed."""


class Line(SocketModeClient):
    """A connection from Slack's `hello` to its end; `deliver` is called with each request.

    Frames: docs.slack.dev/apis/events-api/using-socket-mode.
    """

    def __init__(
        self, web: AsyncWebClient, url: str, deliver: Callable[["Line", SocketModeRequest], object]
    ) -> None:
        # below CRITICAL it prints payloads, and the URL with its ticket
        logger = logging.getLogger("slack_sdk.socket_mode")
        logger.setLevel(logging.CRITICAL)
        super().__init__(app_token="", logger=logger, web_client=web, on_close_listeners=[self._note_close])
        self.wss_uri = url
        if is_direct(url):
            self.proxy = None  # the SDK never looks at NO_PROXY
        self.connections = 0
        """How many connections the app has, this one included, by Slack's hello; 0 before it."""
        self.reason = LOST
        """Why it ends: Slack's reason, or that it was lost."""
        self._deliver = deliver
        self._host = urlsplit(url).hostname  # the rest has a ticket
        self._spoken_to = asyncio.Event()
        self._leaving = asyncio.Event()
        self._closed_by_slack = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether requests can still come in, and answers go out."""
        session = self.current_session
        return session is not None and not (session.closed or self.stale or self.closed)

    async def dial(self) -> None:
        """Connect, and wait for Slack's hello; raises NoLine, after 10 s at the latest."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.connect()  # type: ignore[no-untyped-call]
                await self._open_until(self._spoken_to)
        except TimeoutError as error:
            raise NoLine(
                f"no WebSocket could be opened to {self._host} within {CONNECT_SECONDS:g} s: check that the "
                "network, or its proxy, lets it through"
            ) from error
        if not self.connections:
            raise NoLine(self.reason)

    async def leaves(self) -> str:
        """Wait until it has to be replaced; returns why. It may still be open, for some seconds."""
        await self._open_until(self._leaving)
        return self.reason

    async def closes(self) -> None:
        """Wait until Slack has closed it."""
        await self._open_until(self._closed_by_slack)

    async def reply(self, response: SocketModeResponse) -> bool:
        """Acknowledge a request; False if the connection is gone."""
        try:
            await self.send_socket_mode_response(response)
        except (ConnectionError, aiohttp.ClientError):
            return False
        return True

    async def stop_listening(self) -> None:
        """Take no further request; answers can still be sent."""
        await _end(self.message_receiver, self.message_processor)

    async def hang_up(self) -> None:
        """Close the connection and end everything that belongs to it."""
        self.closed = True
        await _end(self.message_receiver, self.message_processor, self.current_session_monitor)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANG_UP_SECONDS):
                await self.disconnect()  # type: ignore[no-untyped-call]
        await self.aiohttp_client_session.close()

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """What the SDK calls when the connection is to be replaced: that is done elsewhere."""
        self._leaving.set()

    async def enqueue_message(self, message: str) -> None:
        """Read a frame of Slack at once: in the SDK's queue the end of a connection overtakes its reason."""
        try:
            frame = json.loads(message)
        except (ValueError, RecursionError):
            frame = None
        if isinstance(frame, dict):
            self._read(frame)
        else:
            log.error(NO_FRAME)

    def _read(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "hello":
            count = message.get("num_connections")
            self.connections = count if isinstance(count, int) and count > 0 else 1
            self._spoken_to.set()
        elif kind == "disconnect":
            self.reason = str(message.get("reason", LOST))[:100]
            self._leaving.set()
            self._spoken_to.set()
        else:
            self._take(message)

    async def _open_until(self, event: asyncio.Event) -> None:
        while self.is_open and not event.is_set():
            # not wait_for: until Python 3.12 it can swallow a cancellation
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await event.wait()

    async def _note_close(self, frame: aiohttp.WSMessage) -> None:
        self._closed_by_slack.set()

    def _take(self, message: dict[str, Any]) -> None:
        try:
            request = SocketModeRequest.from_dict(message)
        except ValueError:  # its payload is no object
            request = None
        if request is None:
            log.error(NO_FRAME)
            return
        self._deliver(self, request)


async def _end(*tasks: "asyncio.Future[Any] | None") -> None:
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
