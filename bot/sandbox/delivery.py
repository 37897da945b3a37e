"""Requests to the app, signed over HTTP or over Socket Mode, with Slack's three seconds and its retries."""

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import aiohttp

from bot.sandbox.changes import Changes
from bot.sandbox.errors import Json
from bot.sandbox.sockets import NoConnection, Sockets

DEFAULT_PATH = "/slack/events"
Target = int | str | None
"""Which of the app's URLs or connections: its position, the URL itself, or None for the next in turn."""
SOCKET = "socket"
"""Where a delivery went that went over Socket Mode."""


@dataclass(frozen=True)
class SignedRequest:
    """A request as it goes over HTTP, and the payload it was made from, which goes over Socket Mode."""

    kind: str
    payload: Json
    headers: Mapping[str, str]
    body: bytes
    envelope_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def envelope(self) -> Json:
        """As it goes over Socket Mode."""
        is_event = self.kind in {"event_callback", "app_rate_limited"}
        other = "slash_commands" if self.kind == "slash_command" else "interactive"
        envelope: Json = {
            "envelope_id": self.envelope_id,
            "type": "events_api" if is_event else other,
            "payload": self.payload,
            "accepts_response_payload": not is_event,
        }
        if is_event:
            envelope["retry_attempt"] = int(self.headers.get("x-slack-retry-num", 0))
            envelope["retry_reason"] = self.headers.get("x-slack-retry-reason", "")
        return envelope


@dataclass(frozen=True)
class Delivery:
    """One attempt to deliver: where, what came back, how long it took, and what failed.

    `failure` is None or Slack's retry reason: "http_timeout", "http_error", "connection_failed", and
    "timeout" over Socket Mode, where an answer has the status 200.
    """

    request: SignedRequest
    url: str
    status: int | None
    body: str
    headers: Mapping[str, str]
    elapsed: float
    failure: str | None
    retry_num: int = 0
    retry_reason: str | None = None

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def payload(self) -> Json:
        return self.request.payload

    @property
    def acked(self) -> bool:
        """Whether the app answered 2xx in time."""
        return self.failure is None


Outcome = tuple[int | None, str, dict[str, str], str | None]
"""Status, body and headers of an answer, and what failed."""


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The value of `X-Slack-Signature` (docs.slack.dev/authentication/verifying-requests-from-slack)."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


