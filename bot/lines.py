"""Keeps the first message of each answer true while its run goes on; what it misses, a later step makes good.

Nobody waits for it: it is told in memory, reads the rows when there is something to show, drops what comes
too fast, and gives up on Slack's refusals. That the last line is true does not hang on it: the publisher
brings the line up to date, durably, with each notice that says that a run waits or has ended.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

import structlog
from slack_sdk.errors import SlackApiError

from agent.house import House
from agent.progress import Count
from bot.blocks.bounded import Message
from bot.blocks.line import LineContext, line
from bot.blocks.notices import NoticeKind, notice
from bot.posting import GONE, Fault
from bot.slack import UNREACHABLE, Slack
from bot.texts import Texts
from store import lines, runs
from store.errors import StoreError
from store.records import Line, RunId
from store.transitions import RunStatus

log = structlog.get_logger(__name__)

EVERY_SECONDS = 1.0  # between two updates of one line
# chat.update may be called 50 times a minute in a workspace, and the cards need it, too:
# https://docs.slack.dev/apis/web-api/rate-limits
BURST, PER_SECOND = 10, 0.5
MOST_FAILURES = 3

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
    """A run that is under way here: `moved` since it was last shown, and what its tool says."""

    moved: bool = False
    count: Count | None = None
    counted: tuple[int, int | None] | None = None
    shown: Message | None = None
    failures: int = 0
    task: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there may be something new to show."""
        return self.moved or (self.count is not None and self.said != self.counted)

    @property
    def said(self) -> tuple[int, int | None] | None:
        """What the tool says now."""
        return None if self.count is None else self.count.said


class Lines:
    """The Progress of agent/progress.py, shown in Slack."""

    def __init__(
        self,
        house: House,
        slack: Slack,
        texts: Texts,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`house` has the database of what is done in the background."""
        self._house, self._slack, self._texts = house, slack, texts
        self._sleep = sleep
        self._allowance = Allowance(BURST, PER_SECOND, clock)
        self._followed: dict[RunId, _Followed] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- told by the worker ---

    def moved(self, run_id: RunId) -> None:
        """See Progress."""
        self._follow(run_id).moved = True

    @contextmanager
    def counting(self, run_id: RunId, count: Count) -> Iterator[None]:
        """See Progress."""
        followed = self._follow(run_id)
        followed.moved, followed.count, followed.counted = True, count, None
        try:
            yield
        finally:
            # it may have been forgotten and followed anew meanwhile, if showing it failed
            followed = self._follow(run_id)
            followed.moved, followed.count = True, None

    async def close(self) -> None:
        """Stop showing; the rows say all that is left to say."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _follow(self, run_id: RunId) -> _Followed:
        followed = self._followed.get(run_id)
        if followed is None:
            followed = self._followed[run_id] = _Followed()
            followed.task = asyncio.create_task(self._keep(run_id, followed), name="progress")
        return followed

    async def _keep(self, run_id: RunId, followed: _Followed) -> None:
        """Show the run as long as it moves or its tool counts; never more often than once a second."""
        try:
            while followed.is_behind or followed.count is not None:
                if followed.is_behind:
                    await self._sleep(self._allowance.take())
                    await self._try(run_id, followed)
                await self._sleep(EVERY_SECONDS)
        except Exception:
            # whatever is wrong with what is shown, the run and all others must not hear of it
            log.exception("a fault while progress was shown", run=run_id)
        finally:
            self._followed.pop(run_id, None)

    async def _try(self, run_id: RunId, followed: _Followed) -> None:
        """Show it once; what Slack or the database refuses is tried again a few times, then left."""
        followed.moved, followed.counted = False, followed.said
        try:
            posted = await self._show(run_id, followed.counted, followed)
        except (SlackApiError, StoreError, *UNREACHABLE) as error:
            fault = Fault.of(error)
            followed.failures += 1
            followed.moved = followed.failures < MOST_FAILURES and fault.code not in GONE
            self._allowance.pause(fault.pause or 0.0)
            log.info("progress not shown", run=run_id, error=fault.code)
            return
        # another process may be about to post it
        followed.failures = 0 if posted else followed.failures + 1
        followed.moved = followed.moved or (not posted and followed.failures < MOST_FAILURES)

    # --- shown ---

    async def show(self, run_id: str) -> None:
        """Bring the line up to date now; raises SlackApiError, UNREACHABLE or StoreError."""
        followed = self._followed.get(RunId(run_id))
        await self._show(run_id, followed.said if followed else None, followed, always=True)

    async def _show(
        self,
        run_id: str,
        counted: tuple[int, int | None] | None,
        followed: _Followed | None,
        *,
        always: bool = False,
    ) -> bool:
        """One after another for each run, and read inside: what is sent last is what was read last.

        False: the line is not posted yet.
        """
        async with self._locks.setdefault(run_id, asyncio.Lock()):
            rows = await lines.read(self._house.db, run_id)
            if rows is None:
                return False
            said = await self._message(rows, counted)
            if followed is not None and said == followed.shown and not always:
                return True
            await self._slack.quick.chat_update(
                channel=rows.conversation.channel_id, ts=rows.ts, **said.arguments()
            )
            if followed is not None:
                followed.shown = said
            return True

    async def _message(self, rows: Line, counted: tuple[int, int | None] | None) -> Message:
        if rows.run.status is RunStatus.QUEUED and rows.run.started_at is None:
            in_the_way = await runs.in_the_way(self._house.db, rows.run.id)
            return notice(NoticeKind.RUN_RECEIVED, {}, self._texts, in_the_way=in_the_way)
        doing = {name: tool.doing for name, tool in self._house.tools.items() if tool.doing}
        return line(rows, LineContext(self._texts, doing, {}, counted))
