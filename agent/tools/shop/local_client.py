"""Refunds at the shop's local provider, which honours idempotency keys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from aiohttp import ClientSession, ClientTimeout

from agent.tool import ToolError
from agent.tools.shop.payment_client import Made, Refused, Wanted

REQUEST_SECONDS = 10


class LocalClient:
    """Asks the provider at `url`."""

    provider = "the local provider"

    def __init__(self, url: str, http: ClientSession) -> None:
        self._url = url
        self._http = http

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str | None) -> AsyncIterator[Self]:
        """Connect for one batch; ToolError without a URL."""
        if not url:
            raise ToolError("SHOP_PROVIDER_URL is not set; set it to the refund provider's address")
        async with ClientSession(timeout=ClientTimeout(total=REQUEST_SECONDS)) as http:
            yield cls(url, http)

    async def refund(self, wanted: Wanted, *, again: bool) -> Made:
        """Make this refund; the provider itself knows what it made with this key."""
        body = {"payment_id": wanted.payment_id, "reason": wanted.reason, **wanted.amount.to_json()}
        headers = {"Idempotency-Key": wanted.key}
        async with self._http.post(f"{self._url}/refunds", json=body, headers=headers) as answer:
            if 400 <= answer.status < 500:
                said = (await answer.json())["error"]
                raise Refused(f"the provider refused to refund {wanted.payment_id}: {said}")
            # anything else that is no success may have refunded: raised as it is, nobody knows
            answer.raise_for_status()
            return Made((await answer.json())["id"])
