"""`vistobueno` commands as processes that can be killed, forked from one that has loaded what they need."""

import asyncio
import multiprocessing
import os
import signal
import sys
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from tests.acceptance.commands import ROOT, clean
from tests.crash.dying import install
from tests.crash.points import Point

PATIENCE = float(os.environ.get("CRASH_PATIENCE", "120"))
"""Seconds that something is waited for; less where it is known that it will not come."""
POLL = 0.01


class Child:
    """One process; `url` is where it listens."""

    def __init__(self, command: str, process: ForkServerProcess, said: Path) -> None:
        self.command = command
        self._process, self._said = process, said
        self.url = ""

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended, -9 by SIGKILL; None: it has not."""
        return self._process.exitcode

    @property
    def words(self) -> str:
        """What it wrote to its standard error."""
        return self._said.read_text(errors="replace")

    async def listens(self) -> None:
        """Wait until it answers."""

        def heard() -> str:
            lines = [line for line in self.words.splitlines() if line.startswith("listening on ")]
            assert self.code is None, f"the process ended with {self.code}: {self.words[-2000:]}"
            return lines[0].split()[-1] if lines else ""

        async with asyncio.timeout(PATIENCE):
            while not (url := heard()):  # noqa: ASYNC110 - the other process sets no event
                await asyncio.sleep(POLL)
        self.url = url

    async def ended(self) -> int:
        """Wait until it has ended; how it did."""
        async with asyncio.timeout(PATIENCE):
            while (code := self.code) is None:  # noqa: ASYNC110 - nor here
                await asyncio.sleep(POLL)
        return code

    async def kill(self) -> None:
        """End it with SIGKILL, as a power cut would, if it still runs."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
        await self.ended()

    def wake(self) -> None:
        """Let it go on after it was stopped."""
        os.kill(self.pid, signal.SIGCONT)


def preloaded() -> ForkServerContext:
    """The process that all children are forked from, once it has loaded the product."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.crash.loaded"])
    first = forks.Process(target=_nothing)
    first.start()
    first.join()
    return forks


def _nothing() -> None:
    """Be there, and gone."""


def start(
    forks: ForkServerContext, words: tuple[str, ...], variables: dict[str, str], said: Path, *dies: object
) -> Child:
    """Begin a command; `dies`: the point at which it does, and the cell's folder."""
    said.touch()
    process = forks.Process(target=_become, args=(words, clean(variables), said, *dies))
    process.start()
    return Child(words[0], process, said)


def _become(
    words: tuple[str, ...],
    environ: dict[str, str],
    said: Path,
    point: Point | None = None,
    folder: Path | None = None,
) -> None:
    """In the new process: be the command."""
    from bot.cli import main

    file = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    sys.argv = ["vistobueno", *words]
    if point is not None and folder is not None:
        install(point, folder)
    main()
