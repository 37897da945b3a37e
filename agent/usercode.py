"""Runs the tools' own functions apart from the house, so that none of them can stop it.

Async functions run on one long-lived event loop in a thread of its own, plain ones in a bounded pool of
threads. All bookkeeping is done on the main loop; only `Work` and the ping are touched from other threads.

    UserCodeTimeout   the time is up; `started` says whether the function ever began
    KeyStillRunning   an older attempt with the same key is still inside the tool
    NotBegun          it was no longer to begin when its turn came
    UserCodeFailed    it raised something else than a ToolError, which comes back as one
"""

import asyncio
import inspect
import threading
import time
from asyncio import Task
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from agent.userwork import (
    CLOSE_SECONDS,
    NotBegun,
    Outcome,
    ToolTask,
    UserCodeFailed,
    Work,
    call_now,
    close_loop,
    drive,
    is_async,
    tamed,
    tool_task,
    value_of,
    wait_for,
)
from agent.why import Code, because

__all__ = ["Health", "KeyStillRunning", "NotBegun", "UserCode", "UserCodeFailed", "UserCodeTimeout"]


class UserCodeTimeout(Exception):
    """A tool's function did not answer within `seconds`; if not `started`, it never ran and never will."""

    def __init__(self, tool_name: str, seconds: float, started: bool) -> None:
        self.tool_name = tool_name
        self.seconds = seconds
        self.started = started
        code = Code.TIMED_OUT if started else Code.NOT_BEGUN
        self.why = because(code, tool=tool_name, seconds=seconds)
        super().__init__(self.why.text.rstrip("."))


class KeyStillRunning(Exception):
    """An older attempt with `key` is still inside the tool in this process; nothing was started."""

    def __init__(self, tool_name: str, key: str) -> None:
        self.tool_name = tool_name
        self.key = key
        super().__init__(f"an older attempt of {key} is still inside {tool_name}")


@dataclass(frozen=True)
class Health:
    """How user code is: seconds the loop has been silent, plain functions past their time by tool."""

    ok: bool
    silent_loop_for: float
    stuck: Mapping[str, int]
    reason: str | None


