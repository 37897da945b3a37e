"""The worker as a process runs it: it wakes up by itself, sweeps, publishes, and stops."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.scripted import call, say, script, step
from agent.tool import Context
from agent.usercode import Health, UserCode
from agent.worker import Worker
from store import calls
from store.records import ClaimedCall
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import NoPublisher, Office, office, until

PAY = call("pay", {"bills": ["b1"]})
DONE = script(step(PAY), step(say("Done.")))
NEVER = 3600.0  # seconds: a worker that polls so rarely goes on only when it is told to


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[None]:
    """Run the worker inside the block, then stop it."""
    stop = asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(20):
            await running


async def is_status(o: Office, run_id: str, status: RunStatus) -> bool:
    return (await o.run(run_id)).status is status


async def test_a_worker_goes_on_when_it_is_notified_without_any_poll(
    database: Database, tmp_path: Path
) -> None:
    async with (
        office(database, tmp_path, DONE) as o,
        at_work(o.another_worker(poll=NEVER, sweep_every=NEVER)),
    ):
        run = await o.start()
        await until(lambda: is_status(o, run.id, RunStatus.AWAITING_APPROVAL), "it asks")
        await o.approve(await o.asked())
        await until(lambda: is_status(o, run.id, RunStatus.COMPLETED), "it is done")
        assert o.world.paid == ["b1"]


async def test_what_was_there_before_the_worker_is_found(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        run = await o.start()
        async with at_work(o.another_worker(poll=NEVER, sweep_every=NEVER)):
            await until(lambda: is_status(o, run.id, RunStatus.AWAITING_APPROVAL), "it asks")
        async with at_work(o.another_worker("w3", poll=NEVER, sweep_every=NEVER)):
            await o.approve(await o.asked())
            await until(lambda: is_status(o, run.id, RunStatus.COMPLETED), "it is done")


async def test_its_sweeps_run_by_themselves(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o, at_work(o.another_worker(sweep_every=0.05)):
        run = await o.start()
        await until(lambda: is_status(o, run.id, RunStatus.AWAITING_APPROVAL), "it asks")
        o.shift_clock("24 hours 1 second")
        await until(lambda: is_status(o, run.id, RunStatus.COMPLETED), "the run hears of the expiry")


class CountingPublisher(NoPublisher):
    """Counts how often it is asked, and breaks when told to."""

    def __init__(self) -> None:
        self.rounds = 0
        self.fault: Exception | None = None

    async def publish_cards(self) -> int:
        """See Publisher."""
        self.rounds += 1
        if self.fault is not None:
            raise self.fault
        return 0


async def test_it_publishes_when_it_is_notified(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        publisher = CountingPublisher()
        async with at_work(Worker(o.house, publisher, poll=NEVER, sweep_every=NEVER)):
            run = await o.start()
            await until(lambda: is_status(o, run.id, RunStatus.COMPLETED), "it is done")
            before = publisher.rounds
            await o.start("More.", key="ev2", thread="2.2")

            async def published() -> bool:
                return publisher.rounds > before

            await until(published, "the new message is published")
            o.model.scripted.used.add((0, 0))


async def test_a_worker_with_a_dead_part_ends_and_says_why(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path) as o:
        publisher = CountingPublisher()
        publisher.fault = KeyError("a bug")
        async with asyncio.timeout(20):
            with pytest.raises(KeyError, match="a bug"):
                await Worker(o.house, publisher).run(asyncio.Event())


class DeafPublisher(NoPublisher):
    """Swallows the first cancellation, as a wait may that ends at the same moment."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()

    async def publish_notices(self) -> int:
        """See Publisher."""
        if not self.inside.is_set():
            self.inside.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return 0


