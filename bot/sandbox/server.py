"""The HTTP side: /api/<method>, /respond/<key> and the page, as an ASGI app in the caller's event loop."""

import asyncio
import json
import socket
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, cast
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.sandbox.errors import Json, SlackError
from bot.sandbox.faults import Fault
from bot.sandbox.methods import METHODS, Call, Method
from bot.sandbox.methods.response_url import respond
from bot.sandbox.page import Site
from bot.sandbox.slack import Slack

TRANSPORT = "sandbox.transport"


@dataclass(frozen=True)
class ApiCall:
    """One call the app made: what it sent, and the error it was answered (None: ok)."""

    method: str
    args: Json
    error: str | None
    ts: str | None = None


@dataclass
class WebApi:
    """Answers the app's calls on one Slack, and keeps a list of them."""

    slack: Slack
    suggestion: str = ""
    calls: list[ApiCall] = field(default_factory=list)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    site: Site = field(init=False)

    def __post_init__(self) -> None:
        self.site = Site(self.slack, self.closing, self.suggestion)

    def app(self) -> ASGIApp:
        """The ASGI application; every answer bears the date of Slack's clock."""
        inner = Starlette(
            routes=[
                Route("/api/{method}", self.answer_method, methods=["GET", "POST"]),
                Route("/respond/{key}", self.answer_response_url, methods=["POST"]),
                *self.site.routes(),
            ]
        )

        async def dated(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_dated(message: Message) -> None:
                if message["type"] == "http.response.start":
                    date = formatdate(self.slack.workspace.clock.now(), usegmt=True)
                    MutableHeaders(scope=message)["date"] = date
                await send(message)

            await inner(scope, receive, send_dated)

        return dated

    async def answer_method(self, request: Request) -> Response:
        """One Web API call, with the fault ordered for it, if any."""
        name = str(request.path_params["method"])
        try:
            args = await _arguments(request)
        except SlackError as error:
            self._note(name, {}, error.code)
            return JSONResponse(error.body())
        fault = self.slack.faults.take(name)
        if fault is not None and not fault.performed:
            self._note(name, args, fault.body.get("error", f"fault:{fault.kind}"))
            return await self._fail(request, fault)
        answer = self._perform(name, _token(request, args), args)
        return answer if fault is None else await self._fail(request, fault)

    async def answer_response_url(self, request: Request) -> Response:
        """A post to a response_url: "ok", or an error with a status above 400."""
        fault = self.slack.faults.take("respond")
        if fault is not None and not fault.performed:
            return await self._fail(request, fault)
        try:
            args = await _arguments(request)
            respond(self.slack, str(request.path_params["key"]), args)
        except SlackError as error:
            self._note("respond", {}, error.code)
            return JSONResponse(error.body(), 404 if error.code.endswith("_url") else 400)
        self._note("respond", args, None)
        return PlainTextResponse("ok") if fault is None else await self._fail(request, fault)

    def _perform(self, name: str, token: str, args: Json) -> Response:
        try:
            method = METHODS.get(name)
            if method is None:
                raise SlackError("unknown_method", req_method=name)
            self._authorize(method, token)
            retry_after = self.slack.limiter.admit(name, args)
            if retry_after is not None:
                self._note(name, args, "ratelimited")
                return _too_many(name, retry_after)
            body = {"ok": True, **method.run(Call(self.slack, args))}
        except SlackError as error:
            self._note(name, args, error.code)
            return JSONResponse(error.body())
        self._note(name, args, None, body.get("ts"))
        scopes = ",".join(sorted(self.slack.workspace.app.scopes))
        return JSONResponse(body, headers={"X-OAuth-Scopes": scopes})

    def _authorize(self, method: Method, token: str) -> None:
        app = self.slack.workspace.app
        if not token:
            raise SlackError("not_authed")
        if token not in {app.bot_token, app.app_token}:
            raise SlackError("invalid_auth")
        if token != (app.bot_token if method.token == "bot" else app.app_token):
            raise SlackError("not_allowed_token_type")
        if app.token_revoked:
            raise SlackError("token_revoked")
        if method.scope is not None:
            Call(self.slack, {}).need_scope(method.scope)

    async def _fail(self, request: Request, fault: Fault) -> Response:
        if fault.kind == "error":
            return JSONResponse(fault.body)
        if fault.kind == "other":
            return Response(fault.text, media_type=fault.media_type)
        if fault.kind == "rate_limited":
            return _too_many("", fault.retry_after)
        if fault.kind == "hang":
            await self.closing.wait()
        if fault.kind in {"drop", "hang"}:
            request.scope[TRANSPORT].abort()
        return PlainTextResponse("", fault.status)

    def _note(self, name: str, args: Json, error: str | None, ts: str | None = None) -> None:
        self.calls.append(ApiCall(name, args, error, ts))
        self.slack.workspace.changes.announce()


def _too_many(method: str, retry_after: int) -> Response:
    code = "rate_limited" if method == "chat.postMessage" else "ratelimited"
    return JSONResponse({"ok": False, "error": code}, 429, {"Retry-After": str(retry_after)})


def _token(request: Request, args: Json) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else str(args.pop("token", ""))


async def _arguments(request: Request) -> Json:
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json") and body:
        try:
            args = json.loads(body)
        except ValueError as error:
            raise SlackError("invalid_json") from error
        return cast(Json, args) if isinstance(args, dict) else {}
    pairs = [*request.query_params.multi_items(), *parse_qsl(body.decode(), keep_blank_values=True)]
    return {name: _decoded(name, value) for name, value in pairs}


def _decoded(name: str, value: str) -> Any:
    if name not in {"blocks", "attachments", "view", "metadata"}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


class _Protocol(H11Protocol):
    """uvicorn's protocol, with the connection within reach so that a fault can break it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        inner = cast(ASGIApp, self.app)

        async def with_transport(scope: Scope, receive: Receive, send: Send) -> None:
            await inner({**scope, TRANSPORT: transport}, receive, send)

        self.app = cast(Any, with_transport)


class HttpServer:
    """Serves an ASGI app on 127.0.0.1 in the running event loop."""

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,  # the machine's, and Slack's clock may be another
        )
        self._server = uvicorn.Server(config)
        self._socket: socket.socket | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on `port` (0: any free one) and return the port."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        # not serve(): signals belong to the caller, and its loop only ticks
        await self._server.startup(sockets=[self._socket])
        return int(self._socket.getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, give open requests a moment to end, and break every connection."""
        if self._socket is None:
            return
        for listener in self._server.servers:
            listener.close()
        state = self._server.server_state
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=1.0)
        for connection in list(state.connections):
            cast(H11Protocol, connection).transport.abort()
        await asyncio.sleep(0)
        self._socket.close()
        self._socket = None
