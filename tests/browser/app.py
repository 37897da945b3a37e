"""A workspace without the demo behind it, and an app in it that does what a test tells it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.drive import Json, answering, client_of
from tests.sandbox.parts import actions, button, header, section

if TYPE_CHECKING:  # tests without a browser are skipped, and not broken
    from tests.browser.person import Person

SUGGESTION = "please refund the failed payments"
FEW = 5


@dataclass
class App:
    """The app in the workspace; `on_press` and `on_submit` are what it does then, and answers."""

    sandbox: Sandbox
    client: AsyncWebClient
    on_press: Callable[[Json], Awaitable[Any]] | None = None
    on_submit: Callable[[Json], Awaitable[Json | None]] | None = None
    payloads: list[Json] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        """Take what Slack delivers."""
        fields = dict(parse_qsl((await request.body()).decode()))
        if "payload" not in fields:
            return Response()
        payload = json.loads(fields["payload"])
        self.payloads.append(payload)
        if payload["type"] == "block_actions" and self.on_press is not None:
            await self.on_press(payload)
        if payload["type"] == "view_submission" and self.on_submit is not None:
            answer = await self.on_submit(payload)
            return Response() if answer is None else JSONResponse(answer)
        return Response()

    async def posts(self, words: str, *elements: Json, title: str = "A card", length: int = 0) -> str:
        """A message in #approvals; with elements, a card that has them, below so many lines. Gives its ts."""
        blocks = [header(title), *lines_of(length), actions(*elements)] if elements else None
        posted = await self.client.chat_postMessage(channel="C0APPROVALS", text=words, blocks=blocks)
        return str(posted["ts"])

    async def changes(
        self, ts: str, words: str, *elements: Json, title: str = "A card", length: int = 0
    ) -> None:
        """Other contents for a message; with a length, a card without elements too."""
        acts = [actions(*elements)] if elements else []
        told = [section(words), *lines_of(length)] if length else []
        blocks = [header(title), *told, *acts] if told or acts else []
        await self.client.chat_update(channel="C0APPROVALS", ts=ts, text=words, blocks=blocks)

    async def posts_some(self, count: int, *, before: Person | None = None) -> None:
        """So many messages that not all of them fit; `before` whom they come few at a time, so that all fit.

        For of more that come at once, whoever is at the end sees the first.
        """
        for number in range(count):
            await self.posts(f"message {number}")
            if before is not None and (number + 1) % FEW == 0:
                await before.sees(f"message {number}")


def lines_of(length: int) -> list[Json]:
    """A card's lines."""
    return [section("\n".join(f"line {number}" for number in range(length)))] if length else []


def go(label: str, **more: Any) -> Json:
    """A button whose action is always the same, as a card's is at every update."""
    return button(label, action_id=label.lower(), **more)


@asynccontextmanager
async def running() -> AsyncIterator[App]:
    """A workspace with the app in it."""
    sandbox = await Sandbox.start(rate_limits=RateLimits.off(), suggestion=SUGGESTION)
    app = App(sandbox, client_of(sandbox))
    try:
        async with answering(sandbox, app.answer):
            yield app
    finally:
        await sandbox.stop()
