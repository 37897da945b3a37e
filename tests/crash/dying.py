"""Inside the process that dies: the product's own functions, wrapped so that it stops at its point."""

import importlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from store.transitions import ApprovalStatus
from tests.crash.points import REFUND, Hook, Point, Way

ARMED, REACHED, DONE = "armed", "reached", "done"
"""Files in the cell's folder: the point counts from now on; this process reached it; it woke and ended."""

Arguments = tuple[Any, ...]
_OPEN = {ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.EXECUTING}

_WANTED: Mapping[str, Callable[[Arguments, Mapping[str, Any]], bool]] = {
    "any": lambda args, values: True,
    "refund": lambda args, values: any(call["tool"] == REFUND for call in values["calls"]),
    "pause": lambda args, values: bool(values["pause"]),
    "new card": lambda args, values: args[1].ts is None,
    "ended card": lambda args, values: args[1].ts is not None and args[2].status not in _OPEN,
}


def install(point: Point, folder: Path) -> None:
    """From now on this process dies at the point, once the file `armed` is in the folder."""
    for hook in point.hooks:
        owner, name = owner_of(hook)
        setattr(owner, name, _dying(getattr(owner, name), hook, point, folder))
    if point.way in (Way.ASLEEP, Way.LATE):
        _tell_the_end(folder)


def owner_of(hook: Hook) -> tuple[Any, str]:
    """The module or class that has the function, and its name there."""
    owner: Any = importlib.import_module(hook.module)
    *classes, name = hook.name.split(".")
    for each in classes:
        owner = getattr(owner, each)
    return owner, name


def _dying(
    whole: Callable[..., Awaitable[Any]], hook: Hook, point: Point, folder: Path
) -> Callable[..., Awaitable[Any]]:
    @wraps(whole)
    async def dying(*args: Any, **values: Any) -> Any:
        wanted = _WANTED[hook.only](args, values)
        if wanted and hook.side == "before":
            _stop(point, folder)
        result = await whole(*args, **values)
        if wanted and hook.side == "after" and result:
            _stop(point, folder)
        return result

    return dying


def _stop(point: Point, folder: Path) -> None:
    """Die, or fall asleep, if the point counts already and was not reached before."""
    if not (folder / ARMED).exists():
        return
    try:
        with (folder / REACHED).open("x") as reached:
            reached.write(str(os.getpid()))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL if point.way is Way.KILLED else signal.SIGSTOP)


def _tell_the_end(folder: Path) -> None:
    """Write down that the work during which this process slept has come to its end."""
    from agent.worker import Worker

    whole = Worker._guarded

    async def guarded(self: Worker, work: Awaitable[None]) -> None:
        await whole(self, work)
        if (folder / REACHED).exists():
            (folder / DONE).touch()

    Worker._guarded = guarded  # type: ignore[method-assign]
