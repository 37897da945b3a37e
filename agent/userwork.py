"""One function of a tool on its way through the threads of user code."""

import asyncio
import inspect
import threading
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from agent.legible import error_text
from agent.tool import ToolError

CLOSE_SECONDS = 1.0

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What a function gave back or raised."""

    value: Any = None
    error: Exception | None = None


@dataclass(eq=False)
class Work:
    """One function on its way: started by whoever runs it or given up by the main loop, never both."""

    tool_name: str
    key: str | None
    call: Callable[[], Any]
    plain: bool
    seconds: float
    deadline: float
    answer: asyncio.Future[Outcome]
    still: Callable[[], bool] | None = None
    passing: tuple[type[Exception], ...] = ()
    context: Context = field(default_factory=copy_context)
    task: Task[Outcome] | None = None
    started: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> bool:
        self.started = self._turn.acquire(blocking=False)
        return self.started

    def ensure_wanted(self) -> None:
        """Raise NotBegun if it is no longer to begin; asked where the next thing is the tool's own code."""
        if self.still is not None and not self.still():
            raise NotBegun(self.tool_name)

    def give_up(self) -> bool:
        return self._turn.acquire(blocking=False)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class NotBegun(Exception):
    """Just before a tool's function would have begun, it was no longer to: nothing of it ran."""

    def __init__(self, tool_name: str) -> None:
        self.tool_name = tool_name
        super().__init__(f"{tool_name} was not begun: it was no longer to")


class UserCodeFailed(Exception):
    """A tool's function raised what nobody foresaw: `text` is "Type: words", read where it ran."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


class ToolTask(Task[T]):
    """A task that knows for which tool it runs, as do the tasks it starts."""

    tool_name: str | None = None


def tool_task(
    loop: AbstractEventLoop, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], **options: Any
) -> ToolTask[T]:
    parent = asyncio.current_task(loop)
    task = ToolTask(coro, loop=loop, **options)
    task.tool_name = parent.tool_name if isinstance(parent, ToolTask) else None
    return task


def is_async(call: Callable[[], Any]) -> bool:
    fn = call.func if isinstance(call, partial) else call
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def value_of(work: Work, outcome: Outcome) -> Any:
    if outcome.error is None:
        return outcome.value
    raise outcome.error


async def wait_for(value: Any) -> Any:
    return await value


async def drive(work: Work) -> Outcome:
    try:
        work.ensure_wanted()
        return Outcome(await work.call())
    except BaseException as error:  # whatever user code raises belongs to the caller, not to this loop
        return Outcome(error=tamed(work, error))


def call_now(work: Work) -> Outcome:
    try:
        work.ensure_wanted()
        return Outcome(work.call())
    except BaseException as error:  # as in drive; a thread of the pool must outlive it
        return Outcome(error=tamed(work, error))


def tamed(work: Work, error: BaseException) -> Exception:
    """What the house may be given of it: its words are user code too, and are read here, once."""
    foreseen: tuple[type[Exception], ...] = (*work.passing, NotBegun)
    if isinstance(error, foreseen):
        return error
    if isinstance(error, ToolError):
        with suppress(BaseException):  # of a kind of its own, what it says may be no plain value
            return ToolError(error.message, error.done)
    return UserCodeFailed(error_text(error))


def close_loop(loop: AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=CLOSE_SECONDS))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
