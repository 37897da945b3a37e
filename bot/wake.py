"""A call to work that may come at any time and is never lost: many calls while working are one more round."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from slack_sdk.errors import SlackClientError

from bot.slack import UNREACHABLE
from store.errors import StoreError

log = structlog.get_logger(__name__)


class Wake:
    """An event with a loop: `call` asks for a round, `serve` makes the rounds."""

    def __init__(self) -> None:
        self._called = asyncio.Event()

    def call(self) -> None:
        """Ask for a round; returns at once."""
        self._called.set()

    def call_in(self, seconds: float) -> None:
        """Ask for a round after so many seconds; forgotten when the process ends, as a timer may be."""
        asyncio.get_running_loop().call_later(seconds, self.call)

    async def serve(self, work: Callable[[], Awaitable[object]]) -> None:
        """Make a round after each call, for ever; a round that fails is logged: the worker makes it good."""
        while True:
            await self._called.wait()
            self._called.clear()
            try:
                await work()
            except (StoreError, SlackClientError, *UNREACHABLE) as error:
                log.warning("a round failed", error=str(error))
            except Exception:
                # nobody starts this loop again: with it, all that people do would wait for the worker's poll
                log.exception("a round failed")