async def test_a_worker_stops_though_a_cancellation_was_lost_on_the_way(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.worker.GRACE", 0.1)
    async with office(database, tmp_path) as o:
        publisher = DeafPublisher()
        async with at_work(Worker(o.house, publisher)):
            await publisher.inside.wait()


async def test_a_worker_that_stops_lets_what_runs_come_to_its_end_and_claims_nothing_more(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.approve(asked)
        inside, go_on = threading.Event(), threading.Event()

        def hold(ctx: Context) -> None:
            inside.set()
            assert go_on.wait(20)

        o.world.watch = hold
        stop = asyncio.Event()
        running = asyncio.create_task(o.another_worker().run(stop))

        async def executing() -> bool:
            return inside.is_set()

        await until(executing, "the tool is called")
        stop.set()

        async def looks_no_more() -> bool:
            return all(task.get_name() != "claim" for task in asyncio.all_tasks())

        await until(looks_no_more, "it claims nothing more")
        await o.start("Another.", key="ev2", thread="2.2")
        go_on.set()
        async with asyncio.timeout(20):
            await running
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED
        assert o.execute("SELECT count(*) FROM runs WHERE status = 'queued'") == [(1,)]
        o.model.scripted.used.update({(0, 0), (0, 1)})


async def test_a_worker_that_is_stopped_between_two_looks_for_work_takes_none(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, DONE) as o:
        worker, stop, look = o.another_worker(), asyncio.Event(), calls.claim

        async def stopping() -> bool:
            return worker._stopping

        async def stopped(db: Any, **claim: Any) -> ClaimedCall | None:
            found = await look(db, **claim)
            await o.start("Another.", key="ev2", thread="2.2")
            stop.set()
            await until(stopping, "it knows that it is to stop")
            return found

        monkeypatch.setattr(calls, "claim", stopped)
        async with asyncio.timeout(20):
            await worker.run(stop)
        assert o.execute("SELECT count(*) FROM runs WHERE status = 'queued'") == [(1,)]
        o.model.scripted.used.update({(0, 0), (0, 1)})


async def test_runs_go_on_beside_a_call_that_the_database_lets_nobody_claim(
    database: Database, tmp_path: Path
) -> None:
    pays, greets = script(step(PAY), when=lambda task: "bills" in task), script(step(say("Hello.")))
    async with office(database, tmp_path, pays, greets) as o:
        await o.approve(await o.propose())
        o.execute("ALTER TABLE held_items ADD CONSTRAINT none CHECK (false)")
        other = await o.start("Good morning.", key="ev2", thread="2.2")
        async with at_work(o.another_worker()):
            await until(lambda: is_status(o, other.id, RunStatus.COMPLETED), "the other run ends")


async def test_a_worker_does_not_wait_for_ever_for_what_runs(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.worker.GRACE", 0.1)
    async with office(database, tmp_path, script(step(PAY))) as o:
        asked = await o.propose()
        await o.approve(asked)
        inside, go_on = threading.Event(), threading.Event()

        def hold(ctx: Context) -> None:
            inside.set()
            assert go_on.wait(20)

        o.world.watch = hold

        async def executing() -> bool:
            return inside.is_set()

        async with at_work(o.another_worker()):
            await until(executing, "the tool is called")
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTING
        go_on.set()


async def test_an_unhealthy_worker_claims_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = [Health(False, 6.0, {}, "pay blocks the loop of user code")]
    async with office(database, tmp_path, DONE) as o:
        monkeypatch.setattr(UserCode, "health", lambda self: health[0])
        worker = o.another_worker(poll=0.02)
        asked_at: list[Any] = []
        claim = worker._claim

        async def counted() -> bool:
            asked_at.append(1)
            return await claim()

        monkeypatch.setattr(worker, "_claim", counted)
        run = await o.start()
        async with at_work(worker):

            async def looked_often() -> bool:
                return len(asked_at) > 5

            await until(looked_often, "it looks for work")
            assert (await o.run(run.id)).status is RunStatus.QUEUED
            health[0] = Health(True, 0.0, {}, None)
            await until(lambda: is_status(o, run.id, RunStatus.AWAITING_APPROVAL), "it works again")
            await o.approve(await o.asked())
            await until(lambda: is_status(o, run.id, RunStatus.COMPLETED), "it is done")


async def test_no_more_is_claimed_at_a_time_than_the_worker_may_do(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        most = 0

        def count(ctx: Context) -> None:
            nonlocal most
            rows = o.execute("SELECT count(*) FROM calls WHERE status = 'executing'")
            most = max(most, rows[0][0])

        o.world.watch = count
        for number in range(5):
            await o.start(key=f"ev{number}", thread=f"1.{number}")
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)

        async def all_done() -> bool:
            return o.execute("SELECT count(*) FROM runs WHERE status = 'completed'") == [(5,)]

        async with at_work(o.another_worker(concurrency=1)):
            await until(all_done, "all are done")
        assert most == 1


async def test_workers_side_by_side_do_nothing_twice(database: Database, tmp_path: Path) -> None:
    async with (
        office(database, tmp_path, DONE) as o,
        at_work(o.another_worker("w2")),
        at_work(o.another_worker("w3")),
    ):
        for number in range(6):
            await o.start(key=f"ev{number}", thread=f"1.{number}")

        async def all_asked() -> bool:
            return len(await o.all_asked()) == 6

        await until(all_asked, "all ask")
        asked = await o.all_asked()
        await asyncio.gather(*(o.approve(each) for each in asked))

        async def all_done() -> bool:
            return o.execute("SELECT count(*) FROM runs WHERE status = 'completed'") == [(6,)]

        await until(all_done, "all are done")
        assert sorted(o.world.keys) == sorted(each.id for each in asked)
