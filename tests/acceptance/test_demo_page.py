"""The demo's page over HTTP, with a real database and a real process of the app: what the world can do."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import aiohttp
import psycopg
import pytest

from bot.demo.command import shown
from bot.demo.errors import DemoFailed
from bot.demo.keeper import Keeper
from bot.demo.model import FIRST_WORDS
from bot.demo.world import World, open_world
from bot.sandbox import Message
from bot.settings import DEFAULT_MODEL, Settings
from tests.acceptance.commands import COMMAND, ROOT, SECONDS, clean
from tests.acceptance.stage import eventually
from tests.acceptance.test_bad_endings import users_of
from tests.databases import Database
from tests.sandbox.browsing import Browser, Document

FAIL, RESTART, SLOW = "Three payments fail overnight", "Restart the app now", "Slack is slow"
RUNNING = re.compile(r"Running as process (\d+)\.")
AGAIN = re.compile(r"Process (\d+) was killed\. Running again, as process (\d+)\.")


@dataclass
class Demo:
    """A running demo, and a browser at its page."""

    world: World
    keeper: Keeper
    browser: Browser

    async def page(self, *words: str) -> Document:
        """Marta's page, once it has all of these words."""
        async with asyncio.timeout(SECONDS):
            while True:
                page = await self.browser.open()
                if all(one in page.text for one in words):
                    return page
                await asyncio.sleep(0.05)

    async def press(self, label: str) -> Document:
        """Marta presses a button, the newest of that label."""
        page = await self.browser.open()
        return await self.browser.press(page, label, at=page.labels_of_buttons.count(label) - 1)

    async def ready(self) -> str:
        """What stands in the field where Leo asks."""
        page = await self.browser.open("U0LEO", "C0SUPPORT")
        return dict(page.fields["composer-here"])["text"]

    async def ask(self) -> Message:
        """Leo asks the bot to refund."""
        leo = self.world.sandbox.person("U0LEO")
        return await leo.mention("C0SUPPORT", "please refund the failed payments")


def urls_of(database: Database) -> dict[str, str]:
    return {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}


@asynccontextmanager
async def demo(database: Database, **variables: str) -> AsyncIterator[Demo]:
    """One on this database."""
    async with (
        open_world(Settings.read(urls_of(database) | variables), port=0) as world,
        shown(world) as keeper,
        aiohttp.ClientSession() as http,
    ):
        yield Demo(world, keeper, Browser(world.sandbox, http))


async def test_what_is_in_the_database_is_on_the_page_step_by_step(database: Database) -> None:
    async with demo(database) as here:
        page = await here.page("In the database now", "Failed payments in the shop 38")
        assert "No call has asked for approval yet." in page.text
        assert "Nobody has asked the agent for anything yet." in page.text
        await here.ask()
        page = await here.page(
            "Refund 38 payments · €4,120.00 pending asked by Leo · revision 1 · until",
            "please refund the failed payments awaiting approval asked by Leo",
            "Decisions 0",
        )
        assert "if nobody decides, nothing runs" in page.text
        await here.page("Approve")
        await here.press("Approve")
        await here.page(
            "Refunds at the provider 38 of 38 payments, €4,120.00",
            "Failed payments in the shop 0",
            "Clicks 1 delivered 1 time Decisions 1",
            "Refund 38 payments · €4,120.00 executed asked by Leo · revision 1 · by Marta",
            "please refund the failed payments completed asked by Leo",
        )


async def test_it_is_shown_without_a_reload(database: Database) -> None:
    async with demo(database) as here:
        url = f"{here.world.sandbox.base_url}/live?as=U0MARTA&in=C0APPROVALS"
        async with here.browser.http.get(url) as stream, asyncio.timeout(SECONDS):
            await here.ask()
            async for line in stream.content:
                if b"38 payments" in line and b"awaiting approval" in line:
                    break


async def test_three_payments_fail_once_and_the_page_says_what_moved(database: Database) -> None:
    async with demo(database) as here:
        await here.ask()
        await here.page("Approve")
        page = await here.press(FAIL)
        assert "It has happened: 3 more payments failed, €255.25 in all. It happens once." in page.text
        assert "nothing runs, for 38 became 41." in page.text
        page = await here.press(FAIL)
        assert page.status == 409 and "It happens once." in page.text
        page = await here.page("Failed payments in the shop 41")
        assert "Next: Press Approve, and see what runs." in page.text
        assert "nothing runs, for 38 became 41." in page.text
        assert [b.attributes["aria-disabled"] for b in page.buttons if b.label == FAIL] == ["true"]
        await here.press("Approve")
        page = await here.page("Refund 41 payments · €4,375.25 pending", "superseded")
        assert "by Marta · failed payments: 38 → 41" in page.text
        assert "Refunds at the provider 0 Clicks 1" in page.text


