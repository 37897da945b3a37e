"""The first message of an answer says what the run is doing, is edited in place, and ends with the truth."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.scripted import call, say, step
from agent.start import cancel_run
from agent.tools.shop.provider import Fault
from agent.tools.shop.seed import fail_three_overnight
from bot.following import Busy, Following
from bot.sandbox import Fault as SlackFault
from bot.sandbox import Message
from store import backlog
from store.records import Actor, RunId
from tests.acceptance.children import child, web_apart
from tests.acceptance.crowds import crowd, crowd_policy
from tests.acceptance.scripts import LAST_WORDS, LOOK, NOTHING, ONLY_ASK, ask_for_refunds, refund
from tests.acceptance.stage import DEADLINE_SECONDS, SUPPORT, Stage, eventually, staged
from tests.acceptance.test_cards import try_again
from tests.acceptance.test_messages import HELLO
from tests.databases import Database
from tests.integration.store.rows import shift_clock

WAIT = {"timeout": DEADLINE_SECONDS}
OPERATOR = Actor("operator", name="the operator")
REJECTED = ask_for_refunds(step(say("That is all.")))
THANKED = ask_for_refunds(step(say("That is all.")), step(say("You are welcome.")))


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Updates may follow one another at once: what is tested here is what they say."""
    monkeypatch.setattr("bot.following.EVERY_SECONDS", 0.01)
    monkeypatch.setattr("bot.following.BURST", 1000)
    yield


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever shows progress hears nothing of what the worker does."""
    monkeypatch.setattr(Following, "_keep", unheard)


async def unheard(following: Following, run_id: RunId, followed: Any) -> None:
    following._followed.pop(run_id)


def thread(stage: Stage, asked: Message) -> list[Message]:
    """What the bot has said under a message."""
    return stage.sandbox.channel(SUPPORT).thread(asked.ts)[1:]


async def line(stage: Stage, asked: Message, words: str) -> str:
    """The text of the first message of the answer once it has these words."""

    def find() -> str:
        said = thread(stage, asked)
        text = stage.marta.read(said[0]) if said else ""
        return text if words in text else ""

    return await stage.sandbox.until(find, **WAIT)


async def found_below(stage: Stage, asked: Message, number: int) -> Message:
    """The message of the bot after so many others under a message."""
    await stage.sandbox.until(lambda: len(thread(stage, asked)) > number, **WAIT)
    return thread(stage, asked)[number]


async def test_the_story_is_told_in_one_line(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = ask_for_refunds(LOOK, step(call("refund_payments", refund)), LAST_WORDS)
    async with staged(database, monkeypatch, twice) as stage:
        stage.model.hold()
        asked = await stage.ask()
        await line(stage, asked, "Reading your request.")
        await stage.model.release()
        waiting = await line(stage, asked, "Waiting for")
        assert waiting.startswith("Waiting for Marta, until ")
        # for what stands below, once
        assert "Refund 38 payments · €4,120.00" not in waiting
        assert "Refund 38 payments · €4,120.00" in stage.marta.read(await found_below(stage, asked, 1))
        first = await stage.card("38 payments")
        await fail_three_overnight(database.owner_url)
        stage.model.hold()
        await stage.marta.click(first, "Approve")
        await line(stage, asked, "The facts moved before it ran, so nothing ran. Looking again.")
        await stage.model.release()
        assert (await line(stage, asked, "Waiting for")).startswith("Waiting for Marta, until ")
        stage.provider.plan(*[None] * 12, Fault.HELD_ANSWER)
        stage.model.hold()
        await stage.marta.click(await stage.card("41 payments"), "Approve")
        assert await line(stage, asked, "12 of 41") == "⏳ Refunding payments: 12 of 41"
        stage.provider.release()
        await line(stage, asked, "Reading the results.")
        await stage.model.release()
        ended = await line(stage, asked, "Finished.")
        moved = r"↻ Out of date, nothing ran: Refund 38 payments · €4,120\.00"
        assert re.fullmatch(rf"Finished\.\n{moved}\n✅ Done: Refund 41 payments · €[\d.,]+", ended), ended
        await stage.said(asked, "That is all.")
        said = thread(stage, asked)
        assert len(said) == 4, [stage.marta.read(m) for m in said]  # the line, two requests, the answer
        assert "38 → 41" in stage.marta.read(said[2])  # who asked reads why there is another request
        for request, card in zip(said[1:3], stage.cards, strict=True):
            assert card.ts.replace(".", "") in str(request.blocks)
        assert not any(m.edited for m in said)


async def test_a_rejection_is_what_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, REJECTED) as stage:
        asked, marta = await stage.ask(), stage.marta
        await marta.click(await stage.card(), "Reject")
        await stage.sandbox.until(lambda: marta.views and "38 payments" in marta.read(marta.view), **WAIT)
        await marta.fill({"Reason": "Not today"}).submit()
        ended = await line(stage, asked, "Finished.")
        assert "⛔ Rejected, nothing ran: Refund 38 payments" in ended


async def test_a_run_that_is_stopped_says_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await stage.card()
        await cancel_run(stage.processes[0].app.bot.house, (await stage.run()).id, OPERATOR)
        stage.processes[0].app.bot.publishing.call()
        ended = await line(stage, asked, "Stopped by the operator.")
        assert "Cancelled, nothing ran: Refund 38 payments" in ended


async def test_only_those_are_waited_for_who_may_still_decide(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = crowd_policy(tmp_path, 2, quorum=2)
    async with staged(database, monkeypatch, ask_for_refunds(), policy=policy) as stage:
        first, second = await crowd(stage, 2)
        stage.sandbox.admin.invite(SUPPORT, first.id)
        asked = await first.mention(SUPPORT, "please refund the failed payments")
        # whoever asks does not decide
        both = f"Waiting for Marta or {second.user.real_name}, until "
        assert (await line(stage, asked, "Waiting for")).startswith(both)
        await stage.marta.click(await stage.card(), "Approve")
        await line(stage, asked, f"Waiting for {second.user.real_name}, until ")
        await second.click(await stage.card(), "Approve")
        await line(stage, asked, "✅ Done: Refund 38 payments")


async def test_whoever_cannot_decide_any_more_is_not_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, policy=crowd_policy(tmp_path, 1)) as stage:
        [other] = await crowd(stage, 1)
        await stage.sandbox.admin.deactivate("U0MARTA")
        waits = await line(stage, await stage.ask(), "Waiting for")
        assert waits.startswith(f"Waiting for {other.user.real_name}, until ")
        await stage.sandbox.admin.change_user(other.id, is_restricted=True)
        waits = await line(stage, await stage.ask(), "Waiting for")
        assert waits.startswith("Waiting for support_lead, until ")


async def test_where_slack_names_nobody_the_role_is_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        stage.model.hold()
        asked = await stage.ask()
        await line(stage, asked, "Reading your request.")
        stage.sandbox.faults.add("users.info", SlackFault.http(500), times=100)
        await stage.model.release()
        assert (await line(stage, asked, "Waiting for")).startswith("Waiting for support_lead, until ")


async def test_a_line_that_is_as_it_should_be_is_not_sent_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await line(stage, asked, "Waiting for")
        await eventually(lambda: nothing_unposted(stage))
        [message, *_] = thread(stage, asked)
        version, run = message.version, (await stage.run()).id
        await eventually(lambda: shown(stage, run))
        assert message.version == version
        assert not await shown(stage, "run_none")


async def shown(stage: Stage, run: str) -> bool:
    """Whether the line is as it should be now; not while it is brought up to date by itself."""
    with suppress(Busy):
        return await stage.processes[0].app.bot.publisher.lines.show(run)
    return False


async def test_a_run_that_fails_says_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        stage.model.fail_next(400)
        asked = await stage.ask()
        assert await line(stage, asked, "Stopped") == "Stopped: this run could not be finished."


async def test_a_call_that_fails_is_named_when_the_run_has_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, REJECTED) as stage:
        asked = await stage.ask()
        card = await stage.card()
        stage.provider.refused_payments.add((await stage.approval()).shown.items[0])
        await stage.marta.click(card, "Approve")
        assert "❌ Failed: Refund 38 payments" in await line(stage, asked, "Finished.")


async def test_a_reply_waits_in_a_line_of_its_own_until_its_turn_comes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, THANKED) as stage:
        asked, marta = await stage.ask(), stage.marta
        card = await stage.card()
        reply = await stage.leo.mention(SUPPORT, "thanks", thread_ts=asked.ts)
        behind = await stage.sandbox.until(lambda: found(stage, asked, "Noted."), **WAIT)
        assert behind.ts > reply.ts
        await marta.click(card, "Approve")
        await stage.sandbox.until(lambda: marta.read(behind.ts) == "Finished.", **WAIT)
        assert (await line(stage, asked, "Finished.")).startswith("Finished.")


# --- nothing hangs on it ---


@pytest.mark.usefixtures("lost")
async def test_where_no_step_is_heard_of_the_line_still_says_what_it_waits_for_and_how_it_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await line(stage, asked, "Waiting for")
        await stage.marta.click(await stage.card(), "Approve")
        assert "✅ Done: Refund 38 payments" in await line(stage, asked, "Finished.")
        await eventually(lambda: nothing_unposted(stage))


async def test_a_slack_that_takes_no_update_holds_up_neither_the_run_nor_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, HELLO) as stage:
        stage.sandbox.faults.add("chat.update", SlackFault.http(500), times=100)
        asked = await stage.ask("hello")
        await stage.said(asked, "Hello yourself.")
        assert await line(stage, asked, "") == "On it."
        await eventually(lambda: failed(stage))
        stage.sandbox.faults.clear()
        await try_again(stage, "notices")
        assert await line(stage, asked, "Finished.") == "Finished."


async def test_a_line_that_is_deleted_is_not_posted_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await line(stage, asked, "Waiting for")
        card = await stage.card()
        stage.sandbox.admin.delete_message(SUPPORT, thread(stage, asked)[0].ts)
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")
        await eventually(lambda: nothing_unposted(stage))
        assert len(thread(stage, asked)) == 2  # the request and the answer


async def test_a_count_of_a_killed_worker_does_not_stay(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage:
        async with child(stage, "worker") as first:
            asked = await stage.ask()
            card = await stage.card("38 payments")
            await stage.approve_and_hold(card, after=20)
            await line(stage, asked, "20 of 38")
            await first.kill()
        shift_clock(database, "16 seconds")  # the dead worker's lease is over
        async with child(stage, "worker"):
            await stage.said(asked, "That is all.")
            await line(stage, asked, "✅ Done: Refund 38 payments")


def found(stage: Stage, asked: Message, words: str) -> Message | None:
    """The message under `asked` that has these words."""
    return next((m for m in thread(stage, asked) if words in stage.marta.read(m)), None)


async def nothing_unposted(stage: Stage) -> bool:
    """Whether all that was to be said is in Slack."""
    return await backlog.count_unposted(stage.db) == 0


async def failed(stage: Stage) -> bool:
    """Whether a line waits to be tried again."""
    tried = "SELECT FROM notices WHERE ts IS NOT NULL AND posted_at IS NULL AND failures > 0"
    return bool(await stage.db.query(tried))
