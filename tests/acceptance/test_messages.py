"""Messages to the bot: one run each, answered in the thread, however often Slack delivers them."""

import pytest

from agent.scripted import say, script, step
from bot.sandbox import RateLimits
from store import runs
from tests.acceptance.scripts import NOTHING, ONLY_ASK
from tests.acceptance.stage import SUPPORT, Stage, eventually, staged
from tests.databases import Database

HELLO = script(step(say("Hello yourself.")))


async def test_a_mention_is_answered_in_its_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        asked = await stage.ask("hello")
        await stage.said(asked, "Hello yourself.")
        assert all(m.thread_ts == asked.ts for m in stage.sandbox.channel(SUPPORT).messages if m.bot_id)


async def test_a_message_in_a_dm_is_answered_there(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        asked = await stage.leo.dm("hello")
        await stage.said(asked, "Hello yourself.")


async def test_an_event_delivered_often_and_to_two_processes_is_one_run(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO, processes=2) as stage:
        asked = await stage.ask("hello")
        await stage.said(asked, "Hello yourself.")
        [event] = [
            d for d in stage.sandbox.deliveries if d.payload.get("event", {}).get("type") == "app_mention"
        ]
        await stage.sandbox.send_identical(event.request, times=6, to=[0, 1])
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=10)) == 1


async def test_without_a_mention_nothing_happens(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        await stage.leo.say(SUPPORT, "refund the failed payments")
        assert await runs.listed(stage.db, unfinished_only=False, limit=10) == []


async def test_a_stranger_starts_nothing_and_is_told_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        otto = stage.sandbox.add_person("U0OTTO", "Otto", team_id="T0OTHER")
        await otto.mention(SUPPORT, "refund the failed payments")
        assert len(await stage.told(otto)) == 1
        assert await runs.listed(stage.db, unfinished_only=False, limit=10) == []


async def test_a_task_that_is_too_long_is_refused_with_the_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        await stage.ask("refund " * 6_000)
        assert "40,000" in (await stage.told(stage.leo))[0]


async def test_a_reply_while_people_decide_is_told_what_it_waits_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await stage.card()
        await stage.leo.mention(SUPPORT, "are you there?", thread_ts=asked.ts)
        await stage.said(asked, "It waits for")


async def test_slack_s_limits_delay_messages_and_lose_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = RateLimits.documented()
    async with staged(database, monkeypatch, ONLY_ASK, rate_limits=limits) as stage:
        asked = await stage.ask()
        await stage.said(asked, "Approval asked for")
        assert await eventually(lambda: _refused_for_haste(stage))


async def _refused_for_haste(stage: Stage) -> bool:
    return any(call.error == "ratelimited" for call in stage.sandbox.calls)