async def test_no_payments_fail_before_a_card_waits_or_after_the_last_one(database: Database) -> None:
    async with demo(database) as here:
        page = await here.page(
            "Failed payments in the shop 38", "Not yet: first a card for refunds must wait"
        )
        assert [b.attributes["aria-disabled"] for b in page.buttons if b.label == FAIL] == ["true"]
        assert "Next: Ask as Leo in #support. Go there" in page.text
        page = await here.press(FAIL)
        assert page.status == 409 and "Not yet: first a card for refunds must wait" in page.text
        await here.ask()
        page = await here.page("Failed payments in the shop 38", "Approve")
        assert "Next: Look into The world first, or decide now." in page.text
        assert [b.attributes.get("aria-disabled") for b in page.buttons if b.label == FAIL] == [None]
        await here.press("Approve")
        page = await here.page(
            "Failed payments in the shop 0", "every failed payment is refunded", "completed"
        )
        page = await here.press(FAIL)
        assert page.status == 409 and "A new demo has the story again." in page.text


async def test_the_story_has_an_end_that_says_so(database: Database) -> None:
    async with demo(database) as here:
        assert "Be Marta" not in (await here.page("Next: Ask as Leo in #support.")).text
        await here.ask()
        await here.page("Approve")
        await here.press("Approve")
        page = await here.page("The end: 38 payments refunded, each once. Read as Leo what the agent says.")
        assert "Next:" not in page.text
        page = await here.browser.get(page.link("Go there"))
        assert (
            "The end: 38 payments refunded, each once. Its thread has the agent's words. Begin a" in page.text
        )


async def test_a_card_that_marta_may_not_decide_does_not_hold_up_the_story(database: Database) -> None:
    async with demo(database) as here:
        page = await here.browser.open("U0MARTA", "C0SUPPORT")
        assert "Next: Ask as Leo in #support." in page.text and FIRST_WORDS not in str(page.fields)
        await here.world.sandbox.person("U0MARTA").mention("C0SUPPORT", FIRST_WORDS)
        page = await here.page(
            "Nobody may decide this: only Marta has the role, and asked for it (four eyes)."
        )
        assert "Next: Ask as Leo in #support. Go there" in page.text
        assert "Not yet: first a card for refunds must wait" in page.text
        page = await here.browser.get(page.link("Go there"))
        assert "Next: Ask as Leo: press Send." in page.text
        await here.browser.press(page, "Send")
        await here.page("please decide.")
        page = await here.browser.open("U0MARTA", "home")
        assert "Next: A card waits in #approvals. Go there" in page.text
        await here.press("Approve")
        await here.page("The end: 38 payments refunded, each once. Read as Leo what the agent says.")


async def test_where_payments_are_left_one_may_ask_again(database: Database) -> None:
    async with demo(database) as here:
        await here.ask()
        await here.page("Approve")
        marta = here.world.sandbox.person("U0MARTA")
        await marta.click(here.world.sandbox.channel("C0APPROVALS").last, "Reject")
        await here.world.sandbox.until(lambda: marta.views and "Reason" in marta.read(marta.view))
        await marta.fill({"Reason": "Not today."}).submit()
        page = await here.page("Next: Ask as Leo again: 38 failed payments are left.", "Ask as Leo again. ")
        assert "and nothing runs, for 3 more have failed." in page.text
        page = await here.press(FAIL)
        assert page.status == 409 and "waits for Marta. Ask as Leo again." in page.text
        assert await here.ready() == "@vistobueno please refund the failed payments"
        await here.ask()
        assert await here.ready() == ""
        await here.page("Approve", "Next: Look into The world first, or decide now.")


