"""The whole product for one test: sandbox Slack, the app over HTTP, a database, the shop, a script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from agent.scripted import Script
from agent.tools.shop.provider import Fault, RefundProvider
from agent.tools.shop.seed import create_shop
from bot.app import App, build
from bot.process import listen, serve
from bot.sandbox import Message, Person, RateLimits, Sandbox
from bot.settings import Settings
from store import approvals, directory, runs
from store.engine import Database
from store.records import Approval, Run
from tests.databases import Database as OwnDatabase
from tests.standins.model import ModelUnderRules, model_under_rules

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 20.0
SUPPORT, APPROVALS = "C0SUPPORT", "C0APPROVALS"
T = TypeVar("T")


@dataclass
class Process:
    """One process of the app: its URL, and what it is made of."""

    app: App
    url: str
    stop: asyncio.Event


@dataclass
class Stage:
    """What a test acts on and looks at."""

    sandbox: Sandbox
    provider: RefundProvider
    model: ModelUnderRules
    db: Database
    settings: Settings
    processes: list[Process] = field(default_factory=list)

    @property
    def leo(self) -> Person:
        return self.sandbox.person("U0LEO")

    @property
    def marta(self) -> Person:
        return self.sandbox.person("U0MARTA")

    @property
    def cards(self) -> list[Message]:
        """The messages in the approvals channel."""
        return self.sandbox.channel(APPROVALS).messages

    async def ask(self, text: str = "please refund the failed payments") -> Message:
        """Leo mentions the bot in the support channel."""
        return await self.leo.mention(SUPPORT, text)

    async def card(self, words: str = "", besides: Message | None = None) -> Message:
        """The card with these words, once it can be approved."""

        def find() -> Message | None:
            ready = (m for m in self.cards if besides is None or m.ts != besides.ts)
            return next((m for m in ready if self.is_open(m) and words in self.marta.read(m)), None)

        found = await self.sandbox.until(find, timeout=DEADLINE_SECONDS)
        assert found is not None
        return found

    async def approve_and_hold(self, card: Message, after: int = 0) -> None:
        """Marta approves; a worker is then inside the tool, as the answer after so many is held back."""
        self.provider.plan(*[None] * after, Fault.HELD_ANSWER)
        await self.marta.click(card, "Approve")
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.provider.holding.wait()

    def is_open(self, message: Message) -> bool:
        """Whether a card can be approved."""
        return "Approve" in self.marta.buttons(message)

    async def shows(self, card: Message, words: str) -> str:
        """The text of a card once it has these words."""
        return await self.sandbox.until(
            lambda: (text := self.marta.read(card.ts)) if words in self.marta.read(card.ts) else "",
            timeout=DEADLINE_SECONDS,
        )

    async def told(self, person: Person, count: int = 1) -> list[str]:
        """What a person was told privately, once it is so many sentences."""
        await self.sandbox.until(lambda: len(person.ephemerals) >= count, timeout=DEADLINE_SECONDS)
        return [person.read(message) for message in person.ephemerals]

    async def said(self, asked: Message, words: str, within: float = DEADLINE_SECONDS) -> None:
        """Wait until the bot has said these words in the thread."""
        thread = self.sandbox.channel(asked.channel_id).thread
        await self.sandbox.until(
            lambda: any(words in self.marta.read(m) for m in thread(asked.ts)[1:]), timeout=within
        )

    async def directory_is_stale(self, user_id: str) -> None:
        """Once Slack has named somebody for the line, let that be ten minutes ago."""
        await eventually(lambda: directory.name_of(self.db, user_id))
        await self.db.query(
            "UPDATE directory_users SET refreshed_at = refreshed_at - interval '10 min' WHERE user_id = %s",
            [user_id],
        )

    async def approval(self) -> Approval:
        """The newest approval."""
        return (await approvals.listed(self.db, open_only=False, limit=1))[0]

    async def run(self) -> Run:
        """The newest run."""
        return (await runs.listed(self.db, unfinished_only=False, limit=1))[0]


async def eventually(look: Callable[[], Awaitable[T]]) -> T:
    """The first true value that `look` gives; TimeoutError when there is none in time."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.02)


@asynccontextmanager
async def staged(
    database: OwnDatabase,
    monkeypatch: pytest.MonkeyPatch,
    *scripts: Script,
    tools: str = "agent.tools:TOOLS",
    processes: int = 1,
    work: bool = True,
    rate_limits: RateLimits | None = None,
    policy: Path = ROOT / "policy.toml",
    socket_mode: bool = False,
    refunds: type[RefundProvider] = RefundProvider,
) -> AsyncIterator[Stage]:
    """Everything running; `work`: the first process has a worker; `socket_mode`: nothing over HTTP."""
    async with AsyncExitStack() as stack:
        await create_shop(database.owner_url)
        provider = await stack.enter_async_context(refunds.start())
        model = await stack.enter_async_context(model_under_rules(*scripts))
        sandbox = await stack.enter_async_context(
            Sandbox.running(
                rate_limits=rate_limits or RateLimits.off(),
                retry_delays=(0.0, 0.0, 0.0),
                socket_mode=socket_mode,
            )
        )
        monkeypatch.setenv("DATABASE_URL", database.url)
        monkeypatch.setenv("SHOP_PROVIDER_URL", provider.url)
        settings = Settings.read(
            {
                "DATABASE_URL": database.url,
                "SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token,
                "SLACK_SIGNING_SECRET": "" if socket_mode else sandbox.workspace.app.signing_secret,
                "SLACK_APP_TOKEN": sandbox.workspace.app.app_token if socket_mode else "",
                "SLACK_API_URL": sandbox.api_url,
                "ANTHROPIC_API_KEY": "test",
                "ANTHROPIC_BASE_URL": model.url,
                "VISTOBUENO_POLICY": str(policy),
                "VISTOBUENO_TOOLS": tools,
            }
        )
        db = Database.open(database.url)
        stack.push_async_callback(db.close)
        made = Stage(sandbox, provider, model, db, settings)
        for number in range(processes):
            process = await stack.enter_async_context(process_of(settings, work=work and number == 0))
            made.processes.append(process)
        if socket_mode:
            await sandbox.until(lambda: len(sandbox.sockets.open) == processes)
        else:
            sandbox.connect(*(process.url for process in made.processes))
        yield made


@asynccontextmanager
async def process_of(settings: Settings, *, work: bool) -> AsyncIterator[Process]:
    """One process of the app, in this event loop."""
    stop, answers = asyncio.Event(), asyncio.Event()
    async with build(settings, "test") as app:
        assert app.http is not None
        with listen("127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            parts = [asyncio.create_task(serve(app.http, listening, stop, answers.set))]
            if app.socket_mode is not None:
                parts.append(asyncio.create_task(app.socket_mode.serve(stop)))
            if work:
                parts.append(asyncio.create_task(app.worker.run(stop)))
            try:
                await answers.wait()
                yield Process(app, url, stop)
            finally:
                stop.set()
                with suppress(asyncio.CancelledError):
                    await asyncio.gather(*parts)
