"""What the database, the refund provider and the shop hold now, read while somebody looks."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.tools.shop.provider import Refund
from agent.tools.shop.seed import count_failed
from bot.demo.world import World
from store import approvals, runs, totals
from store.engine import Database
from store.errors import StoreError, translated
from store.records import Approval, Run
from store.totals import Totals

PAUSE_SECONDS = 1.0
READ = 50  # of each list, the newest
CLICKS = frozenset({"block_actions", "view_submission"})


@dataclass(frozen=True)
class Clicks:
    """How many clicks people made, and how often these were delivered."""

    made: int
    delivered: int


@dataclass(frozen=True)
class State:
    """What there was when it was last read: the newest runs and approvals, and how many there are of all.

    `failed` are payments of the shop, `refunds` those of the provider; none where there is no shop.
    """

    runs: tuple[Run, ...]
    approvals: tuple[Approval, ...]
    totals: Totals
    failed: int
    refunds: tuple[Refund, ...]
    clicks: Clicks


class Board:
    """The state as it was last read; `trouble` is a sentence if it could not be read again.

    `read` is called after each reading.
    """

    def __init__(self, world: World, db: Database, read: Callable[[], None]) -> None:
        self.state: State | None = None
        self.trouble = ""
        self._world = world
        self._db = db
        self._read = read
        self._watchers = 0
        self._closed = False
        self._reading: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read everything once."""
        if self._closed:
            return
        try:
            self.state, self.trouble = await self._state(), ""
        except StoreError as error:
            self.trouble = str(error)
        self._read()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While open, by one or by many, everything is read about once a second."""
        self._watchers += 1
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_on(), name="reading the database")
        try:
            yield
        finally:
            self._watchers -= 1

    async def close(self) -> None:
        """Read nothing any more."""
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    def count_clicks(self, since: int = 0) -> Clicks:
        """Count them, without the first `since` deliveries of the Slack."""
        delivered = [d.request for d in self._world.sandbox.deliveries[since:] if d.kind in CLICKS]
        return Clicks(len({id(request) for request in delivered}), len(delivered))

    async def _read_on(self) -> None:
        while self._watchers and not self._closed:
            await self.look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _state(self) -> State:
        found = await runs.listed(self._db, unfinished_only=False, limit=READ)
        asked = await approvals.listed(self._db, open_only=False, limit=READ)
        counted = await totals.count(self._db)
        failed = await self._failed() if self._world.has_shop else 0
        refunds, clicks = self._world.provider.refunds, self.count_clicks()
        return State(tuple(found), tuple(asked), counted, failed, refunds, clicks)

    async def _failed(self) -> int:
        with translated():  # the shop is user code, with errors of its own driver
            return await count_failed(self._world.urls.owner)
