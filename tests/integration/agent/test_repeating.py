"""Nothing is tried without end: what breaks a run off is counted, and in the end the run fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.loop import MOST_FAULTS
from agent.model import Answer
from agent.scripted import call, say, script, step
from agent.sweep import sweep
from store import calls, runs
from store.errors import DatabaseUnavailable, Unconfirmed
from store.records import Run
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, Office, office

PAY = call("pay", {"bills": ["b1"]})
TIP = call("tip", {"bills": ["b1"]})
HELLO = script(step(say("Hello.")))


def nested(depth: int) -> dict[str, Any]:
    """Objects inside one another, so many of them."""
    made: dict[str, Any] = {}
    for _ in range(depth):
        made = {"in": made}
    return made


def with_input(input: Any) -> Callable[[Answer], Answer]:
    """The answer with another input in its calls."""
    return lambda answer: replace(
        answer, content=[{**b, "input": input} if b["type"] == "tool_use" else b for b in answer.content]
    )


def a_bug(answer: Answer) -> Answer:
    """Stands for an exception of the house's own, after the answer."""
    raise KeyError("a bug")


async def try_for_hours(o: Office, hours: int = MOST_FAULTS + 2) -> None:
    """Let the clock and the worker go on, an hour at a time."""
    for hour in range(1, hours + 1):
        o.shift_clock(f"{hour} hours")
        await o.sweep()


async def die(o: Office, run: Run) -> None:
    """Take the run up, and be gone before anything is written."""
    assert await runs.claim(o.house.db, token="dead", worker="w-dead", lease=15) == run.id


def told(o: Office) -> list[tuple[Any, ...]]:
    """The notices of runs that failed: (run, error) each."""
    return o.execute("SELECT data->>'run_id', data->>'error' FROM notices WHERE kind = 'run_failed'")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_input({"note": json.loads("1e999")}), "a number that is not finite"),
        (with_input(None), "a tool_use that is not in its form"),
        (with_input(nested(1_200)), "nested too deeply"),
        (
            lambda answer: replace(answer, input_tokens=2**40),
            "The work broke off 8 times in a row (The datab",
        ),
        (a_bug, "broke off 8 times in a row (KeyError in vistobueno): the worker's log says more."),
    ],
    ids=["not finite", "no object", "too deep", "refused by the database", "a fault of ours"],
)
async def test_an_answer_that_cannot_be_kept_is_asked_for_a_few_times_and_then_the_thread_is_told(
    database: Database, tmp_path: Path, change: Callable[[Answer], Answer], words: str
) -> None:
    async with office(database, tmp_path, script(step(PAY))) as o:
        o.model.changing = change
        run = await o.start()
        await o.work()
        waiting = await o.run(run.id)
        assert (waiting.status, waiting.faults) == (RunStatus.QUEUED, 1)
        assert o.execute("SELECT not_before > house_now() FROM runs") == [(True,)]
        await try_for_hours(o)
        failed = await o.run(run.id)
        assert (failed.status, len(o.model.requests)) == (RunStatus.FAILED, MOST_FAULTS)
        assert words in (failed.error or "")
        assert told(o) == [(run.id, failed.error)]


async def test_an_answer_that_ends_its_worker_each_time_is_asked_for_a_few_times_only(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As if the process had ended here."""

    def kill(answer: Answer) -> Answer:
        raise Killed

    async with office(database, tmp_path, script(step(PAY))) as o:
        o.model.changing = kill
        run = await o.start()
        for minute in range(MOST_FAULTS + 2):
            o.shift_clock(f"{minute} minutes")
            await sweep(o.house)
            if (await o.run(run.id)).faults < MOST_FAULTS:
                with pytest.raises(Killed):
                    await o.work()
            else:
                await o.work()
        failed = await o.run(run.id)
        assert (failed.status, len(o.model.requests)) == (RunStatus.FAILED, MOST_FAULTS)
        assert (
            failed.error is not None
            and "8 times in a row (the last time its worker was gone)" in failed.error
        )
        assert told(o) == [(run.id, failed.error)]


async def test_two_lost_workers_do_not_fail_a_run(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, HELLO) as o:
        run = await o.start()
        for minute in (1, 2):
            await die(o, run)
            o.shift_clock(f"{minute} minutes")
            await sweep(o.house)
        await o.work()
        assert ((await o.run(run.id)).status, (await o.run(run.id)).faults) == (RunStatus.COMPLETED, 2)


async def test_lost_workers_count_only_while_nothing_is_kept(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(PAY), step(say("Done.")))) as o:
        run = await o.start()
        for minute in range(1, MOST_FAULTS):
            await die(o, run)
            o.shift_clock(f"{minute} minutes")
            await sweep(o.house)
        await o.work()
        assert (await o.run(run.id)).faults == 0
        await o.approve(await o.asked())
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


async def test_a_run_that_failed_so_can_be_tried_again(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, HELLO) as o:
        run = await o.start()
        for minute in range(1, MOST_FAULTS + 1):
            await die(o, run)
            o.shift_clock(f"{minute} minutes")
            await sweep(o.house)
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.FAILED
        assert await runs.retry(o.house.db, run.id, LEO)
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


@pytest.mark.parametrize("fault", [DatabaseUnavailable("away"), Unconfirmed("away")])
async def test_a_database_that_is_away_is_no_fault_of_the_run(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def away(*args: Any, **values: Any) -> Any:
        raise fault

    async with office(database, tmp_path, HELLO) as o:
        run = await o.start()
        with monkeypatch.context() as patch:
            patch.setattr(runs, "complete", away)
            await o.work()
        assert ((await o.run(run.id)).status, (await o.run(run.id)).faults) == (RunStatus.RUNNING, 0)
        o.model.scripted.used.clear()
        o.shift_clock("1 minute")
        await o.sweep()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


async def test_a_run_that_cannot_even_be_read_fails_as_well(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any) -> Any:
        raise RecursionError

    async with office(database, tmp_path) as o:
        monkeypatch.setattr(runs, "load", broken)
        run = await o.start()
        await try_for_hours(o)
        assert (await o.run(run.id)).status is RunStatus.FAILED


async def test_a_run_does_not_fail_while_one_of_its_calls_may_have_run(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any, **values: Any) -> Any:
        raise KeyError("a bug")

    async with office(database, tmp_path, script(step(TIP), step(say("Done.")))) as o:
        run = await o.start()
        with monkeypatch.context() as patch:
            patch.setattr(calls, "finish_done", broken)
            await o.work()
        assert o.world.attempts != []
        o.execute("UPDATE runs SET faults = %s", MOST_FAULTS + 20)
        with monkeypatch.context() as patch:
            patch.setattr(calls, "finish_done", broken)
            await try_for_hours(o, 2)
        assert (await o.run(run.id)).status is RunStatus.QUEUED
        o.execute("UPDATE runs SET faults = 1")
        await try_for_hours(o, 6)
        assert (await o.run(run.id)).status is RunStatus.COMPLETED
        assert len(set(o.world.keys)) == 1
