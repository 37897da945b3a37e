"""User code runs apart: it answers, fails, hangs and blocks without stopping the house."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from agent.tool import ToolError
from agent.usercode import KeyStillRunning, UserCode, UserCodeFailed, UserCodeTimeout

DEADLINE = 20.0
SOON = 0.02


@pytest.fixture
async def usercode() -> AsyncIterator[UserCode]:
    async with UserCode(threads=2, silent_after=0.1, exit_after=0.2, heartbeat=0.01) as running:
        yield running


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds blocked functions until the test, or its end, lets them go."""
    event = threading.Event()
    yield event
    event.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


async def test_async_functions_share_one_loop_that_is_not_the_main_one(usercode: UserCode) -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    first = await usercode.run("where", where, timeout=DEADLINE)
    assert await usercode.run("where", where, timeout=DEADLINE) is first
    assert first is not asyncio.get_running_loop()


async def test_plain_functions_run_in_a_thread_of_the_pool(usercode: UserCode) -> None:
    thread = await usercode.run("where", threading.current_thread, timeout=DEADLINE)
    assert thread is not threading.main_thread()
    assert thread.daemon


async def test_the_function_gets_its_arguments_and_its_answer_comes_back(usercode: UserCode) -> None:
    assert await usercode.run("add", lambda a, b: a + b, 2, 3, timeout=DEADLINE) == 5


class Slow(Exception):
    """Its words tell where they are read."""

    def __str__(self) -> str:
        return threading.current_thread().name


async def test_the_words_of_an_error_are_read_where_the_function_ran(usercode: UserCode) -> None:
    def plain() -> None:
        raise Slow

    async def on_loop() -> None:
        raise Slow

    for function, where in ((plain, r"user-\d"), (on_loop, "user-loop")):
        with pytest.raises(UserCodeFailed, match=f"Slow: {where}") as caught:
            await usercode.run("refund", function, timeout=DEADLINE)
        assert str(caught.value) == caught.value.text


async def test_an_error_of_a_tool_comes_back_as_a_plain_one(usercode: UserCode) -> None:
    class Declined(ToolError):
        def __init__(self, message: Any, done: Any) -> None:
            self.message, self.done = message, done

    def refund() -> None:
        raise Declined(["declined"], {"p1": 1})

    with pytest.raises(ToolError) as caught:
        await usercode.run("refund", refund, timeout=DEADLINE)
    assert (type(caught.value), caught.value.message, caught.value.done) == (
        ToolError,
        "['declined']",
        ("p1",),
    )


async def test_an_error_that_is_foreseen_comes_back_as_the_same_object(usercode: UserCode) -> None:
    error = ValueError("no such payment")

    def plain() -> None:
        raise error

    async def on_loop() -> None:
        raise error

    for function in (plain, on_loop):
        with pytest.raises(ValueError, match="no such payment") as caught:
            await usercode.run("refund", function, timeout=DEADLINE, passing=(ValueError,))
        assert caught.value is error


async def test_a_timeout_of_the_tool_itself_is_not_taken_for_ours(usercode: UserCode) -> None:
    async def gives_up() -> None:
        raise TimeoutError("provider")

    with pytest.raises(UserCodeFailed, match="TimeoutError: provider"):
        await usercode.run("refund", gives_up, timeout=DEADLINE)


