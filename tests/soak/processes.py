"""Commands that are started again whenever they end, as an operator's supervisor does."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAUSE_SECONDS = 0.3
STOP_SECONDS = 30.0


class Kept:
    """One `vistobueno` command, started again when it ends; `log` is where its stderr goes."""

    def __init__(self, name: str, command: tuple[str, ...], environ: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self.starts = 0
        self.kills = 0
        self.settles = 0.0
        """For how many seconds after its start it is left alone, so that it comes to work at all."""
        self._command = command
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None
        self._began = 0.0
        self._ending = False
        self._keeping = asyncio.create_task(self._keep(), name=name)

    @property
    def left(self) -> int:
        """How often it ended by itself: not killed, and started again."""
        return max(0, self.starts - 1 - self.kills)

    def kill(self) -> bool:
        """End it with SIGKILL; False if it is not at work just now."""
        process = self._at_work()
        if process is None:
            return False
        process.kill()
        self.kills += 1
        return True

    async def freeze(self, seconds: float) -> bool:
        """Let it do nothing for so long, then go on as if nothing were; False if it is not at work."""
        process = self._at_work()
        if process is None:
            return False
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
        return True

    async def stop(self) -> None:
        """End it for good: asked to, and with SIGKILL if it does not go."""
        self._ending = True
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
        _, late = await asyncio.wait([self._keeping], timeout=STOP_SECONDS)
        if late:
            self._keeping.cancel()
            await asyncio.wait(late)

    def _at_work(self) -> asyncio.subprocess.Process | None:
        there = self._process is not None and self._process.returncode is None
        return self._process if there and time.monotonic() - self._began > self.settles else None

    async def _keep(self) -> None:
        with self.log.open("ab") as log:
            while not self._ending:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "bot.cli", *self._command),
                    cwd=ROOT,
                    env={**os.environ, **self._environ},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                self._process, self._began, self.starts = process, time.monotonic(), self.starts + 1
                try:
                    await process.wait()
                finally:
                    if process.returncode is None:
                        process.kill()
                if not self._ending:
                    await asyncio.sleep(PAUSE_SECONDS)
