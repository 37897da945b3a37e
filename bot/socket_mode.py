"""Socket Mode: Slack's requests come over WebSockets that this process opens, and need no public URL.

Slack replaces its connections a few times a day. The next one is open before the old one is given up, each
answer goes out on the connection of its request, and what Slack does not hear of, it sends again.
"""

import asyncio
import json
import random
import time
from typing import Any

import structlog
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.envelope import UnreadableRequest, check_payload
from bot.requests import RETRY_NUMBER, RETRY_REASON, Requests
from bot.slack import open_socket
from bot.slack_errors import SlackRefusedToken, SlackUnreachable
from bot.socket_line import Line, NoLine
from bot.tasks import Tasks

log = structlog.get_logger(__name__)

STEADY_SECONDS = 10.0  # a connection that lived shorter than this counts as a failure
LONGEST_PAUSE = 30.0
OLD_LINE_SECONDS = 15.0  # Slack announces an end about 10 s ahead
STOPPING_SECONDS = 3.0  # for requests that are being answered, as over HTTP
FOLLOWED = frozenset({"warning", "refresh_requested"})
"""Reasons of Slack's `disconnect` after which the old connection still serves until the next one does."""
SAYS = {
    "link_disabled": "Socket Mode is off for this Slack app: turn it on on its page Socket Mode, "
    "or unset SLACK_APP_TOKEN",
    "too_many_websockets": "this Slack app has more connections than the 10 that Slack allows: "
    "stop processes that use the same SLACK_APP_TOKEN",
}
"""What is to be done about other reasons."""


class SocketMode:
    """Keeps one connection to Slack open and answers what comes in on it."""

    def __init__(self, web: AsyncWebClient, app_token: str, requests: Requests) -> None:
        self._web = web
        self._app_token = app_token
        self._requests = requests
        self._url: str | None = None
        self._line: Line | None = None
        self._lines: set[Line] = set()
        self._problem = "not connected yet"
        self._under_way = Tasks()
        self._replaced = Tasks()
        self._stopping = False

    @property
    def problem(self) -> str | None:
        """Why no request can come in now; None while one can."""
        return None if any(line.is_open for line in self._lines) else self._problem

    async def check_token(self) -> None:
        """Ask Slack for the first connection; raises SlackRefusedToken or SlackUnreachable."""
        self._url = await open_socket(self._web, self._app_token)

    async def serve(self, stop: asyncio.Event) -> None:
        """Receive until `stop` is set; then no new request, and a few seconds for those under way."""
        keeping = asyncio.create_task(self._keep_connected(), name="socket mode")
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(keeping, stopping)
        if not keeping.cancelled():
            keeping.result()  # it never returns: this raises what ended it

    async def _end(self, *tasks: "asyncio.Task[Any]") -> None:
        self._stopping = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(line.stop_listening() for line in self._lines))
        await self._under_way.drain(STOPPING_SECONDS)
        await self._replaced.drain(0)
        await asyncio.gather(*(self._drop(line) for line in tuple(self._lines)))

    async def _keep_connected(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            try:
                line = await self._connected()
            except (NoLine, SlackRefusedToken, SlackUnreachable) as error:
                self._problem = SAYS.get(str(error), str(error))
                log.warning("socket mode: not connected", error=self._problem)
                failures += 1
                await asyncio.sleep(max(getattr(error, "retry_after", None) or 0.0, _pause(failures)))
                continue
            await self._until_it_leaves(line)
            failures = 0 if time.monotonic() - began > STEADY_SECONDS else failures + 1
            await asyncio.sleep(_pause(failures))

    async def _connected(self) -> Line:
        url, self._url = self._url or await open_socket(self._web, self._app_token), None
        line = Line(self._web, url, self._receive)
        try:
            await line.dial()
        except BaseException:
            await line.hang_up()
            raise
        log.info("socket mode: connected", connections=line.connections)
        self._requests.bot.metrics.connections(line.connections)
        old, self._line = self._line, line
        self._lines.add(line)
        if old is not None:
            self._replaced.start(self._follow(old), name="an old connection of Socket Mode")
        return line

    async def _until_it_leaves(self, line: Line) -> None:
        reason = await line.leaves()
        self._problem = SAYS.get(reason, f"Slack ended the connection ({reason})")
        if reason in SAYS:
            log.error("socket mode: the connection ends", reason=reason, error=SAYS[reason])
        else:
            log.info("socket mode: the connection ends", reason=reason)
        if reason not in FOLLOWED or not line.is_open:
            self._line = None
            await self._drop(line)

    async def _follow(self, old: Line) -> None:
        """Let Slack close a connection that has been replaced: until then it may send on either."""
        try:
            async with asyncio.timeout(OLD_LINE_SECONDS):
                await old.closes()
        except TimeoutError:
            log.info("socket mode: an old connection was left open by Slack")
        await self._drop(old)

    async def _drop(self, line: Line) -> None:
        await line.hang_up()
        self._lines.discard(line)

    def _receive(self, line: Line, request: SocketModeRequest) -> None:
        if not self._stopping:  # else Slack hears nothing of it, and sends it to another process
            self._under_way.start(self._answer(line, request), name="a request over Socket Mode")

    async def _answer(self, line: Line, request: SocketModeRequest) -> None:
        self._requests.bot.metrics.request()
        try:
            payload = check_payload(request.payload)
        except UnreadableRequest as error:
            log.error("a request over Socket Mode is not one of Slack's", error=str(error))
            return
        answer = await self._requests.answer(payload, _retry(request))
        if answer.response.status == 200:
            await self._acknowledge(line, request, answer.response)
        else:
            log.warning("a request over Socket Mode is not acknowledged", status=answer.response.status)
        await answer.after.begin()

    async def _acknowledge(self, line: Line, request: SocketModeRequest, response: BoltResponse) -> None:
        payload = _payload(response) if request.accepts_response_payload else None
        reply = SocketModeResponse(request.envelope_id, payload)
        if await line.reply(reply):
            return
        # Slack may take it on another connection: the SDK's own client sends it there too
        other = self._line
        if other is None or other is line or not await other.reply(reply):
            log.warning("an answer over Socket Mode could not be sent: its connection is gone")


def _retry(request: SocketModeRequest) -> dict[str, str]:
    """The headers that the same request would have over HTTP; Slack counts the first attempt as 0."""
    if not request.retry_attempt:
        return {}
    return {RETRY_NUMBER: str(request.retry_attempt), RETRY_REASON: str(request.retry_reason or "")}


def _payload(response: BoltResponse) -> dict[str, Any] | None:
    if not response.body:
        return None
    if response.first_headers().get("content-type", "").startswith("application/json"):
        payload: dict[str, Any] = json.loads(response.body)
        return payload
    return {"text": response.body}


def _pause(failures: int) -> float:
    """Seconds before the next attempt: none at first, then 1, 2, 4, … up to 30, each cut by chance."""
    if failures == 0:
        return 0.0
    longest = min(LONGEST_PAUSE, 2.0 ** min(failures - 1, 10))
    return longest * random.uniform(0.5, 1.0)
