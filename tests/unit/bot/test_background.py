"""Work outside Bolt: begun after the answer, watched, ended at shutdown; calls to publish are never lost."""

import asyncio

import pytest

from bot.after import AfterAnswer
from bot.tasks import AT_ONCE, Tasks
from bot.wake import Wake


async def test_a_drain_waits_for_what_runs_and_for_what_that_starts() -> None:
    tasks, done = Tasks(), []

    async def second() -> None:
        await asyncio.sleep(0)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.start(second(), "second")

    tasks.start(first(), "first")
    await tasks.drain(5)
    assert done == ["second"]
    assert len(tasks) == 0


async def test_a_drain_cancels_what_does_not_end() -> None:
    tasks = Tasks()
    endless = tasks.start(asyncio.Event().wait(), "endless")
    await tasks.drain(0.01)
    assert endless.cancelled()


async def test_a_failure_is_logged_and_hurts_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = Tasks()

    async def fail() -> None:
        raise ValueError("broken")

    tasks.start(fail(), "filling a window")
    await tasks.drain(5)
    written = "".join(capsys.readouterr())
    assert "filling a window" in written
    assert "broken" in written


async def test_of_what_is_queued_only_so_much_runs_at_once() -> None:
    tasks, running, most = Tasks(), 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    for number in range(3 * AT_ONCE):
        tasks.queue(work, f"work {number}")
    await tasks.drain(5)
    assert most == AT_ONCE


async def test_work_left_for_after_the_answer_waits_for_it() -> None:
    tasks, done = Tasks(), []
    after = AfterAnswer(tasks)

    async def note(word: str) -> None:
        done.append(word)

    after.do(note, "said")
    await asyncio.sleep(0)
    assert done == []
    await after.begin()
    await tasks.drain(5)
    assert done == ["said"]


async def test_a_call_while_working_is_one_more_round() -> None:
    wake, rounds = Wake(), []
    second = asyncio.Event()

    async def work() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            wake.call()
            wake.call()
        else:
            second.set()

    serving = asyncio.create_task(wake.serve(work))
    wake.call()
    await asyncio.wait_for(second.wait(), 5)
    await asyncio.sleep(0)
    serving.cancel()
    assert len(rounds) == 2


async def test_a_round_that_ends_with_a_fault_is_logged_and_the_next_call_is_heard(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wake, rounds, second = Wake(), [], asyncio.Event()

    async def work() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            wake.call()
            raise ValueError("broken")
        second.set()

    serving = asyncio.create_task(wake.serve(work))
    wake.call()
    await asyncio.wait_for(second.wait(), 5)
    serving.cancel()
    assert "broken" in "".join(capsys.readouterr())
