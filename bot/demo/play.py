"""The story of 38 refunds that became 41, lived unattended through real HTTP, step by step."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import typer

from agent.legible import visible
from agent.tools.shop.seed import fail_three_overnight
from bot.demo.child import Child
from bot.demo.errors import DemoFailed
from bot.demo.facts import gather
from bot.demo.model import FIRST_WORDS
from bot.demo.world import World, open_world
from bot.sandbox.people import Person
from bot.sandbox.workspace import Message
from bot.settings import Settings
from store import backlog, cards, runs
from store.engine import Database

STEP_SECONDS = 30.0
SUPPORT, APPROVALS = "C0SUPPORT", "C0APPROVALS"
T = TypeVar("T")


async def play(settings: Settings, *, port: int = 0, as_json: bool = False) -> None:
    """Live the story; raises DemoFailed with the first fact that does not hold."""
    began = time.monotonic()
    async with open_world(settings, port=port) as world:
        if not world.has_shop:
            raise DemoFailed(
                f"The story is that of the example shop, whose tools are not in {settings.tools}: "
                "unset VISTOBUENO_TOOLS."
            )
        db = Database.open(world.urls.app)
        story = Story(world, db)
        story.tell(f"The shop and the sandbox Slack are there. The agent thinks with {world.model}.")
        try:
            await story.live()
            facts = await gather(db, world)
        finally:
            await story.end()
            await db.close()
    facts.check()
    story.tell(f"Every fact holds, after {time.monotonic() - began:.0f} s.")
    if as_json:
        typer.echo(json.dumps(facts.to_json()))


@dataclass
class Story:
    """Who does what, one step after the other."""

    world: World
    db: Database
    child: Child | None = None

    @property
    def leo(self) -> Person:
        return self.world.sandbox.person("U0LEO")

    @property
    def marta(self) -> Person:
        return self.world.sandbox.person("U0MARTA")

    @staticmethod
    def tell(sentence: str) -> None:
        """A step that has happened."""
        typer.echo(f"✓ {sentence}")

    async def live(self) -> None:
        """All of it."""
        await self.start_app()
        asked = await self.leo.mention(SUPPORT, FIRST_WORDS)
        self.tell("Leo asks the bot to refund the failed payments.")
        first = await self.card_with("38 payments", "the card that asks for 38 refunds")
        await self.said_in(asked, "38 payments", "the thread's line that 38 refunds wait")
        self.tell("The card asks: refund 38 payments, because 38 have failed.")
        await self.die_and_start_again()
        await self.three_more_fail()
        await self.approve_twice(first)
        second = await self.card_with("41 payments", "the card that asks for 41 refunds", besides=first)
        self.tell("Nothing ran: 38 had become 41. The agent looked again, and a new card asks for 41.")
        await self.approve_twice_and_redeliver(second)
        words = (await self.run_completed()).splitlines()[0]
        await self.said_in(asked, words, "the agent's last words")
        self.tell(f"In the thread: {visible(words)}")

    async def end(self) -> None:
        """Stop the app."""
        if self.child is not None:
            await self.child.stop()

    async def start_app(self) -> None:
        """Start the app and let Slack deliver to it."""
        self.child = await Child.start(self.world.environ)
        self.world.sandbox.connect(self.child.url)

    async def die_and_start_again(self) -> None:
        """Kill the process that asked, as a power cut would, and start another.

        Not while a message is on its way: it would be posted once more when the lease of the dead is over.
        """
        assert self.child is not None
        await self.until_all_is_shown()
        await self.child.kill()
        self.tell("The process that asked has died.")
        await self.start_app()
        self.tell("Another process has been started; it knows nothing but the database.")

    async def three_more_fail(self) -> None:
        """The world moves while people sleep."""
        failed = await fail_three_overnight(self.world.urls.owner)
        self.tell(f"Overnight {len(failed)} more payments fail.")

    async def approve_twice(self, card: Message) -> None:
        """A double click: two clicks of one person, at once."""
        for delivery in await self.marta.clicks(card.snapshot(), "Approve", times=2):
            self.need(delivery.acked, f"a click was answered {delivery.status}, {delivery.failure}")
        self.tell("Marta presses Approve, twice, because Slack was slow.")

    async def approve_twice_and_redeliver(self, card: Message) -> None:
        """A double click, and the first of them delivered three more times."""
        shown = card.snapshot()  # what her client still shows, whatever happens to the card meanwhile
        request = self.marta.prepare_click(shown, "Approve")
        identical = await self.world.sandbox.send_identical(request, times=4)
        again = await self.marta.clicks(shown, "Approve", times=2)
        for delivery in [*identical, *again]:
            self.need(delivery.acked, f"a click was answered {delivery.status}, {delivery.failure}")
        self.tell("Marta approves the 41 with three clicks; Slack delivers one of them four times.")

    async def card_with(self, words: str, what: str, besides: Message | None = None) -> Message:
        """The card in the approvals channel that has these words and can be approved."""

        def find() -> Message | None:
            for message in self.world.sandbox.channel(APPROVALS).messages:
                other = besides is None or message.ts != besides.ts
                if other and words in self.marta.read(message) and "Approve" in self.marta.buttons(message):
                    return message
            return None

        return await self.wait(find, what)

    async def said_in(self, asked: Message, words: str, what: str) -> None:
        """Wait until the bot has said these words in the thread."""
        channel = self.world.sandbox.channel(SUPPORT)
        await self.wait(
            lambda: any(words in self.marta.read(m) for m in channel.thread(asked.ts)[1:]) or None, what
        )

    async def until_all_is_shown(self) -> None:
        """Wait until the database knows that cards and notices are in Slack."""
        async with deadline("cards and notices to be shown"), self.db.listener() as listener:
            while await backlog.count_unposted(self.db) or await cards.count_behind(self.db):
                await listener.wait(0.1)

    async def run_completed(self) -> str:
        """The agent's last words, once the run has ended."""
        async with deadline("the end of the run"), self.db.listener() as listener:
            while (run := (await runs.listed(self.db, unfinished_only=False, limit=1))[0]).answer is None:
                await listener.wait(1.0)
        return run.answer

    async def wait(self, find: Callable[[], T | None], what: str) -> T:
        """What `find` finds once the workspace shows it; DemoFailed after 30 s."""
        async with deadline(what):
            found = await self.world.sandbox.until(find, timeout=STEP_SECONDS)
        assert found is not None
        return found

    @staticmethod
    def need(holds: bool, otherwise: str) -> None:
        """DemoFailed unless it holds."""
        if not holds:
            raise DemoFailed(f"The story went wrong: {otherwise}.")


@asynccontextmanager
async def deadline(what: str) -> AsyncIterator[None]:
    """Give the block 30 s; DemoFailed says what was waited for."""
    try:
        async with asyncio.timeout(STEP_SECONDS):
            yield
    except TimeoutError as error:
        raise DemoFailed(f"The story stopped: waited {STEP_SECONDS:g} s for {what}.") from error
