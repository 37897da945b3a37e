"""Locks on files, between processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

DEADLINE_SECONDS = 120
TOLD_AFTER_SECONDS = 1.5
RETRY_SECONDS = 0.02


class WaitGivenUp(Exception):
    """Whoever waited for a lock does not want it any more."""


@dataclass
class Waiting:
    """A wait for locks that another thread may end: `told` is called once when it takes a while."""

    told: Callable[[], None] | None = None
    given_up: threading.Event = field(default_factory=threading.Event)

    def go_on(self, since: float) -> None:
        """Wait for a moment in a wait that began at `since`; raises WaitGivenUp."""
        if self.told is not None and time.monotonic() - since > TOLD_AFTER_SECONDS:
            told, self.told = self.told, None
            told()
        if self.given_up.wait(RETRY_SECONDS):
            raise WaitGivenUp


class FileLock:
    """A lock on a file, held by an open file: it ends with the process, however that ends."""

    def __init__(self, path: Path, *, shared: bool = False, waiting: Waiting | None = None) -> None:
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        began, waiting = time.monotonic(), waiting or Waiting()
        while True:
            try:
                fcntl.flock(self._file, kind | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > began + DEADLINE_SECONDS:
                    self.release()
                    raise TimeoutError(f"another process has held {path} for {DEADLINE_SECONDS} s") from error
            try:
                waiting.go_on(began)
            except WaitGivenUp:
                self.release()
                raise

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock on that file; a file that is not there is free."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
