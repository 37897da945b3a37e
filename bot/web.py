"""HTTP: Slack's requests at /slack/events, health at /healthz and /readyz, numbers at /metrics."""

import asyncio
from collections.abc import Mapping
from urllib.parse import parse_qs

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from slack_bolt.adapter.starlette.async_handler import to_starlette_response
from slack_sdk.signature import SignatureVerifier
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from bot.envelope import UnreadableRequest, read_body
from bot.health import Health
from bot.metrics import Backlog
from bot.requests import RETRY_NUMBER, RETRY_REASON, Requests
from store import approvals, backlog, cards
from store.engine import Database
from store.errors import StoreError

log = structlog.get_logger(__name__)

NUMBERS_SECONDS = 2.0  # for the database's answer to one of them
BODY_SECONDS = 10.0  # for a whole body: Slack itself waits 3 s for the answer
LONGEST_BODY = 2 * 1024 * 1024  # bytes; a view is 250 kB at most, and form encoding makes it longer


def create_http(requests: Requests, health: Health, signing_secret: str | None) -> FastAPI:
    """The HTTP app of a web process; without a signing secret no request of Slack is taken."""
    app = FastAPI(title="vistobueno", openapi_url=None)
    bot = requests.bot
    verifier = SignatureVerifier(signing_secret) if signing_secret is not None else None

    async def slack_events(request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(request)
        except ClientDisconnect:
            log.debug("a request was not sent to its end")
            return Response(status_code=400)  # which nobody reads
        except TimeoutError:
            return PlainTextResponse("the body did not come in time", 408, {"Connection": "close"})
        if body is None:
            return PlainTextResponse("the body is too long", 413)
        if not is_signed(verifier, body, request.headers):
            # what Slack sends to check the certificate may be unsigned; it changes nothing
            return Response() if _is_ssl_check(body) else JSONResponse({"error": "invalid request"}, 401)
        return await _answer(requests, request, body)

    async def healthz(request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def readyz(request: Request) -> Response:
        checks = await health.checks()
        ok = all(check.ok for check in checks.values())
        shown = {name: check.to_json() for name, check in checks.items()}
        return JSONResponse({"ok": ok, "checks": shown}, 200 if ok else 503)

    async def metrics(request: Request) -> Response:
        text = bot.metrics.text(await _backlog(bot.house.db.within(NUMBERS_SECONDS)))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_route("/slack/events", slack_events, methods=["POST"])
    app.add_route("/healthz", healthz, methods=["GET"])
    app.add_route("/readyz", readyz, methods=["GET"])
    app.add_route("/metrics", metrics, methods=["GET"])
    return app


async def _backlog(db: Database) -> Backlog | None:
    """What waits in the database; None while it does not answer: the other numbers are needed then."""
    try:
        return Backlog(
            cards_behind=await cards.count_behind(db),
            notices_unposted=await backlog.count_unposted(db),
            approvals_pending=await approvals.count_pending(db),
        )
    except StoreError as error:
        log.warning("the numbers of the database are left out", error=str(error))
        return None


async def _answer(requests: Requests, request: Request, body: bytes) -> Response:
    requests.bot.metrics.request()
    try:
        payload = read_body(body, request.headers.get("content-type", ""))
    except UnreadableRequest as error:
        log.error("a signed request is not one of Slack's", error=str(error))
        return JSONResponse({"error": "unreadable body"}, 400)
    retry = {name: request.headers[name] for name in (RETRY_NUMBER, RETRY_REASON) if name in request.headers}
    answer = await requests.answer(payload, retry)
    response = to_starlette_response(answer.response)
    response.background = BackgroundTask(answer.after.begin)
    return response


def is_signed(verifier: SignatureVerifier | None, body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether Slack signed this body at most 5 minutes ago; never raises, whatever a stranger sends."""
    if verifier is None:
        return False
    try:
        return verifier.is_valid(
            body, headers.get("x-slack-request-timestamp"), headers.get("x-slack-signature")
        )
    except (ValueError, TypeError, OverflowError):  # no number or a far too large one, no UTF-8, no ASCII
        return False


async def _read(request: Request) -> bytes | None:
    """The body, or None as soon as it is too long."""
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > LONGEST_BODY:
            return None
    return bytes(chunks)


def _is_ssl_check(body: bytes) -> bool:
    fields = parse_qs(body.decode("latin-1"))
    return fields.get("ssl_check") == ["1"] and set(fields) <= {"ssl_check", "token"}
