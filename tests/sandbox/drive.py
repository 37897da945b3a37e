"""Driving the sandbox: a real client, answers with their error codes, and apps served on a free port."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bot.sandbox import Sandbox
from bot.sandbox.server import HttpServer
from tests.sandbox.parts import home, modal

Json = dict[str, Any]


def client_of(sandbox: Sandbox, token: str = "xoxb-sandbox") -> AsyncWebClient:
    """A real client of the sandbox's Web API, without retries."""
    return AsyncWebClient(token=token, base_url=sandbox.api_url, retry_handlers=[])


async def answer(client: AsyncWebClient, method: str, **args: Any) -> Json:
    """The answer's JSON, whether ok or not."""
    try:
        return cast(Json, (await client.api_call(method, json=args)).data)
    except SlackApiError as error:
        return cast(Json, error.response.data)


async def error_of(client: AsyncWebClient, method: str, **args: Any) -> str | None:
    """The error code of the answer, None if it is ok."""
    return (await answer(client, method, **args)).get("error")


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """The address of an ASGI app while it is served."""
    server = HttpServer(app)
    yield f"http://127.0.0.1:{await server.start()}"
    await server.stop()


Handler = Callable[[Request], Awaitable[Response]]


@asynccontextmanager
async def answering(sandbox: Sandbox, handler: Handler) -> AsyncIterator[None]:
    """The sandbox connected to an app that answers every delivery with `handler`."""
    async with served(Starlette(routes=[Route("/slack/events", handler, methods=["POST"])])) as url:
        sandbox.connect(url)
        yield


async def acknowledge(request: Request) -> Response:
    """An app that answers 200 and nothing more."""
    return Response()


class Recorder:
    """An app that keeps every request and answers as it is told."""

    def __init__(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = status
        self.headers = headers or {}

    async def __call__(self, request: Request) -> Response:
        self.requests.append((dict(request.headers), await request.body()))
        return Response(status_code=self.status, headers=self.headers)


async def delivered(sandbox: Sandbox, act: Awaitable[Any]) -> dict[str, Any]:
    async with answering(sandbox, acknowledge):
        await act
    return sandbox.deliveries[-1].payload


async def show(sandbox: Sandbox, surface: str, blocks: list[Json], frame: Json) -> Json:
    """Slack's answer to these blocks on that surface ("message", "modal", "home"), shown to Marta."""
    client = client_of(sandbox)
    if surface == "message":
        return await answer(client, "chat.postMessage", channel="C0SUPPORT", text="x", blocks=blocks)
    view = modal(*blocks) if surface == "modal" else home(*blocks)
    view = {name: value for name, value in {**view, **frame}.items() if value is not None}
    if surface == "home":
        return await answer(client, "views.publish", user_id="U0MARTA", view=view)
    trigger_id = sandbox.slack.triggers.issue("U0MARTA")
    return await answer(client, "views.open", trigger_id=trigger_id, view=view)
