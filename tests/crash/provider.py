"""A refund provider that ignores keys: whoever asks twice refunds twice."""

from itertools import count
from typing import Any

from aiohttp import web

from agent.tools.shop.provider import RefundProvider


class ForgetfulProvider(RefundProvider):
    """What stands behind a tool that must not be repeated."""

    def __init__(self, pace: float = 0.0) -> None:
        super().__init__(pace)
        self._times = count(1)

    def _answer(self, key: str, body: dict[str, Any]) -> web.Response:
        return super()._answer(f"{key}#{next(self._times)}", body)