class UserCode:
    """Where user code runs; an async context manager that belongs to the loop it is entered on."""

    def __init__(
        self,
        *,
        threads: int = 8,
        silent_after: float = 5.0,
        exit_after: float = 10.0,
        heartbeat: float = 0.5,
    ) -> None:
        """Take the size of the pool, and in seconds: when a silent loop, or half a stuck pool, is unhealthy,
        how long it may stay so before the process must exit, and how often it is looked at."""
        self._threads = threads
        self._silent_after = silent_after
        self._exit_after = exit_after
        self._heartbeat = heartbeat
        self._running: set[Work] = set()
        self._keys: set[str] = set()
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._pinged_at: float | None = None
        self._unhealthy_since: float | None = None

    async def __aenter__(self) -> Self:
        self._main = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(tool_task)
        self._loop_ended = asyncio.Event()
        threading.Thread(target=self._serve_loop, name="user-loop", daemon=True).start()
        for number in range(self._threads):
            threading.Thread(target=self._serve_queue, name=f"user-{number}", daemon=True).start()
        self._watch = asyncio.create_task(self._keep_watch(), name="user-code-watch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what is stuck is left behind in its daemon thread, and the process can exit."""
        self._watch.cancel()
        await asyncio.wait({self._watch})
        for _ in range(self._threads):
            self._queue.put(None)
        self._loop.call_soon_threadsafe(self._loop.stop)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._loop_ended.wait(), CLOSE_SECONDS)

    def run(
        self,
        tool_name: str,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float,
        key: str | None = None,
        still: Callable[[], bool] | None = None,
        passing: tuple[type[Exception], ...] = (),
    ) -> Coroutine[Any, Any, Any]:
        """Await `fn(*args)` where user code runs: gives its answer.

        `still` is asked there directly before `fn` is called: NotBegun is raised if it says no.

        Raises UserCodeTimeout after `timeout` seconds, measured on the calling loop, and KeyStillRunning
        if an attempt with `key` has not come back yet. What `fn` raises comes back as it is if it is one of
        `passing`, a ToolError as a plain one, and all else (SystemExit, too) as UserCodeFailed.
        """
        return self._run(tool_name, partial(fn, *args), timeout, key, still, passing)

    def holds(self, key: str) -> bool:
        """Say whether an attempt with `key` has not come back yet."""
        return key in self._keys

    def health(self) -> Health:
        """Say how user code is now; the reason names the tool that is in the way."""
        silent = self._silent_for()
        stuck = Counter(work.tool_name for work in self._running if self._is_stuck(work))
        reason = None
        if silent >= self._silent_after:
            reason = f"{self._tool_on_loop()} blocks the loop of user code since {silent:.0f} s"
        elif stuck and 2 * stuck.total() >= self._threads:
            names = ", ".join(sorted(stuck))
            reason = f"{stuck.total()} of {self._threads} threads are past their timeout in {names}"
        self._note(healthy=reason is None)
        return Health(reason is None, silent, dict(stuck), reason)

    @property
    def must_exit(self) -> bool:
        """Whether user code has been unhealthy for so long that only a new process helps."""
        since = None if self.health().ok else self._unhealthy_since
        return since is not None and time.monotonic() - since >= self._exit_after

    async def _run(
        self,
        tool_name: str,
        call: Callable[[], Any],
        seconds: float,
        key: str | None,
        still: Callable[[], bool] | None,
        passing: tuple[type[Exception], ...],
    ) -> Any:
        if key is not None and key in self._keys:
            raise KeyStillRunning(tool_name, key)
        deadline = time.monotonic() + seconds
        answer: asyncio.Future[Outcome] = self._main.create_future()
        work = Work(tool_name, key, call, not is_async(call), seconds, deadline, answer, still, passing)
        self._running.add(work)
        if key is not None:
            self._keys.add(key)
        if work.plain:
            self._queue.put(work)
        else:
            self._loop.call_soon_threadsafe(self._start, work)
        return value_of(work, await self._outcome(work))

    async def _outcome(self, work: Work) -> Outcome:
        try:
            await asyncio.wait({work.answer}, timeout=work.seconds)
        except asyncio.CancelledError:
            self._abandon(work)
            raise
        if not work.answer.done():
            raise UserCodeTimeout(work.tool_name, work.seconds, started=self._abandon(work))
        return work.answer.result()

    def _abandon(self, work: Work) -> bool:
        """Stop waiting for `work` and say whether it had begun; one that had not never will."""
        if work.give_up():
            self._forget(work)
            return False
        with suppress(RuntimeError):  # the loop of user code is closed: it is cancelled already
            self._loop.call_soon_threadsafe(work.cancel)
        return True

    def _forget(self, work: Work) -> None:
        self._running.discard(work)
        if work.key is not None:
            self._keys.discard(work.key)

    def _finished(self, work: Work, outcome: Outcome) -> None:
        self._forget(work)
        if not work.answer.done():
            work.answer.set_result(outcome)

    # ---- the watch, on the main loop

    async def _keep_watch(self) -> None:
        while True:
            if self._pinged_at is None:
                self._pinged_at = time.monotonic()
                self._loop.call_soon_threadsafe(self._pong)
            self.health()
            await asyncio.sleep(self._heartbeat)

    def _pong(self) -> None:
        self._pinged_at = None

    def _silent_for(self) -> float:
        pinged_at = self._pinged_at
        return 0.0 if pinged_at is None else time.monotonic() - pinged_at

    def _is_stuck(self, work: Work) -> bool:
        return work.plain and work.started and time.monotonic() >= work.deadline

    def _tool_on_loop(self) -> str:
        task = asyncio.current_task(self._loop)
        if isinstance(task, ToolTask) and task.tool_name:
            return task.tool_name
        names = sorted({work.tool_name for work in self._running if not work.plain})
        return " or ".join(names) or "something a tool left behind"

    def _note(self, *, healthy: bool) -> None:
        if healthy:
            self._unhealthy_since = None
        elif self._unhealthy_since is None:
            self._unhealthy_since = time.monotonic()

    # ---- in the threads of user code

    def _start(self, work: Work) -> None:
        if work.begin():
            self._spawn(work)

    def _spawn(self, work: Work) -> None:
        work.task = task = self._loop.create_task(drive(work), context=work.context)
        assert isinstance(task, ToolTask), "the loop's task factory makes them"
        task.tool_name = work.tool_name
        # not at the end of drive: a task that is cancelled before its first step never gets there
        task.add_done_callback(partial(self._drove, work))

    def _drove(self, work: Work, task: Task[Outcome]) -> None:
        cancelled = Outcome(error=tamed(work, asyncio.CancelledError()))
        self._deliver(work, cancelled if task.cancelled() else task.result())

    def _serve_queue(self) -> None:
        while (work := self._queue.get()) is not None:
            if not work.begin():
                continue
            outcome = work.context.run(call_now, work)
            if inspect.isawaitable(outcome.value):
                # a plain function that returns a coroutine has done nothing yet
                work.plain, work.call = False, partial(wait_for, outcome.value)
                self._loop.call_soon_threadsafe(self._spawn, work)
            else:
                self._deliver(work, outcome)

    def _serve_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        stopped = False
        while not stopped:
            # a task of the tool's own that raises SystemExit ends run_forever, but must not end the loop
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()
                stopped = True
        close_loop(self._loop)
        with suppress(RuntimeError):  # the main loop is closed: nobody waits any more
            self._main.call_soon_threadsafe(self._loop_ended.set)

    def _deliver(self, work: Work, outcome: Outcome) -> None:
        with suppress(RuntimeError):  # the main loop is closed: nobody waits any more
            self._main.call_soon_threadsafe(self._finished, work, outcome)
