"""A scripted model behind HTTP, with the provider's faults, and with the provider's rules in front."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI

from agent.model import ModelBusy, ModelError
from agent.scripted import Script, ScriptedModel
from bot.sandbox.model_api import create_model_api
from tests.standins.provider_rules import Violation
from tests.standins.proxy import Exchange, ModelProxy

DEADLINE_SECONDS = 30.0


@dataclass
class ScriptedServer:
    """The Messages API at `url`, answering from `model`."""

    model: ScriptedModel
    url: str = ""
    faults: deque[ModelError] = field(default_factory=deque)
    waiting: int = 0
    change: asyncio.Condition = field(default_factory=asyncio.Condition)
    held: bool = False

    def fail_next(self, status: int, *, retry_after: float | None = None, times: int = 1) -> None:
        """Answer the next requests with this status, and `retry_after` in seconds, without the script."""
        self.faults.extend(ModelBusy("scripted fault", status, retry_after) for _ in range(times))

    def hold(self) -> None:
        """Keep requests waiting for their answers until `release`."""
        self.held = True

    async def release(self) -> None:
        """Answer what waits, and what comes."""
        async with self.change:
            self.held = False
            self.change.notify_all()

    async def asked(self) -> None:
        """Wait until a held request is in."""
        async with asyncio.timeout(DEADLINE_SECONDS), self.change:
            await self.change.wait_for(lambda: self.waiting > 0)

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self.change:
            self.waiting += 1
            self.change.notify_all()
            try:
                await self.change.wait_for(lambda: not self.held)
            finally:
                self.waiting -= 1
        if self.faults:
            raise self.faults.popleft()
        return self.model.respond(request)


@dataclass(frozen=True)
class ModelUnderRules:
    """The scripted server behind the proxy: `url` is the base URL for clients."""

    proxy: ModelProxy
    server: ScriptedServer

    @property
    def url(self) -> str:
        return self.proxy.url

    @property
    def requests(self) -> list[Exchange]:
        return self.proxy.requests

    @property
    def violations(self) -> list[Violation]:
        return self.proxy.violations

    def fail_next(self, status: int, *, retry_after: float | None = None, times: int = 1) -> None:
        """See ScriptedServer.fail_next."""
        self.server.fail_next(status, retry_after=retry_after, times=times)

    def hold(self) -> None:
        """See ScriptedServer.hold."""
        self.server.hold()

    async def release(self) -> None:
        """See ScriptedServer.release."""
        await self.server.release()

    async def asked(self) -> None:
        """See ScriptedServer.asked."""
        await self.server.asked()


@asynccontextmanager
async def scripted_server(*scripts: Script) -> AsyncIterator[ScriptedServer]:
    """Serve the scripts over HTTP; nothing is checked when the block is left."""
    server = ScriptedServer(ScriptedModel(*scripts))
    app = create_model_api(server.answer, faults=(ModelError,))
    async with serve(app) as url:
        server.url = url
        try:
            yield server
        finally:
            await server.release()


@asynccontextmanager
async def model_under_rules(*scripts: Script) -> AsyncIterator[ModelUnderRules]:
    """Serve the scripts behind the provider's rules.

    Leaving the block raises AssertionError if a request broke a rule, UnexpectedCall if the script did
    not foresee one, and UnusedSteps if it was not followed to its end.
    """
    async with scripted_server(*scripts) as server, ModelProxy.start(server.url) as proxy:
        try:
            yield ModelUnderRules(proxy, server)
        finally:
            await server.release()
    proxy.assert_no_violations()
    server.model.assert_done()


@asynccontextmanager
async def serve(app: FastAPI) -> AsyncIterator[str]:
    """Serve `app` on a free port of the loopback, in this event loop; the block gets its base URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    # Not `serve`: it takes over the signals of the test's process and is stopped by polling.
    await server.startup(sockets=[listener])
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await server.shutdown(sockets=[listener])
