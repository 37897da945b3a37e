"""A thread with the agent: replies wait their turn, and the history stays well-formed whatever happened."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.model import ModelRefused
from agent.scripted import call, expect_results, expect_text, say, script, step
from agent.start import TaskEmpty, TaskTooLong, WrongStatus, cancel_run, retry_run
from agent.tool import Context
from store import calls, runs
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, approved, office, shape

PAY = call("pay", {"bills": ["b1"]})
LOOK = call("look", {"bills": ["b1"]})


async def test_a_reply_while_one_run_waits_is_stored_and_starts_afterwards_with_all_that_was_said(
    database: Database, tmp_path: Path
) -> None:
    talk = script(step(PAY), step(say("Paid.")), step(say("You are welcome."), expect=expect_text("Thanks.")))
    async with office(database, tmp_path, talk) as o:
        asked = await o.propose()
        reply = await o.begin("Thanks.", key="ev2")
        assert (reply.created, reply.waits, reply.run.status) == (True, True, RunStatus.QUEUED)
        await o.work()
        assert (await o.run(reply.run.id)).status is RunStatus.QUEUED
        in_the_way = await runs.in_the_way(o.house.db, reply.run.id)
        assert in_the_way is not None
        assert (in_the_way[0].id, [a.id for a in in_the_way[1]]) == (asked.run_id, [asked.id])
        await o.approve(asked)
        await o.work()
        assert (await o.run(reply.run.id)).answer == "You are welcome."
        assert shape(o.model.requests[-1]) == [
            ("user", ["text"]),
            ("assistant", ["tool_use"]),
            ("user", ["tool_result"]),
            ("assistant", ["text"]),
            ("user", ["text"]),
        ]


async def test_a_reply_to_a_stopped_run_waits_for_what_still_executes_and_reads_what_became_of_it(
    database: Database, tmp_path: Path
) -> None:
    inside, go = asyncio.Event(), asyncio.Event()
    talk = script(step(PAY), step(say("It ran.")))
    async with office(database, tmp_path, talk) as o:
        loop, asked = asyncio.get_running_loop(), await approved(o)

        def hold(ctx: Context) -> None:
            loop.call_soon_threadsafe(inside.set)
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result()

        o.world.watch = hold
        working = asyncio.create_task(o.another_worker().work_off())
        await inside.wait()
        await cancel_run(o.house, asked.run_id, LEO)
        reply = await o.begin("What happened?", key="ev2")
        await o.work()
        assert (await o.run(reply.run.id)).status is RunStatus.QUEUED
        in_the_way = await runs.in_the_way(o.house.db, reply.run.id)
        assert in_the_way is not None and in_the_way[0].id == asked.run_id
        go.set()
        await working
        await o.work()
        assert (await o.run(reply.run.id)).answer == "It ran."
        told = json.loads(o.model.requests[-1]["messages"][-1]["content"][0]["content"])
        assert (told["executed"], told["executedInput"]) == (True, {"bills": ["b1"]})


async def test_a_reply_to_a_run_that_was_stopped_before_the_attempt_reads_that_nothing_ran(
    database: Database, tmp_path: Path
) -> None:
    talk = script(
        step(PAY), step(say("Nothing ran."), expect=expect_results(lambda told: told[0]["cancelled"]))
    )
    async with office(database, tmp_path, talk) as o:
        asked = await approved(o)
        claimed = await calls.claim(o.house.db, token="t", worker="w9", lease=15)
        assert claimed is not None
        await cancel_run(o.house, asked.run_id, LEO)
        await o.begin("What happened?", key="ev2")
        await calls.release(o.house.db, claimed.call.id, "t", seconds=60, why="it could not be checked")
        await o.work()
        assert len(o.model.requests) == 1, "what was given back is about to be closed"
        await o.sweep()


async def test_a_first_message_waits_for_nobody(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        assert (await o.begin()).waits is False
        await o.work()


async def test_an_event_that_comes_again_begins_nothing(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        begun = await asyncio.gather(*(o.begin() for _ in range(5)))
        assert sorted(one.created for one in begun) == [False] * 4 + [True]
        assert len({one.run.id for one in begun}) == 1
        assert len(o.execute("SELECT id FROM notices WHERE kind = 'run_received'")) == 1
        await o.work()
        assert len(o.model.requests) == 1


async def test_an_empty_or_endless_task_is_refused(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path) as o:
        with pytest.raises(TaskEmpty):
            await o.begin(" \n ")
        with pytest.raises(TaskTooLong) as long:
            await o.begin("x" * 40_001)
        assert long.value.limit == 40_000
        assert o.execute("SELECT id FROM runs") == []


# --- after a run that did not come to its end ---


async def test_the_history_after_a_run_that_failed(database: Database, tmp_path: Path) -> None:
    talk = script(step(LOOK), step(say("Here I am again."), expect=expect_text("Once more.")))
    async with office(database, tmp_path, talk) as o:
        first = await o.start()
        o.model.fault_after_first = ModelRefused("No credit.", 400)
        await o.work()
        assert (await o.run(first.id)).error == "No credit."
        second = await o.start("Once more.", key="ev2")
        await o.work()
        assert (await o.run(second.id)).status is RunStatus.COMPLETED
        assert shape(o.model.requests[-1])[2:] == [("user", ["tool_result", "text"])]


async def test_the_history_after_a_run_that_failed_at_once(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("Both.")))) as o:
        o.model.faults = [ModelRefused("No credit.", 400)]
        await o.start()
        await o.work()
        await o.start("Once more.", key="ev2")
        await o.work()
        assert [block["text"] for block in o.model.last_message] == ["Pay the bills.", "Once more."]


async def test_the_history_after_a_run_that_was_stopped_while_it_waited(
    database: Database, tmp_path: Path
) -> None:
    talk = script(
        step(PAY, call("look", {"bills": ["b1"]})),
        step(say("It was stopped."), expect=expect_results(lambda told: told[0]["cancelled"])),
    )
    async with office(database, tmp_path, talk) as o:
        asked = await o.propose()
        await cancel_run(o.house, asked.run_id, LEO)
        assert (await o.approval(asked.id)).status == "cancelled"
        clicked = await o.approve(asked)
        assert getattr(clicked, "kind", None) == "cancelled"
        await o.start("What now?", key="ev2")
        await o.work()
        assert o.world.attempts == []


async def test_the_history_after_a_run_that_was_stopped_while_it_executed(
    database: Database, tmp_path: Path
) -> None:
    talk = script(
        step(PAY), step(say("It went through."), expect=expect_results(lambda told: told[0]["executed"]))
    )
    async with office(database, tmp_path, talk) as o:
        asked = await o.propose()
        await o.approve(asked)
        loop = asyncio.get_running_loop()

        def stop(ctx: Context) -> None:
            asyncio.run_coroutine_threadsafe(cancel_run(o.house, asked.run_id, LEO), loop).result(20)

        o.world.watch = stop
        await o.work()
        await o.start("What now?", key="ev2")
        await o.work()


async def test_the_next_run_reads_of_a_call_whose_worker_is_gone_that_nobody_knows(
    database: Database, tmp_path: Path
) -> None:
    talk = script(
        step(PAY), step(say("I don't know."), expect=expect_results(lambda told: told[0]["executed"] is None))
    )
    async with office(database, tmp_path, talk) as o:
        asked = await o.propose()
        await o.approve(asked)
        o.world.watch = lambda ctx: o.execute("UPDATE calls SET token = 'killed' WHERE status = 'executing'")
        await o.work()
        await cancel_run(o.house, asked.run_id, LEO)
        await o.start("What now?", key="ev2")
        await o.work()
        assert len(o.model.requests) == 1, "it may still execute"
        o.shift_clock("1 minute")
        await o.sweep()
        await o.work()


async def test_a_run_that_was_stopped_writes_nothing_more(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(LOOK))) as o:
        run = await o.start()
        loop = asyncio.get_running_loop()
        answer = o.model.answer

        async def stopped(**values: Any) -> Any:
            given = await answer(**values)
            await cancel_run(o.house, run.id, LEO)
            return given

        assert loop.is_running()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(o.model, "answer", stopped)
            await o.work()
        assert (await o.run(run.id)).status is RunStatus.CANCELLED
        assert (o.execute("SELECT id FROM calls"), o.world.looks) == ([], 0)


# --- runs retry ---


async def test_a_failed_run_that_is_retried_goes_on_from_its_last_turn(
    database: Database, tmp_path: Path
) -> None:
    talk = script(step(LOOK), step(say("Now it works."), expect=expect_results(1)))
    async with office(database, tmp_path, talk) as o:
        run = await o.start()
        o.model.fault_after_first = ModelRefused("No credit.", 400)
        await o.work()
        await retry_run(o.house, run.id, LEO)
        await o.work()
        after = await o.run(run.id)
        assert (after.status, after.error, o.world.looks) == (RunStatus.COMPLETED, None, 1)
        with pytest.raises(WrongStatus):
            await retry_run(o.house, run.id, LEO)


async def test_a_run_that_fails_again_is_told_again(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path) as o:
        run = await o.start()
        for number in range(2):
            o.model.faults = [ModelRefused("No credit.", 400)]
            await o.work()
            assert len(o.execute("SELECT id FROM notices WHERE kind = 'run_failed'")) == number + 1
            await retry_run(o.house, run.id, LEO)
        o.model.faults = [ModelRefused("No credit.", 400)]
        await o.work()


async def test_a_failed_run_is_not_retried_after_a_later_one_has_read_on(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        o.model.faults = [ModelRefused("No credit.", 400)]
        failed = await o.start()
        await o.work()
        await o.start("Again.", key="ev2")
        await o.work()
        with pytest.raises(WrongStatus):
            await retry_run(o.house, failed.id, LEO)
