"""Background work of the web process: tracked, so that shutdown ends it and failures are logged."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog
from slack_sdk.errors import SlackClientError

from store.errors import StoreError

log = structlog.get_logger(__name__)

AT_ONCE = 16

T = TypeVar("T")


class Tasks:
    """A set of running tasks; each logs the exception it ends with."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run `work` beside what asks for it; `name` says in the log what failed."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def in_time(self, work: Coroutine[Any, Any, T], name: str, seconds: float) -> T:
        """The result of `work` if it is there within so many seconds.

        Raises TimeoutError when it is not; `work` then goes on: cutting a statement that is on its way would
        not undo it, and may take seconds itself.
        """
        task = self.start(work, name)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError
        return task.result()

    def queue(self, work: Callable[[], Coroutine[Any, Any, T]], name: str) -> asyncio.Task[T]:
        """Run `work()` once fewer than 16 of those queued run: a flood must not take all connections."""

        async def when_free() -> T:
            async with self._slots:
                return await work()

        return self.start(when_free(), name)

    async def drain(self, seconds: float) -> None:
        """Wait for all that runs, and what it starts meanwhile; cancel what is left after `seconds`."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._running and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(tuple(self._running), timeout=left)
        left_over = tuple(self._running)
        for task in left_over:
            task.cancel()
        await asyncio.gather(*left_over, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            log.warning("background task cancelled", task=task.get_name())
        elif (error := task.exception()) is not None:
            foreseen = isinstance(error, StoreError | SlackClientError | TimeoutError)
            trace = None if foreseen else error
            log.error("background task failed", task=task.get_name(), error=str(error), exc_info=trace)
