"""What surrounds the soak: a durable PostgreSQL, a local Slack, the provider, a model, the processes."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psycopg

from agent.model import ModelError
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.seed import create_shop
from bot.sandbox import RateLimits, Sandbox
from bot.sandbox.model_api import create_model_api
from store.engine import migrate
from tests.soak.model import SoakModel
from tests.soak.processes import Kept
from tests.standins.model import serve
from tests.standins.server import OwnServer, own_server

LEADS = tuple(f"U0LEAD{number}" for number in range(1, 7))
START_SECONDS = 120.0
SETTLES = 2.0  # times what a start takes on this machine
PAYMENTS_EACH = 2
RETRIES = (0.5, 1.0, 2.0, 4.0, *(8.0,) * 60)  # seconds: Slack's are longer, and fewer
PAYMENTS = """
INSERT INTO shop.payments (id, customer_id, amount, status, charged_at)
SELECT 'soak_' || n, 'cus_0001', 60 + n %% 40, 'failed', now() FROM generate_series(1, %s) AS n"""


@dataclass
class Place:
    """What the soak acts on."""

    server: OwnServer
    sandbox: Sandbox
    provider: RefundProvider
    model: SoakModel
    webs: list[Kept]
    workers: list[Kept]
    folder: Path
    lease: float

    @property
    def kept(self) -> list[Kept]:
        return [*self.webs, *self.workers]


@asynccontextmanager
async def place(folder: Path, *, runs: int, webs: int, workers: int, lease: float) -> AsyncIterator[Place]:
    """All of it running; the processes' logs stay in `folder`."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(own_server(max_connections="200"))
        await migrate(server.owner_url)
        await create_shop(server.owner_url)
        with psycopg.connect(server.owner_url, autocommit=True) as connection:
            connection.execute(PAYMENTS, [runs * PAYMENTS_EACH])
        provider = await stack.enter_async_context(RefundProvider.start(pace=0.01))
        model = SoakModel()
        url = await stack.enter_async_context(serve(create_model_api(model.answer, faults=(ModelError,))))
        sandbox = await stack.enter_async_context(
            Sandbox.running(rate_limits=RateLimits.off(), retry_delays=RETRIES)
        )
        for user_id in LEADS:
            sandbox.add_person(user_id, f"Lead {user_id[-1]}", channels=["C0APPROVALS"])
        made = Place(server, sandbox, provider, model, [], [], folder, lease)
        environ = _environ(made, url)
        stack.push_async_callback(_stop, made)
        ports = [_free_port() for _ in range(webs)]
        for number, port in enumerate(ports, 1):
            of_web = {**environ, "PORT": str(port)}
            made.webs.append(_kept(made, f"web-{number}", ("web", "--host", "127.0.0.1"), of_web))
        for number in range(1, workers + 1):
            command = ("worker", "--lease", f"{lease:g}")
            made.workers.append(_kept(made, f"worker-{number}", command, environ))
        urls, began = [f"http://127.0.0.1:{port}" for port in ports], time.monotonic()
        await asyncio.gather(*(_answers(url) for url in urls))
        for kept in made.kept:
            kept.settles = SETTLES * (time.monotonic() - began)
        sandbox.connect(*urls)
        yield made


def _kept(made: Place, name: str, command: tuple[str, ...], environ: dict[str, str]) -> Kept:
    return Kept(name, command, environ, made.folder / f"{name}.log")


async def _answers(url: str) -> None:
    """Wait until a web process is there; raises TimeoutError."""
    async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as http:
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{url}/healthz"):
                    return
            await asyncio.sleep(0.1)


async def _stop(made: Place) -> None:
    await asyncio.gather(*(kept.stop() for kept in made.kept))


def _environ(made: Place, model_url: str) -> dict[str, str]:
    app = made.sandbox.workspace.app
    return {
        "DATABASE_URL": made.server.url,
        "DATABASE_OWNER_URL": "",
        "SLACK_BOT_TOKEN": app.bot_token,
        "SLACK_SIGNING_SECRET": app.signing_secret,
        "SLACK_APP_TOKEN": "",
        "SLACK_API_URL": made.sandbox.api_url,
        "ANTHROPIC_API_KEY": "soak",
        "ANTHROPIC_BASE_URL": model_url,
        "VISTOBUENO_POLICY": str(_policy(made.folder)),
        "VISTOBUENO_TOOLS": "tests.soak.tools:TOOLS",
        "SHOP_PROVIDER_URL": made.provider.url,
        "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),
    }


def _policy(folder: Path) -> Path:
    (folder / "instructions.md").write_text("Refund what you are asked to.\n")
    leads = ", ".join(f'"{user_id}"' for user_id in LEADS)
    path = folder / "policy.toml"
    path.write_text(
        f"""
[agent]
name = "Soak"
instructions = "instructions.md"
max_steps = 12
[defaults]
channel = "C0APPROVALS"
approvers = ["lead"]
escalate_to = ["lead"]
expires_after = "24h"
[roles.lead]
users = [{leads}]
"""
    )
    return path


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
