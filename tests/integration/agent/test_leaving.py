"""Workers that die and runs that are stopped, while a call is on its way."""

import asyncio
from pathlib import Path

from agent.scripted import call, say, script, step
from agent.start import cancel_run
from agent.sweep import recover_calls
from agent.tool import Context
from store import calls
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, approved, office, until

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("That is all.")))


async def test_a_call_whose_worker_died_before_the_attempt_runs_elsewhere(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        claimed = await calls.claim(o.house.db, token="dead", worker="w-dead", lease=15)
        assert claimed is not None
        await o.sweep()
        assert o.world.attempts == []
        o.shift_clock("16 seconds")
        await o.sweep()
        assert (o.world.attempts, (await o.approval(asked.id)).status) == ([1], ApprovalStatus.EXECUTED)


async def test_a_call_of_a_stopped_run_that_was_given_back_does_not_execute(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        await calls.claim(o.house.db, token="dead", worker="w-dead", lease=15)
        await cancel_run(o.house, asked.run_id, LEO)
        o.shift_clock("16 seconds")
        assert await recover_calls(o.house) == 1
        await o.work()
        assert o.world.attempts == []
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.CANCELLED
        assert (o.world.attempts, (await o.run(asked.run_id)).open_calls) == ([], 0)


async def test_a_call_of_a_stopped_run_that_was_attempted_is_unknown(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("down")]
        await o.work()
        await cancel_run(o.house, asked.run_id, LEO)
        o.shift_clock("1 minute")
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN
        assert o.world.attempts == [1]


async def test_an_executing_call_of_a_stopped_run_is_let_finish(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        loop = asyncio.get_running_loop()

        def cancel(ctx: Context) -> None:
            asyncio.run_coroutine_threadsafe(cancel_run(o.house, asked.run_id, LEO), loop).result(20)

        o.world.watch = cancel
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED
        run = await o.run(asked.run_id)
        assert (run.status, run.open_calls, o.world.paid) == (RunStatus.CANCELLED, 0, BILLS)


async def test_two_workers_at_once_do_nothing_twice(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        for number in range(6):
            await o.start(key=f"ev{number}", thread=f"1.{number}", text=f"Pay {number}")
        workers = [o.another_worker(f"w{number}") for number in range(3)]
        await asyncio.gather(*(worker.work_off() for worker in workers))
        asked = await o.all_asked()
        await asyncio.gather(*(o.approve(each) for each in asked))

        async def all_ended() -> bool:
            await asyncio.gather(*(worker.work_off() for worker in workers))
            return not o.execute("SELECT id FROM runs WHERE status <> 'completed'")

        await until(all_ended, "all runs end")
        assert sorted(o.world.keys) == sorted(each.id for each in asked)
        assert len(o.world.attempts) == 6
