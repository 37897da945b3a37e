"""Follows runs that are under way, and has each one shown about once a second while there is something new.

Everything is told in memory and may be lost: what comes too fast is dropped, what Slack refuses is given up.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
from slack_sdk.errors import SlackApiError

from agent.progress import Count
from bot.posting import GONE, Fault
from bot.slack import UNREACHABLE
from store.errors import StoreError
from store.records import RunId

log = structlog.get_logger(__name__)

EVERY_SECONDS = 1.0  # between two updates for one run
# chat.update may be called 50 times a minute in a workspace, and the cards need it, too:
# https://docs.slack.dev/apis/web-api/rate-limits
BURST, PER_SECOND = 10, 0.5
MOST_FAILURES = 3

Said = tuple[int, int | None]


class Busy(Exception):
    """Somebody else is about the same line just now, or Slack wants no updates for so many seconds."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(seconds)
        self.seconds = seconds


Show = Callable[[RunId, Said | None], Awaitable[bool]]
"""Shows a run with what its tool counts; False: there is nothing yet to show it in."""
Sleep = Callable[[float], Awaitable[None]]


class Allowance:
    """How many updates may be sent: `burst` at once, and `per_second` more."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float]) -> None:
        self._burst, self._per_second, self._clock = burst, per_second, clock
        self._left, self._at = float(burst), clock()

    def take(self) -> float:
        """Take one; returns the seconds to wait until it may be used."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second) - 1
        self._at = now
        return max(0.0, -self._left / self._per_second)

    def pause(self, seconds: float) -> None:
        """Slack has had enough: nothing for so many seconds."""
        self._left = min(self._left, -seconds * self._per_second)


@dataclass
class _Followed:
    """A run that is under way here: whether it moved since it was last shown, and what its tool counts."""

    moved: bool = True
    count: Count | None = None
    counted: Said | None = None
    failures: int = 0
    begins: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def said(self) -> Said | None:
        """What the tool says now."""
        return None if self.count is None else self.count.said

    @property
    def is_behind(self) -> bool:
        """Whether there may be something new to show."""
        return self.moved or (self.count is not None and self.said != self.counted)


class Following:
    """The Progress of agent/progress.py: `show` is called for each run, one call at a time."""

    def __init__(
        self, show: Show, *, clock: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._show, self._sleep = show, sleep
        self._allowance = Allowance(BURST, PER_SECOND, clock)
        self._followed: dict[RunId, _Followed] = {}

    def moved(self, run_id: RunId) -> None:
        """See Progress."""
        self._follow(run_id).moved = True

    @contextmanager
    def counting(self, run_id: RunId, count: Count) -> Iterator[None]:
        """See Progress."""
        followed = self._follow(run_id)
        followed.moved, followed.count, followed.counted = True, count, None
        followed.begins.set()
        try:
            yield
        finally:
            followed.count = None
            self.moved(run_id)

    def counted(self, run_id: str) -> Said | None:
        """What the tool that executes for the run here says now."""
        followed = self._followed.get(RunId(run_id))
        return None if followed is None else followed.said

    async def close(self) -> None:
        """Follow nothing more; the rows say all that is left to say."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._followed.clear()

    def _follow(self, run_id: RunId) -> _Followed:
        followed = self._followed.get(run_id)
        if followed is None:
            followed = self._followed[run_id] = _Followed()
            followed.task = asyncio.create_task(self._keep(run_id, followed), name="progress")
        return followed

    async def _keep(self, run_id: RunId, followed: _Followed) -> None:
        """Show the run as long as it moves or its tool counts."""
        try:
            while followed.is_behind or followed.count is not None:
                if followed.is_behind:
                    await self._sleep(self._allowance.take())
                    await self._try(run_id, followed)
                await self._pause(followed)
        except Exception:
            # whatever is wrong with what is shown, the run and all others must not hear of it
            log.exception("a fault while progress was shown", run=run_id)
        finally:
            self._followed.pop(run_id, None)

    async def _pause(self, followed: _Followed) -> None:
        """Wait for a second, or until a tool begins: that it has not is wrong then, perhaps for a lease."""
        waits = [
            asyncio.ensure_future(self._sleep(EVERY_SECONDS)),
            asyncio.create_task(followed.begins.wait()),
        ]
        try:
            ended, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in ended:
                await wait
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _try(self, run_id: RunId, followed: _Followed) -> None:
        """Show it once; if that fails, it is tried a few times, and no more before the run moves."""
        followed.moved, followed.counted = False, followed.said
        followed.begins.clear()
        again = True
        try:
            shown = await self._show(run_id, followed.counted)
        except Busy as busy:
            followed.moved = True  # what they have read may be older than what there is to show
            if busy.seconds:
                self._allowance.pause(busy.seconds)
            return
        except (SlackApiError, StoreError, *UNREACHABLE) as error:
            fault = Fault.of(error)
            log.info("progress not shown", run=run_id, error=fault.code)
            if fault.pause is not None:
                self._allowance.pause(fault.pause)
                followed.moved = True
                return
            shown, again = False, fault.code not in GONE
        followed.failures = 0 if shown else followed.failures + 1
        if again and 0 < followed.failures < MOST_FAILURES:
            followed.moved = True
