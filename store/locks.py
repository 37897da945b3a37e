"""Locks on files, between processes."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

DEADLINE_SECONDS = 120


class FileLock:
    """A lock on a file, held by an open file: it ends with the process, however that ends."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                fcntl.flock(self._file, kind | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    self.release()
                    raise TimeoutError(f"another process has held {path} for {DEADLINE_SECONDS} s") from error
            time.sleep(0.02)

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
