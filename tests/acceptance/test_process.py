"""The processes as an operator runs them: they end cleanly when asked, and within their time."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from bot.sandbox import Sandbox
from tests.acceptance.stage import ROOT
from tests.databases import Database

SECONDS = 20.0


@asynccontextmanager
async def process(
    command: str, database: Database, sandbox: Sandbox
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`vistobueno COMMAND`; killed at the end if it is still there."""
    app = sandbox.workspace.app
    variables = {
        "DATABASE_URL": database.url,
        "SLACK_BOT_TOKEN": app.bot_token,
        "SLACK_SIGNING_SECRET": app.signing_secret,
        "SLACK_API_URL": sandbox.api_url,
        "ANTHROPIC_API_KEY": "test",
        "PORT": "0",
        "LOG_LEVEL": "INFO",
    }
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", command),
        cwd=ROOT,
        env=os.environ | variables,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def listening(started: asyncio.subprocess.Process) -> str:
    """The URL that it says it listens on."""
    assert started.stderr is not None
    async with asyncio.timeout(SECONDS):
        async for line in started.stderr:
            if line.startswith(b"listening on "):
                return line.split()[-1].decode()
    raise AssertionError("it ended without listening")


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_a_web_process_that_is_asked_to_end_ends_well(database: Database, name: signal.Signals) -> None:
    async with Sandbox.running() as sandbox, process("web", database, sandbox) as started:
        url = await listening(started)
        async with aiohttp.ClientSession() as http, http.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        started.send_signal(name)
        assert await asyncio.wait_for(started.wait(), SECONDS) == 0


async def test_everything_in_one_process_ends_well_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", database.owner_url)
    async with Sandbox.running() as sandbox, process("dev", database, sandbox) as started:
        await listening(started)
        started.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(started.wait(), SECONDS) == 0
