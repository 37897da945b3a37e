"""The product as people run it, `vistobueno dev`, on an outsider's Slack."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp

from agent.model import ModelError
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.seed import create_shop
from bot.demo.model import respond
from bot.sandbox.model_api import create_model_api
from tests.acceptance.children import Child
from tests.acceptance.stage import ROOT
from tests.browser.outside.local_slack import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, LocalSlack
from tests.databases import Database
from tests.standins.model import serve


def free_port() -> int:
    """A port that nothing listens on now: the Slack wants to know where the app is before there is one."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@asynccontextmanager
async def running(database: Database, slack: LocalSlack, port: int) -> AsyncIterator[RefundProvider]:
    """The product, ready, with the demo's shop and its scripted model; gives the shop's refund provider."""
    async with AsyncExitStack() as stack:
        await create_shop(database.owner_url)
        provider = await stack.enter_async_context(RefundProvider.start())
        model = await stack.enter_async_context(serve(create_model_api(respond, faults=(ModelError,))))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.cli", "dev"),
            cwd=ROOT,
            env=_environ(database, slack)
            | {"SHOP_PROVIDER_URL": provider.url, "ANTHROPIC_BASE_URL": model, "PORT": str(port)},
            stderr=PIPE,
        )
        child = Child(process)
        try:
            await child.listens()
            await _is_ready(child.url)
            yield provider
            await child.stop()
        finally:
            await child.kill()
    assert process.returncode == 0


def _environ(database: Database, slack: LocalSlack) -> dict[str, str]:
    by_transport = {
        "socket": {"SLACK_APP_TOKEN": APP_TOKEN, "SLACK_SIGNING_SECRET": ""},
        "events": {"SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": SIGNING_SECRET},
    }
    return {
        **os.environ,
        "DATABASE_URL": database.url,
        "DATABASE_OWNER_URL": database.owner_url,
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_API_URL": slack.api_url,
        "ANTHROPIC_API_KEY": "scripted",
        "VISTOBUENO_POLICY": str(ROOT / "policy.toml"),
        "LOG_LEVEL": "WARNING",
        **by_transport[slack.transport],
    }


async def _is_ready(url: str) -> None:
    """Wait until it can do its work: over Socket Mode it has to connect first."""
    async with asyncio.timeout(20), aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)
