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
    command: str, database: Database, sandbox: Sandbox, **others: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`vistobueno COMMAND`, with `others` among its variables; killed at the end if it is still there."""
    app = sandbox.workspace.app
    variables = {
        "DATABASE_URL": database.url,
        "SLACK_BOT_TOKEN": app.bot_token,
        "SLACK_SIGNING_SECRET": app.signing_secret,
        "SLACK_API_URL": sandbox.api_url,
        "ANTHROPIC_API_KEY": "test",
        "PORT": "0",
        "LOG_LEVEL": "INFO",
        **others,
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


async def test_in_socket_mode_it_is_ready_once_it_is_connected_and_ends_well(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", database.owner_url)
    tokens = {"SLACK_APP_TOKEN": "xapp-sandbox", "SLACK_SIGNING_SECRET": ""}
    async with (
        Sandbox.running(socket_mode=True) as sandbox,
        process("dev", database, sandbox, **tokens) as started,
    ):
        url = await listening(started)
        await sandbox.until(lambda: sandbox.sockets.open, timeout=SECONDS)
        async with aiohttp.ClientSession() as http, http.get(f"{url}/healthz") as answer:
            assert answer.status == 200
        started.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(started.wait(), SECONDS) == 0
        assert sandbox.sockets.open == []


@pytest.mark.parametrize(
    ("token", "socket_mode", "says"),
    [
        ("xapp-other", True, "Slack does not take SLACK_APP_TOKEN (invalid_auth): copy the App-Level Token"),
        ("xapp-sandbox", False, "Slack opens no Socket Mode for this app (forbidden_team): turn it on"),
    ],
)
async def test_a_token_that_slack_does_not_take_for_socket_mode_is_one_sentence_at_start(
    database: Database, token: str, socket_mode: bool, says: str
) -> None:
    async with (
        Sandbox.running(socket_mode=socket_mode) as sandbox,
        process("web", database, sandbox, SLACK_APP_TOKEN=token) as started,
    ):
        _, said = await asyncio.wait_for(started.communicate(), 2 * SECONDS)  # a start on a busy machine
        last = said.decode().splitlines()[-1]
        assert (started.returncode, last.startswith(f"vistobueno: {says}")) == (1, True)
        assert token not in said.decode()