@dataclass
class Deliverer:
    """Sends to the app's URLs, or its connections, one after the other in turn; records every attempt."""

    signing_secret: str
    changes: Changes
    ack_timeout: float = 3.0
    retry_delays: Sequence[float] = (0.0, 60.0, 300.0)
    urls: tuple[str, ...] = ()
    sockets: Sockets | None = None
    """The app's connections, if it is in Socket Mode."""
    log: list[Delivery] = field(default_factory=list)
    _turns: "itertools.count[int]" = field(default_factory=itertools.count)
    _session: aiohttp.ClientSession | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def connect(self, urls: Iterable[str]) -> None:
        """Deliver to these URLs from now on; one without a path gets `/slack/events`."""
        self.urls = tuple(
            url if urlsplit(url).path.strip("/") else url.rstrip("/") + DEFAULT_PATH for url in urls
        )

    @property
    def has_app(self) -> bool:
        """Whether there is an app that can be told of anything."""
        return bool(self.urls) or self.sockets is not None

    def sign_json(self, kind: str, payload: Json, headers: Mapping[str, str] | None = None) -> SignedRequest:
        """An Events API request."""
        return self._signed(kind, payload, json.dumps(payload).encode(), "application/json", headers or {})

    def sign_interaction(self, payload: Json) -> SignedRequest:
        """A click, a submission or a closed view: JSON in the form field `payload`."""
        body = urlencode({"payload": json.dumps(payload)}).encode()
        return self._signed(str(payload.get("type")), payload, body, "application/x-www-form-urlencoded", {})

    def sign_command(self, fields: Json) -> SignedRequest:
        """A slash command: a plain form."""
        body = urlencode(fields).encode()
        return self._signed("slash_command", fields, body, "application/x-www-form-urlencoded", {})

    async def send(self, request: SignedRequest, to: Target = None) -> Delivery:
        """One attempt; never raises for what the app does, and is recorded in `log`."""
        started = time.monotonic()
        if self.sockets is not None and not isinstance(to, str):
            url = SOCKET
            status, body, headers, failure = await self._push(self.sockets, request, to)
        else:
            url = self._url(to)
            status, body, headers, failure = await self._post(url, request)
        number = int(request.headers.get("x-slack-retry-num", 0))
        reason = request.headers.get("x-slack-retry-reason")
        elapsed = time.monotonic() - started
        delivery = Delivery(request, url, status, body, headers, elapsed, failure, number, reason)
        self.log.append(delivery)
        self.changes.announce()
        return delivery

    async def _post(self, url: str, request: SignedRequest) -> Outcome:
        status, body, headers = None, "", dict[str, str]()
        failure: str | None = None
        try:
            async with asyncio.timeout(self.ack_timeout):
                async with self._http().post(
                    url, data=request.body, headers=dict(request.headers), allow_redirects=False
                ) as answer:
                    status, body = answer.status, await answer.text()
                    headers = {name.lower(): value for name, value in answer.headers.items()}
            failure = None if 200 <= status < 300 else "http_error"
        except TimeoutError:
            failure = "http_timeout"
        except (aiohttp.ClientError, OSError):
            failure = "connection_failed"
        return status, body, headers, failure

    async def _push(self, sockets: Sockets, request: SignedRequest, to: int | None) -> Outcome:
        try:
            async with asyncio.timeout(self.ack_timeout):
                answer = await sockets.send(request.envelope, to)
        except TimeoutError:
            return None, "", {}, "timeout"
        except NoConnection:
            return None, "", {}, "connection_failed"
        return 200, json.dumps(answer) if answer else "", {"content-type": "application/json"}, None

    async def deliver(self, request: SignedRequest, to: Target = None, *, again: bool) -> Delivery:
        """The first attempt; with `again`, failed ones are repeated in the background as Slack does."""
        first = await self.send(request, to)
        if again and not first.acked and first.headers.get("x-slack-no-retry") != "1":
            self.run(self._redeliver(request, first, to))
        return first

    def run(self, work: Any) -> None:
        """Run a coroutine beside everything else until it ends or the sandbox stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End the background work and close the connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._session is not None:
            await self._session.close()

    async def _redeliver(self, request: SignedRequest, failed: Delivery, to: Target) -> None:
        for number, delay in enumerate(self.retry_delays, start=1):
            await asyncio.sleep(delay)
            retry = {"x-slack-retry-num": str(number), "x-slack-retry-reason": str(failed.failure)}
            failed = await self.send(self._signed_anew(request, retry), to)
            if failed.acked or failed.headers.get("x-slack-no-retry") == "1":
                return

    def _signed_anew(self, request: SignedRequest, extra: Mapping[str, str]) -> SignedRequest:
        kept = {k: v for k, v in request.headers.items() if not k.startswith("x-slack-retry")}
        return replace(request, headers={**kept, **self._signature(request.body), **extra})

    def _signed(
        self, kind: str, payload: Json, body: bytes, content_type: str, extra: Mapping[str, str]
    ) -> SignedRequest:
        headers = {"Content-Type": content_type, "User-Agent": "Slackbot 1.0 (sandbox)"}
        return SignedRequest(kind, payload, {**headers, **self._signature(body), **extra}, body)

    def _signature(self, body: bytes) -> dict[str, str]:
        # the real clock: the app compares it with its own
        timestamp = str(int(time.time()))
        signature = sign(self.signing_secret, timestamp, body)
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": signature}

    def _url(self, to: Target) -> str:
        if isinstance(to, str):
            return to
        if not self.urls:
            raise LookupError("The app has no request URL yet: call sandbox.connect(url) first.")
        return self.urls[next(self._turns) % len(self.urls) if to is None else to]

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # a connection of its own for each delivery: the app may have been restarted meanwhile
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
        return self._session
