"""The shop's refund provider: another party, reached over HTTP only, that honours idempotency keys.

It remembers in memory, so it lives in the process that outlives the app: the demo's or the test's.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from aiohttp import web

from agent.tool import Money

# an app that is killed in the middle of a request is told as a fault of the server's, with a traceback
_SILENT = logging.getLogger("shop.provider")
_SILENT.setLevel(logging.CRITICAL)


class Fault(StrEnum):
    """What can go wrong with one request."""

    SERVER_ERROR = "server_error"  # nothing is refunded and the answer is a 500
    LOST_ANSWER = "lost_answer"  # it is refunded and the connection is cut
    HELD_ANSWER = "held_answer"  # it is refunded and the answer waits for `release`


@dataclass(frozen=True)
class Refund:
    """One refund that was made."""

    id: str
    key: str
    payment_id: str
    amount: Money


class RefundProvider:
    """Refunds what it is asked to, once per key, and counts; `requests` includes repeats and faults."""

    def __init__(self, pace: float = 0.0) -> None:
        self.url = ""
        self._pace = pace
        self.requests = 0
        self.refused_payments: set[str] = set()
        self.holding = asyncio.Event()
        self._released = asyncio.Event()
        self._faults: deque[Fault | None] = deque()
        self._refunds: dict[str, Refund] = {}
        self._bodies: dict[str, dict[str, Any]] = {}

    @classmethod
    @asynccontextmanager
    async def start(cls, port: int = 0, *, pace: float = 0.0) -> AsyncIterator[Self]:
        """Serve on 127.0.0.1, on a free port unless one is given; `url` is where.

        A refund takes `pace` seconds, as it does elsewhere.
        """
        provider = cls(pace)
        app = web.Application()
        app.add_routes([web.post("/refunds", provider._refund), web.get("/refunds", provider._list)])
        runner = web.AppRunner(app, access_log=None, logger=_SILENT)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield provider
        finally:
            provider.release()
            await runner.cleanup()

    @property
    def refunds(self) -> tuple[Refund, ...]:
        """Every refund made, in order; two of one payment are two."""
        return tuple(self._refunds.values())

    def plan(self, *faults: Fault | None) -> None:
        """Let the next requests meet these faults, one each; None is a request without one."""
        self._faults.extend(faults)

    def release(self) -> None:
        """Answer what is held, and hold nothing from now on."""
        self._released.set()

    async def _refund(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        await asyncio.sleep(self._pace)
        fault = self._faults.popleft() if self._faults else None
        if fault is Fault.SERVER_ERROR:
            return web.json_response({"error": "out of order"}, status=500)
        answer = self._answer(request.headers.get("Idempotency-Key", ""), await request.json())
        if fault is Fault.LOST_ANSWER and request.transport is not None:
            request.transport.abort()
        if fault is Fault.HELD_ANSWER:
            self.holding.set()
            await self._released.wait()
        return answer

    def _answer(self, key: str, body: dict[str, Any]) -> web.Response:
        if not key:
            return web.json_response({"error": "the header Idempotency-Key is missing"}, status=400)
        if self._bodies.get(key, body) != body:
            return web.json_response({"error": "the key was used for another refund"}, status=422)
        if key not in self._refunds:
            if body["payment_id"] in self.refused_payments:
                return web.json_response({"error": "the card is closed"}, status=402)
            amount = Money(body["amount"], body["currency"])
            self._bodies[key] = body
            self._refunds[key] = Refund(f"re_{len(self._refunds) + 1:04}", key, body["payment_id"], amount)
        return web.json_response(_shown(self._refunds[key]))

    async def _list(self, request: web.Request) -> web.Response:
        refunds = self.refunds
        return web.json_response(
            {
                "refunds": [_shown(refund) for refund in refunds],
                "count": len(refunds),
                "distinct_payments": len({refund.payment_id for refund in refunds}),
            }
        )


def _shown(refund: Refund) -> dict[str, Any]:
    return {"id": refund.id, "payment_id": refund.payment_id, **refund.amount.to_json()}
