"""A Stripe that breaks its word: it forgets every idempotency key, and refunds as often as it is asked."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

LONGEST_PAGE = 2
"""The newest refunds come first, so many in one answer; Stripe's own has up to 100."""
_METADATA = re.compile(r"metadata\[(\w+)\]")


class CarelessStripe:
    """Charges and refunds, of charges or of payment intents; nothing is checked."""

    def __init__(self) -> None:
        self._charges: dict[str, dict[str, Any]] = {}
        self._refunds: list[dict[str, Any]] = []

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[str]:
        """Its address while it runs."""
        stripe = cls()
        app = web.Application()
        app.add_routes(
            [
                web.post("/v1/charges", stripe._charge),
                web.post("/v1/refunds", stripe._refund),
                web.get("/v1/refunds", stripe._list),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _charge(self, request: web.Request) -> web.Response:
        charge = await _made(request, f"ch_{len(self._charges) + 1}", "charge")
        self._charges[charge["id"]] = charge
        return web.json_response(charge)

    async def _refund(self, request: web.Request) -> web.Response:
        refund = await _made(request, f"re_{len(self._refunds) + 1}", "refund")
        charge = self._charges.get(refund.get("charge", ""), {"currency": "eur", "amount": 0})
        whole = {"amount": charge["amount"], "currency": charge["currency"], "status": "succeeded"}
        self._refunds.insert(0, {**whole, **refund})
        return web.json_response(self._refunds[0])

    async def _list(self, request: web.Request) -> web.Response:
        asked = {name: request.query[name] for name in ("charge", "payment_intent") if name in request.query}
        found = [refund for refund in self._refunds if asked.items() <= refund.items()]
        after = request.query.get("starting_after")
        begins = 0 if after is None else [refund["id"] for refund in found].index(after) + 1
        ends = begins + min(int(request.query.get("limit", 10)), LONGEST_PAGE)
        more = {"has_more": ends < len(found), "url": "/v1/refunds"}
        return web.json_response({"object": "list", "data": found[begins:ends], **more})


async def _made(request: web.Request, id: str, kind: str) -> dict[str, Any]:
    form = {name: str(value) for name, value in (await request.post()).items()}
    named = {found[1]: value for name, value in form.items() if (found := _METADATA.fullmatch(name))}
    plain = {name: value for name, value in form.items() if "[" not in name}
    amount = {"amount": int(plain["amount"])} if "amount" in plain else {}
    return {**plain, **amount, "id": id, "object": kind, "metadata": named}
