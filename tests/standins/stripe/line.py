"""A line to a Stripe, with faults for the refunds that go over it, and a count of what is at its end."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, Self

from aiohttp import ClientSession, web

TEST_KEY = "sk_test_of_a_stand_in"


class Fault(StrEnum):
    """What can go wrong with one refund."""

    REQUEST_HELD = "request_held"  # it waits for `release` before Stripe hears of it
    REQUEST_LOST = "request_lost"  # Stripe never hears of it, and the connection is cut
    ANSWER_HELD = "answer_held"  # it is made, and the answer waits for `release`
    ANSWER_LOST = "answer_lost"  # it is made, and the connection is cut
    ERROR_BEFORE = "error_before"  # a 500, and Stripe never hears of it
    ERROR_AFTER = "error_after"  # it is made, and the answer is a 500
    KEY_IN_USE = "key_in_use"  # a 409: another request with this key is under way
    BUSY = "busy"  # a 429
    DISPUTED = "disputed"  # refused for good
    KEY_REVOKED = "key_revoked"  # a 401
    NOT_ALLOWED = "not_allowed"  # a 403
    NONSENSE = "nonsense"  # it is made, and the answer is no JSON


_HELD = {Fault.REQUEST_HELD, Fault.ANSWER_HELD}
_CUT = {Fault.REQUEST_LOST, Fault.ANSWER_LOST}
_UNHEARD = {
    Fault.REQUEST_LOST: 500,
    Fault.ERROR_BEFORE: 500,
    Fault.KEY_IN_USE: 409,
    Fault.BUSY: 429,
    Fault.DISPUTED: 400,
    Fault.KEY_REVOKED: 401,
    Fault.NOT_ALLOWED: 403,
}
_ERRORS: dict[Fault, dict[str, str]] = {
    Fault.KEY_IN_USE: {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": "In use."},
    Fault.BUSY: {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests."},
    Fault.DISPUTED: {
        "type": "invalid_request_error",
        "code": "charge_disputed",
        "message": "The charge is disputed.",
    },
    Fault.KEY_REVOKED: {"type": "invalid_request_error", "message": "Expired API Key provided."},
    Fault.NOT_ALLOWED: {"type": "invalid_request_error", "message": "The key lacks a permission."},
}
_OUT_OF_ORDER = {"type": "api_error", "message": "Something went wrong on Stripe's end."}


class StripeLine:
    """Forwards to `upstream`; `asked` are the idempotency keys of the refunds asked for, in order."""

    def __init__(self, upstream: str, session: ClientSession) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.holding = asyncio.Event()
        self._upstream = upstream
        self._session = session
        self._status = "succeeded"
        self._released = asyncio.Event()
        self._faults: deque[Fault | None] = deque()
        self._read_faults: deque[Fault | None] = deque()

    @classmethod
    @asynccontextmanager
    async def to(cls, upstream: str) -> AsyncIterator[Self]:
        """A line to the Stripe at this address; `url` is its other end."""
        async with ClientSession(headers={"Authorization": f"Bearer {TEST_KEY}"}) as session:
            line = cls(upstream, session)
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", line._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                line.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield line
            finally:
                line.release()
                await runner.cleanup()

    def plan(self, *faults: Fault | None) -> None:
        """Let the next refunds meet these faults, one each; None is one without."""
        self._faults.extend(faults)

    def plan_reads(self, *faults: Fault | None) -> None:
        """The same for the next times that refunds are looked up."""
        self._read_faults.extend(faults)

    def release(self) -> None:
        """Let go on what is held, and hold nothing from now on."""
        self._released.set()

    async def refunds(self) -> list[dict[str, Any]]:
        """Every refund that Stripe has, by its own count."""
        found: list[dict[str, Any]] = []
        while True:
            asked = {"limit": "100"} | ({"starting_after": found[-1]["id"]} if found else {})
            async with self._session.get(f"{self._upstream}/v1/refunds", params=asked) as answer:
                page = await answer.json()
            found += page["data"]
            if not page["has_more"]:
                return found

    async def refunded(self) -> list[str]:
        """The shop's name of each payment that was refunded, once for each refund, sorted."""
        return sorted(refund["metadata"]["payment"] for refund in await self.refunds())

    async def refund(self, charge: str) -> None:
        """Refund a charge as somebody does in Stripe's dashboard."""
        body = {"charge": charge, "metadata[payment]": "by hand"}
        async with self._session.post(f"{self._upstream}/v1/refunds", data=body) as answer:
            answer.raise_for_status()

    async def charge(self, units: int, currency: str) -> str:
        """Charge somebody as it is done elsewhere; gives the charge's id."""
        body = {"amount": str(units), "currency": currency, "source": "tok_visa"}
        async with self._session.post(f"{self._upstream}/v1/charges", data=body) as answer:
            return str((await answer.json())["id"])

    def answers_with(self, status: str) -> None:
        """Say of each refund that it has this status, instead of "succeeded"."""
        self._status = status

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        faults = deque[Fault | None]()
        if request.path == "/v1/refunds":
            faults = self._faults if request.method == "POST" else self._read_faults
        if faults is self._faults:
            self.asked.append(request.headers.get("Idempotency-Key", ""))
        fault = faults.popleft() if faults else None
        if fault is Fault.REQUEST_HELD:
            await self._hold()
        answer = _error(fault) if fault in _UNHEARD else await self._forward(request)
        if fault is Fault.ANSWER_HELD:
            await self._hold()
        if fault in _CUT and request.transport is not None:
            request.transport.abort()
        if fault is Fault.ERROR_AFTER:
            return _error(fault)
        return web.Response(text="<html>") if fault is Fault.NONSENSE else answer

    async def _hold(self) -> None:
        self.holding.set()
        await self._released.wait()

    async def _forward(self, request: web.Request) -> web.Response:
        kept = ("Authorization", "Content-Type", "Idempotency-Key")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        async with self._session.request(
            request.method,
            f"{self._upstream}{request.rel_url}",
            data=await request.read(),
            headers=headers,
        ) as answer:
            text = (await answer.text()).replace('"succeeded"', f'"{self._status}"')
            return web.json_response(text=text, status=answer.status)


def _error(fault: Fault | None) -> web.Response:
    assert fault is not None
    error = _ERRORS.get(fault, _OUT_OF_ORDER)
    return web.json_response({"error": error}, status=_UNHEARD.get(fault, 500))
