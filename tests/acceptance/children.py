"""The app as processes of its own, which can be killed: all that they share is the database."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.scripted import Script
from store import audit
from tests.acceptance.stage import ROOT, Stage, staged
from tests.databases import Database

START_SECONDS = 40.0


LISTENERS = """SELECT pid FROM pg_stat_activity WHERE datname = current_database()
  AND application_name = 'vistobueno listener' AND state = 'idle' AND query <> ''"""


class Child:
    """A running command; `url` is where it listens, if it serves."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._relaying = asyncio.create_task(self._relay(), name="a child's stderr")
        self._listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.url = ""

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    async def listens(self) -> None:
        """Wait until it answers."""
        self.url = await asyncio.wait_for(self._listening, START_SECONDS)

    async def kill(self) -> None:
        """End it with SIGKILL, as a power cut would; nothing of it is left afterwards."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._relaying

    def freeze(self) -> None:
        """Let it do nothing, as a process whose loop is busy; the kernel still takes its connections."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def ask_to_end(self) -> None:
        """Send SIGTERM, as a deploy does."""
        self._process.terminate()

    async def ended(self, seconds: float = START_SECONDS) -> int:
        """Wait until it has ended, with this code; TimeoutError if it has not after so many seconds."""
        return await asyncio.wait_for(self._process.wait(), seconds)

    async def stop(self) -> None:
        """Ask it to end, and wait until it has done what it had left to do."""
        self.ask_to_end()
        await self.ended()

    async def _relay(self) -> None:
        """Pass on what it says, for whoever reads why a test failed."""
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            sys.stderr.write(line.decode())
            if line.startswith(b"listening on "):
                self._listening.set_result(line.split()[-1].decode())
        if not self._listening.done():
            self._listening.cancel()


@asynccontextmanager
async def child(stage: Stage, command: str, *words: str, **variables: str) -> AsyncIterator[Child]:
    """`vistobueno COMMAND WORDS` on the stage's database, Slack, model and provider; killed at the end.

    It answers if it serves, and hears of work if it works.
    """
    before = await listeners(stage)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", command, *words),
        *(("--host", "127.0.0.1") if command == "web" else ()),
        cwd=ROOT,
        env={**os.environ, **environment(stage), **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    started = Child(process)
    try:
        if command != "worker":
            await started.listens()
        if command != "web":
            async with asyncio.timeout(START_SECONDS):
                while await listeners(stage) <= before:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.05)
        yield started
    finally:
        await started.kill()


async def listeners(stage: Stage) -> set[int]:
    """Who hears of work: which, not how many, as PostgreSQL shows a killed one for a while."""
    return {row["pid"] for row in await stage.db.query(LISTENERS)}


@asynccontextmanager
async def web_apart(
    database: Database, monkeypatch: pytest.MonkeyPatch, *scripts: Script, **staging: Any
) -> AsyncIterator[Stage]:
    """A stage whose web process is a child, which Slack delivers to; nobody works on it yet."""
    async with (
        staged(database, monkeypatch, *scripts, processes=0, **staging) as stage,
        child(stage, "web") as web,
    ):
        stage.sandbox.connect(web.url)
        yield stage


def environment(stage: Stage) -> dict[str, str]:
    """The variables of a process on that stage."""
    settings = stage.settings
    return {
        "DATABASE_URL": settings.database_url or "",
        "SLACK_BOT_TOKEN": settings.slack_bot_token or "",
        "SLACK_SIGNING_SECRET": settings.slack_signing_secret or "",
        "SLACK_APP_TOKEN": settings.slack_app_token or "",
        "SLACK_API_URL": settings.slack_api_url,
        "ANTHROPIC_API_KEY": settings.anthropic_api_key or "",
        "ANTHROPIC_BASE_URL": settings.anthropic_base_url or "",
        "VISTOBUENO_POLICY": settings.policy,
        "VISTOBUENO_TOOLS": settings.tools,
        "SHOP_PROVIDER_URL": stage.provider.url,
        "PORT": "0",
        "LOG_LEVEL": "WARNING",
    }


async def assert_whole(stage: Stage, said: list[str]) -> None:
    """38 refunds, one each; the model was told everything in order; every chain of the record holds.

    `said` is who spoke and in what kinds of blocks, message by message, when the model was last asked.
    """
    refunded = [refund.payment_id for refund in stage.provider.refunds]
    assert (len(refunded), len(set(refunded))) == (38, 38)
    asked = stage.model.requests[-1].messages
    assert [f"{m['role']}: {' '.join(block['type'] for block in m['content'])}" for m in asked] == said
    assert stage.model.violations == []
    assert (await audit.verify(stage.db)).broken == ()