@pytest.mark.parametrize("exit_with", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_what_would_stop_the_house_becomes_an_error_of_the_call(
    usercode: UserCode, exit_with: type[BaseException]
) -> None:
    def plain() -> None:
        raise exit_with

    async def on_loop() -> None:
        raise exit_with

    for function in (plain, on_loop):
        with pytest.raises(UserCodeFailed, match=exit_with.__name__):
            await usercode.run("quits", function, timeout=DEADLINE)
    assert await usercode.run("next", asyncio.sleep, 0, "alive", timeout=DEADLINE) == "alive"


async def test_a_task_left_behind_that_exits_does_not_end_the_loop(usercode: UserCode) -> None:
    async def leaves_a_task() -> asyncio.Task[None]:
        async def quits() -> None:
            raise SystemExit

        return asyncio.create_task(quits())

    left = await usercode.run("leaver", leaves_a_task, timeout=DEADLINE)
    assert await usercode.run("next", asyncio.sleep, 0, "alive", timeout=DEADLINE) == "alive"
    assert isinstance(left.exception(), SystemExit)


async def test_a_plain_function_that_returns_a_coroutine_is_awaited_on_the_loop(usercode: UserCode) -> None:
    assert await usercode.run("lambda", lambda: asyncio.sleep(0, "slept"), timeout=DEADLINE) == "slept"


async def test_a_callable_object_with_an_async_call_runs_on_the_loop(usercode: UserCode) -> None:
    class Client:
        async def __call__(self) -> str:
            return threading.current_thread().name

    assert await usercode.run("client", Client(), timeout=DEADLINE) == "user-loop"
    assert await usercode.run("client", partial(Client()), timeout=DEADLINE) == "user-loop"


async def test_a_slow_coroutine_times_out_and_is_cancelled(usercode: UserCode) -> None:
    cancelled = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(UserCodeTimeout) as caught:
        await usercode.run("slow", slow, timeout=SOON)
    assert caught.value.started
    await until(cancelled.is_set)


async def test_a_cancelled_caller_cancels_its_coroutine(usercode: UserCode) -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def slow() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    caller = asyncio.create_task(usercode.run("slow", slow, timeout=DEADLINE))
    await until(began.is_set)
    caller.cancel()
    await until(cancelled.is_set)
    assert caller.cancelled()


async def test_a_key_is_refused_while_an_older_attempt_is_still_inside(
    usercode: UserCode, gate: threading.Event
) -> None:
    with pytest.raises(UserCodeTimeout):
        await usercode.run("refund", gate.wait, timeout=SOON, key="ap_1")
    with pytest.raises(KeyStillRunning):
        await usercode.run("refund", gate.wait, timeout=SOON, key="ap_1")
    gate.set()
    await until(lambda: usercode.health().stuck == {})
    assert await usercode.run("refund", gate.wait, timeout=DEADLINE, key="ap_1")


async def test_a_coroutine_that_ignores_its_cancellation_keeps_its_key(usercode: UserCode) -> None:
    release = asyncio.Event()
    inside = threading.Event()

    async def stubborn() -> None:
        inside.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(UserCodeTimeout):
        await usercode.run("stubborn", stubborn, timeout=SOON, key="ap_1")
    assert inside.is_set()
    with pytest.raises(KeyStillRunning):
        await usercode.run("stubborn", stubborn, timeout=SOON, key="ap_1")

    async def let_go() -> None:
        release.set()

    await usercode.run("release", let_go, timeout=DEADLINE)


async def test_a_key_is_free_again_after_its_attempt(usercode: UserCode) -> None:
    for _ in range(2):
        assert await usercode.run("refund", lambda: "done", timeout=DEADLINE, key="ap_1") == "done"


async def test_what_could_not_begin_in_time_never_runs_and_says_so(
    usercode: UserCode, gate: threading.Event
) -> None:
    for _ in range(2):
        with pytest.raises(UserCodeTimeout):
            await usercode.run("hog", gate.wait, timeout=SOON)
    ran: list[str] = []
    with pytest.raises(UserCodeTimeout) as caught:
        await usercode.run("refund", ran.append, "x", timeout=SOON, key="ap_1")
    assert not caught.value.started
    gate.set()
    await usercode.run("refund", lambda: None, timeout=DEADLINE, key="ap_1")
    assert ran == []


async def test_half_the_pool_past_its_timeout_is_unhealthy_and_names_the_tool(
    usercode: UserCode, gate: threading.Event
) -> None:
    assert usercode.health().ok
    with pytest.raises(UserCodeTimeout):
        await usercode.run("hog", gate.wait, timeout=SOON)
    health = usercode.health()
    assert (health.ok, health.stuck) == (False, {"hog": 1})
    assert "hog" in (health.reason or "")


async def test_fewer_than_half_past_their_timeout_are_counted_but_healthy(gate: threading.Event) -> None:
    async with UserCode(threads=4) as usercode:
        with pytest.raises(UserCodeTimeout):
            await usercode.run("hog", gate.wait, timeout=SOON)
        assert usercode.health().stuck == {"hog": 1}
        assert usercode.health().ok


async def test_a_blocked_loop_leaves_the_main_loop_free_and_names_the_tool(
    usercode: UserCode, gate: threading.Event
) -> None:
    async def blocks() -> None:
        gate.wait()

    with pytest.raises(UserCodeTimeout):
        await usercode.run("blocker", blocks, timeout=SOON)
    await until(lambda: not usercode.health().ok)
    assert "blocker" in (usercode.health().reason or "")
    assert await usercode.run("plain", lambda: "still works", timeout=DEADLINE) == "still works"
    gate.set()
    await until(lambda: usercode.health().ok)


async def test_a_task_that_a_tool_started_is_blamed_on_the_tool(
    usercode: UserCode, gate: threading.Event
) -> None:
    async def blocks() -> None:
        gate.wait()

    async def starts_another() -> None:
        await asyncio.gather(asyncio.sleep(0), blocks())

    async def innocent() -> None:
        await asyncio.Event().wait()

    waiting = asyncio.create_task(usercode.run("innocent", innocent, timeout=DEADLINE))
    with pytest.raises(UserCodeTimeout):
        await usercode.run("parent", starts_another, timeout=SOON)
    await until(lambda: not usercode.health().ok)
    assert (usercode.health().reason or "").startswith("parent ")
    gate.set()
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_it_must_exit_after_being_unhealthy_for_long_and_not_before(
    usercode: UserCode, gate: threading.Event
) -> None:
    assert not usercode.must_exit
    with pytest.raises(UserCodeTimeout):
        await usercode.run("hog", gate.wait, timeout=SOON)
    await until(lambda: usercode.must_exit)
    gate.set()
    await until(lambda: not usercode.must_exit)
    assert usercode.health().ok


async def test_being_unhealthy_is_not_yet_a_reason_to_exit(gate: threading.Event) -> None:
    async with UserCode(threads=1, exit_after=3600) as usercode:
        with pytest.raises(UserCodeTimeout):
            await usercode.run("hog", gate.wait, timeout=SOON)
        assert not usercode.health().ok
        assert not usercode.must_exit


async def test_closing_does_not_wait_for_a_stuck_thread(gate: threading.Event) -> None:
    async with asyncio.timeout(DEADLINE):
        async with UserCode(threads=1) as usercode:
            with pytest.raises(UserCodeTimeout):
                await usercode.run("hog", gate.wait, timeout=SOON)
    assert not gate.is_set()


STUCK = """
import asyncio, threading
from agent.usercode import UserCode, UserCodeTimeout

async def blocks():
    threading.Event().wait()

async def main():
    async with UserCode(threads=1) as usercode:
        for function in (threading.Event().wait, blocks):
            try:
                await usercode.run("stuck", function, timeout=0.05)
            except UserCodeTimeout:
                print("timed out", flush=True)

asyncio.run(main())
"""


def test_a_process_with_a_stuck_thread_and_a_blocked_loop_can_exit() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "timed out\ntimed out\n"), done.stderr


async def test_the_caller_is_woken_by_the_clock_and_not_by_the_function(
    usercode: UserCode, gate: threading.Event
) -> None:
    before = time.monotonic()
    with pytest.raises(UserCodeTimeout):
        await usercode.run("hog", gate.wait, timeout=SOON)
    assert time.monotonic() - before >= SOON
    assert not gate.is_set()
