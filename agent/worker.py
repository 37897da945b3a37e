"""The worker: claims what may go on, runs the sweeps, and publishes; it holds nothing but leases."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from agent.drift import withdraw_outdated
from agent.execute import execute
from agent.house import House
from agent.leases import LEASE_SECONDS, Leases
from agent.loop import advance, record_end, record_fault
from agent.sweep import sweep
from agent.turn import Lost
from store import approvals, calls, runs
from store.errors import DatabaseUnavailable, NotMigrated, StatementRefused, StoreError, Unconfirmed
from store.records import Approval, ClaimedCall, ClaimedRun, RunId

log = structlog.get_logger(__name__)

POLL = 5.0  # seconds: the fallback when no notification is heard
SWEEP_EVERY = 1.0
GRACE = 10.0  # seconds that what runs is given when the worker stops
BACKOFF = 1.0
WARN_SECONDS = 2.0
CANCEL_AGAIN = 0.5


class Publisher(Protocol):
    """Makes Slack match the rows; the worker is told how by its caller."""

    async def publish_cards(self) -> int:
        """Bring cards up to date; returns how many."""

    async def publish_notices(self) -> int:
        """Post what is to be said; returns how many."""

    async def close(self) -> None:
        """Let go of what it holds."""


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended: what they wait for may swallow a cancellation that comes with it.

    https://github.com/python/cpython/issues/86296
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN)


class Worker:
    """One process's worker: `concurrency` runs or calls at a time, each under a lease."""

    def __init__(
        self,
        house: House,
        publisher: Publisher,
        *,
        name: str | None = None,
        concurrency: int = 4,
        lease: float = LEASE_SECONDS,
        sweep_every: float = SWEEP_EVERY,
        poll: float = POLL,
    ) -> None:
        self.house = house
        self.publisher = publisher
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.leases = Leases(house.db, self.name, lease)
        self._concurrency = concurrency
        self._sweep_every = sweep_every
        self._poll = poll
        self._wakes: list[asyncio.Event] = []
        self._busy: set[asyncio.Task[None]] = set()
        self._due = asyncio.Event()
        self._stopping = False
        self._looked_at: Approval | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then claim nothing more and give what runs ten seconds.

        Raises what a part of the worker that must not end has raised: half a worker would look like one.
        """
        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.add_job(self._tick, "interval", seconds=self._sweep_every, max_instances=1, coalesce=True)
        scheduler.start()
        helpers = [
            asyncio.create_task(self.leases.keep(), name="leases"),
            asyncio.create_task(self._listen(), name="listen"),
            asyncio.create_task(self._repeat(self._publish), name="publish"),
            asyncio.create_task(self._repeat(self._claim), name="claim"),
            asyncio.create_task(self._sweep(), name="sweep"),
        ]
        outdated = asyncio.create_task(self._guarded(self._withdraw()), name="withdraw")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({stopped, *helpers}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            scheduler.shutdown(wait=False)
            ended = [task for task in helpers if task.done()]
            await _cancel([stopped])
            await self._wind_down(helpers, outdated)
        for task in ended:
            task.result()

    async def _wind_down(self, helpers: Sequence[asyncio.Task[None]], outdated: asyncio.Task[None]) -> None:
        """Let what is under way come to its end, a statement no less than a call; then cancel the rest."""
        self._stopping = self.leases.closing = True
        self._due.set()
        self._notify()
        _, listen, *loops = helpers
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await _cancel([listen])
                await asyncio.wait(loops)
                await asyncio.wait({outdated, *self._busy})
        await _cancel([*helpers, outdated, *self._busy])

    # --- waking up ---

    async def _listen(self) -> None:
        async with self.house.db.listener() as listener:
            while True:
                if await listener.wait(self._poll):
                    self._notify()

    def _notify(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def _repeat(self, step: Callable[[], Awaitable[bool]]) -> None:
        """Do `step` while it finds something, then wait for a notification or the poll."""
        wake = asyncio.Event()  # of its own: what wakes one must not be lost to another
        self._wakes.append(wake)
        while not self._stopping:
            wake.clear()
            try:
                found = await step()
            except StoreError as error:
                log.warning("the database is in the way", step=step.__name__, error=str(error))
                await asyncio.sleep(BACKOFF)
                continue
            if not found:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll):
                        await wake.wait()

    async def _tick(self) -> None:
        self._due.set()
        if self.house.user_code.must_exit:
            log.error("user code is stuck: this worker leaves", reason=self.house.user_code.health().reason)
            await self._warn_the_next()
            os._exit(1)

    async def _warn_the_next(self) -> None:
        """What this worker looked at as it got stuck would take the next one down, too."""
        if self._looked_at is None:
            return
        try:
            async with asyncio.timeout(WARN_SECONDS):
                await approvals.got_stuck(self.house.db, self._looked_at, self.name)
        except (StoreError, TimeoutError) as error:
            log.warning("it could not be recorded what was looked at", error=str(error))

    async def _sweep(self) -> None:
        while await self._due.wait() and not self._stopping:
            self._due.clear()
            try:
                if await sweep(self.house):
                    self._notify()
            except StoreError as error:
                log.warning("the database is in the way", step="sweep", error=str(error))

    async def _withdraw(self) -> None:
        """Once, at the start: what does not fit this version of the house any more need not be decided."""
        while not self._stopping:
            try:
                if await withdraw_outdated(self.house, self._look_at):
                    self._notify()
                return
            except StoreError as error:
                log.warning("the database is in the way", step="withdraw", error=str(error))
                await asyncio.sleep(BACKOFF)

    def _look_at(self, approval: Approval | None) -> None:
        self._looked_at = approval

    async def _publish(self) -> bool:
        return bool(await self.publisher.publish_notices() + await self.publisher.publish_cards())

    # --- claiming ---

    async def _claim(self) -> bool:
        """Start one piece of work if there is room and some to do."""
        if self._stopping or len(self._busy) >= self._concurrency or not self.house.user_code.health().ok:
            return False
        work = await self._claim_one()
        if work is None:
            return False
        self._begin(work)
        return True

    async def _claim_one(self) -> Awaitable[None] | None:
        token = self.leases.new_token()
        db, lease = self.house.db, self.leases.seconds
        try:
            claimed = await calls.claim(db, token=token, worker=self.name, lease=lease)
        except StatementRefused as error:  # runs must not wait behind a call that cannot be claimed
            log.warning("no call could be claimed", error=str(error))
            claimed = None
        if claimed is not None:
            return self._carry_call(claimed)
        if self._stopping:  # since it looked for a call
            return None
        run_id = await runs.claim(db, token=token, worker=self.name, lease=lease)
        return None if run_id is None else self._carry_run(run_id, token)

    async def work_one(self) -> bool:
        """Do one piece of what may go on now, to its end or pause; False: there is nothing to do."""
        work = await self._claim_one()
        if work is None:
            return False
        await self._guarded(work)
        return True

    async def work_off(self) -> None:
        """Do what may go on now, one piece after another, until there is nothing left; then return."""
        while await self.work_one():
            pass

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._guarded(work))
        self._busy.add(task)
        task.add_done_callback(self._freed)

    def _freed(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        self._notify()

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Lost as lost:
            log.warning("a run was taken over", run=str(lost))
        except StoreError as error:
            log.warning("work stopped by the database; its lease will lapse", error=str(error))
        except Exception:
            # a fault of ours: the lease lapses and the work is tried again, and the log says why
            log.exception("work stopped by a fault")

    async def _carry_call(self, claimed: ClaimedCall) -> None:
        run_token = self.leases.new_token()
        try:
            with self.leases.holding(claimed.token):
                ended = await execute(self.house, self.leases, claimed, run_token)
        finally:
            self.house.progress.moved(claimed.run.id)
        if ended is not None and ended.kept:
            await self._carry_run(ended.run_id, run_token, ended.run)

    async def _carry_run(self, run_id: RunId, token: str, claimed: ClaimedRun | None = None) -> None:
        """Go on with a run that is held under `token`; `claimed`: as it was read already."""
        try:
            await self._advance(run_id, token, claimed)
        except (Lost, DatabaseUnavailable, NotMigrated, Unconfirmed):
            raise  # no fault of the run: it must not fail because the database was away
        except Exception as error:
            # whatever is broken for this run may be so at every try, and none may be without end
            log.exception("a run was broken off", run=run_id)
            await record_fault(self.house, run_id, token, error)
        finally:
            self.house.progress.moved(run_id)

    async def _advance(self, run_id: RunId, token: str, claimed: ClaimedRun | None) -> None:
        with self.leases.holding(token):
            claimed = claimed or await runs.load(self.house.db, run_id, token)
            outcome = await advance(self.house, self.leases, claimed)
            await record_end(self.house, claimed, outcome)
