"""Worker processes of a test, with leases as short as it likes, and tools that make it wait."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from store import audit
from store.records import AuditEvent
from tests.acceptance.children import START_SECONDS, Child, environment
from tests.acceptance.stage import ROOT, Stage

LISTENERS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"


class Worker(Child):
    """A `vistobueno worker` whose end can be looked at."""

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._ended = process

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._ended.returncode

    @property
    def pid(self) -> int:
        return self._ended.pid

    def ask_to_end(self) -> None:
        """Send SIGTERM, as a deploy does."""
        self._ended.terminate()

    async def ended(self, seconds: float) -> int:
        """Wait until it has ended; TimeoutError if it has not after so many seconds."""
        return await asyncio.wait_for(self._ended.wait(), seconds)


@asynccontextmanager
async def worker(
    stage: Stage, *, lease: float, command: str = "worker", **variables: str
) -> AsyncIterator[Worker]:
    """One on the stage's database, hearing of work (or, as "dev", answering); killed at the end."""
    before = len(await stage.db.query(LISTENERS))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", command, "--lease", f"{lease:g}"),
        cwd=ROOT,
        env={**os.environ, **environment(stage), **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    started = Worker(process)
    try:
        if command == "dev":
            await started.listens()
        async with asyncio.timeout(2 * START_SECONDS):
            while len(await stage.db.query(LISTENERS)) <= before:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.05)
        yield started
    finally:
        await started.kill()


async def events(stage: Stage, *kinds: str) -> list[AuditEvent]:
    """The events of these kinds (none: of all) of the newest run, in order."""
    found = await audit.of(stage.db, (await stage.run()).id)
    return [each for each in found if not kinds or each.kind in kinds]