async def test_with_ones_own_tools_nothing_of_the_shop_is_told(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "own.toml"
    text = (ROOT / "policy.toml").read_text().partition("[tools.")[0]
    policy.write_text(text.replace("model =", "# model =").replace("instructions =", "# instructions ="))
    own = {"VISTOBUENO_TOOLS": "tests.acceptance.slow_tools:TOOLS", "VISTOBUENO_POLICY": str(policy)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    async with demo(database, **own) as here:
        page = await here.browser.open("U0LEO", "C0SUPPORT")
        for words in ("refund", "payment", "Refund", "Next:", "press Send"):
            assert words not in page.text
        assert page.fields["composer-here"] == [("text", "")]
        assert 'placeholder="Ask @vistobueno for something that your tools do"' in page.html
        assert "an AI agent" in page.text and "Clicks 0 Decisions 0" in page.text
        assert FAIL not in page.labels_of_buttons and RESTART in page.labels_of_buttons
        leo = here.world.sandbox.person("U0LEO")
        asked = await leo.mention("C0SUPPORT", "please refund the failed payments")
        replies = here.world.sandbox.channel("C0SUPPORT")
        await here.world.sandbox.until(
            lambda: any("the scripted model" in leo.read(one) for one in replies.thread(asked.ts)),
            timeout=SECONDS,
        )


@pytest.mark.parametrize(
    ("named", "variables", "is_named"),
    [
        ("model =", {}, "claude-sonnet-5-5"),
        ("model = 'claude-x' #", {}, "claude-x"),
        ("# model =", {}, DEFAULT_MODEL),
        ("model =", {"VISTOBUENO_MODEL": "claude-y"}, "claude-y"),
    ],
)
async def test_the_model_that_answers_is_named(
    database: Database, tmp_path: Path, named: str, variables: dict[str, str], is_named: str
) -> None:
    policy, instructions = tmp_path / "policy.toml", tmp_path / "instructions.md"
    policy.write_text((ROOT / "policy.toml").read_text().replace("model =", named))
    instructions.write_text("Help.")
    variables = {
        **urls_of(database),
        "ANTHROPIC_API_KEY": "test",
        "VISTOBUENO_POLICY": str(policy),
        **variables,
    }
    async with open_world(Settings.read(variables), port=0) as world:
        assert world.model == is_named


async def test_a_restart_is_a_new_process_and_what_waits_survives_it(database: Database) -> None:
    async with demo(database) as here:
        await here.ask()
        page = await here.page("Approve", "when the lease of the dead is over: after 15 s.")
        before = RUNNING.search(page.text)
        assert before is not None
        await here.press(RESTART)
        page = await here.press(RESTART)
        assert AGAIN.search(page.text) is None, "it is still under way"
        found = AGAIN.search((await here.page("Running again")).text)
        assert found is not None
        assert found[1] == before[1] != found[2], "the second press killed nobody"
        with pytest.raises(ProcessLookupError):
            os.kill(int(before[1]), 0)
        await here.press("Approve")
        await here.page("Refunds at the provider 38 of 38 payments", "completed")


async def test_what_is_written_while_the_app_is_away_is_delivered_again(database: Database) -> None:
    async with demo(database) as here:
        await here.press(RESTART)
        await here.page("was killed. Starting another one …")
        await here.ask()
        first = here.world.sandbox.deliveries[-1]
        assert first.failure == "connection_failed"
        page = await here.browser.open()
        assert [b.attributes["aria-disabled"] for b in page.buttons if b.label == RESTART] == ["true"]
        deliveries = here.world.sandbox.deliveries
        again = await here.world.sandbox.until(
            lambda: next((d for d in deliveries if d.acked and d.retry_num), None), timeout=SECONDS
        )
        assert again is not None and again.request.body == first.request.body
        await here.page("Refund 38 payments · €4,120.00 pending")


async def test_an_app_that_cannot_be_started_again_is_said_and_ends_the_demo(database: Database) -> None:
    async with demo(database) as here:
        cast(dict[str, str], here.world.environ)["VISTOBUENO_POLICY"] = "nowhere.toml"
        await here.press(RESTART)
        with pytest.raises(DemoFailed, match=r"^The app could not start\. It said: .*nowhere\.toml"):
            await asyncio.wait_for(here.keeper.ended(), SECONDS)


@pytest.mark.parametrize("asked", [signal.SIGKILL, signal.SIGTERM])
async def test_an_app_that_somebody_kills_is_said_and_started_again(
    database: Database, asked: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    async with demo(database) as here:
        await here.ask()
        before = RUNNING.search((await here.page("Approve")).text)
        assert before is not None
        os.kill(int(before[1]), asked)
        found = AGAIN.search((await here.page("Running again")).text)
        assert found is not None and found[1] == before[1] != found[2]
        assert f"Process {found[1]} was killed. Starting another one …" in capsys.readouterr().err
        await here.press("Approve")
        await here.page("Refunds at the provider 38 of 38 payments", "completed")


async def test_an_app_that_ends_by_itself_ends_the_demo_with_its_words(database: Database) -> None:
    async with demo(database) as here:
        os.kill(here.keeper.pid, signal.SIGABRT)  # as an interpreter does that cannot go on
        with pytest.raises(DemoFailed, match=r"^The app ended by itself, with exit status -6\."):
            await asyncio.wait_for(here.keeper.ended(), SECONDS)


@pytest.mark.debian
async def test_a_demo_that_ends_while_its_app_is_restarted_leaves_no_process(database: Database) -> None:
    async with demo(database) as here:
        await here.press(RESTART)
        await here.page("Starting another one")
    assert users_of(database) == []


async def test_a_click_that_a_slow_slack_delivers_twice_is_one_decision(database: Database) -> None:
    async with demo(database) as here:
        await here.ask()
        await here.page("Approve")
        page = await here.press(SLOW)
        assert "It is: press a button of a card." in page.text
        assert [b.attributes["aria-pressed"] for b in page.buttons if b.label == SLOW] == ["true"]
        await here.press("Approve")
        await here.page(
            "1 click, delivered twice: one decision.",
            "Clicks 1 delivered twice Decisions 1",
            "Refunds at the provider 38 of 38 payments",
        )
        first, again = (d.request for d in here.world.sandbox.deliveries if d.kind == "block_actions")
        assert first == again
        page = await here.press(SLOW)
        assert [b.attributes["aria-pressed"] for b in page.buttons if b.label == SLOW] == ["false"]
        assert not here.world.sandbox.slack.repeats_clicks


async def test_a_database_in_trouble_is_said_and_what_was_known_stays(database: Database) -> None:
    async with demo(database) as here:
        await here.ask()
        await here.page("Failed payments in the shop 38", "Approve")
        with psycopg.connect(database.owner_url) as owner:
            owner.execute("ALTER SCHEMA shop RENAME TO gone")
        page = await here.page("shop.payments")
        assert page.status == 200 and "Failed payments in the shop 38" in page.text
        page = await here.press(FAIL)
        assert page.status == 409 and "shop.payments" in page.text
        with psycopg.connect(database.owner_url) as owner:
            owner.execute("ALTER SCHEMA gone RENAME TO shop")
        await here.press(FAIL)
        assert "shop.payments" not in (await here.page("Failed payments in the shop 41")).text


async def test_the_database_is_read_again_and_again_only_while_somebody_looks(database: Database) -> None:
    async with demo(database) as here:
        await here.browser.open()
        assert await _nobody_reads()
        url = f"{here.world.sandbox.base_url}/live?as=U0MARTA&in=C0APPROVALS"
        async with here.browser.http.get(url) as stream:
            await stream.content.readline()
            assert not await _nobody_reads()
        await eventually(_nobody_reads)


async def _nobody_reads() -> bool:
    return "reading the database" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_command_whose_app_dies_by_itself_ends_with_a_sentence(database: Database) -> None:
    async with command(database) as (process, pid):
        os.kill(pid, signal.SIGABRT)
        _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 1
    assert said.decode() == "vistobueno: The app ended by itself, with exit status -6.\n"


@pytest.mark.debian
async def test_a_command_that_is_killed_leaves_no_process(database: Database) -> None:
    async with command(database) as (process, _):
        assert len(users_of(database)) == 2
        process.kill()
        await process.wait()
        await eventually(lambda: _nobody_uses(database))


async def _nobody_uses(database: Database) -> bool:
    return users_of(database) == []


async def test_where_logs_are_wanted_the_demo_speaks_first_and_the_policy_of_its_shop_is_no_news(
    database: Database,
) -> None:
    variables = {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url, "LOG_LEVEL": "INFO"}
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "demo"),
        cwd=ROOT,
        env=clean(variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        said: list[str] = []
        while not said or "Ctrl-C ends the demo." not in said[-1]:
            said.append((await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode())
        process.send_signal(signal.SIGINT)
        after = (await asyncio.wait_for(process.stdout.read(), SECONDS)).decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    assert said[0].startswith("Open http://127.0.0.1:")
    assert not any(line.startswith("{") for line in said), said
    assert "four_eyes" not in after and "The demo is over." in after


@asynccontextmanager
async def command(database: Database) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """The demo as a command, and the process id of its app as its page tells it."""
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "demo"),
        cwd=ROOT,
        env=clean({"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode().split()[1]
        async with aiohttp.ClientSession() as http, http.get(url) as answered:
            found = RUNNING.search(await answered.text())
        assert found is not None
        yield process, int(found[1])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
