"""Waiting for the workspace to change, without polling."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Changes:
    """A signal given at every change; all who wait are woken and look again; `count` counts them."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def announce(self) -> None:
        """Wake everybody who waits; to be called after the change, in the event loop's thread."""
        self.count += 1
        self._next.set()
        self._next = asyncio.Event()

    def until(self, predicate: Callable[[], T], timeout: float) -> Coroutine[Any, Any, T]:
        """Wait until `predicate()` is true and return its value.

        Raises TimeoutError after `timeout` seconds.
        """
        return asyncio.wait_for(self._true(predicate), timeout)

    async def _true(self, predicate: Callable[[], T]) -> T:
        while not (value := predicate()):
            await self._next.wait()
        return value
