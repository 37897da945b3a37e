"""An update that Slack carries out late, after a newer one, does not stay: not on a card, not in a line."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from slack_sdk.errors import SlackApiError

from agent.scripted import Script, call, script, step
from agent.start import cancel_run
from bot.blocks.bounded import sentence
from bot.blocks.phrases import fill
from bot.following import Busy, Following
from bot.lines import Lines
from bot.sandbox import Fault as SlackFault
from bot.sandbox import Message
from store import cards
from store.records import Run
from tests.acceptance.scripts import LOOK, ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import DEADLINE_SECONDS, Stage, eventually, staged
from tests.acceptance.test_progress import (
    OPERATOR,
    REJECTED,
    WAIT,
    line,
    nothing_unposted,
    thread,
    unheard,
)
from tests.databases import Database
from tests.integration.store.rows import shift_clock

BUTTONS = ["Approve", "Edit", "Reject"]
Update = Callable[..., Awaitable[Any]]


class Late:
    """chat.update, whose first call is carried out only once it is let go."""

    def __init__(self, update: Update, *, given_up: bool) -> None:
        """`given_up`: meanwhile its caller is told that there was no answer."""
        self._update, self._given_up = update, given_up
        self.sent, self.let_go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, **arguments: Any) -> Any:
        if self.sent.is_set():
            return await self._update(**arguments)
        self.sent.set()
        carrying_out = asyncio.create_task(self._carry_out(arguments))
        if self._given_up:
            raise TimeoutError
        return await carrying_out

    async def _carry_out(self, arguments: dict[str, Any]) -> Any:
        await self.let_go.wait()
        answer = await self._update(**arguments)
        self.done.set()
        return answer

    async def is_sent(self) -> None:
        """Wait until the first call is on its way."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.sent.wait()

    async def comes(self) -> None:
        """Let Slack carry out the first call now."""
        self.let_go.set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.done.wait()


def late(monkeypatch: pytest.MonkeyPatch, client: Any, *, given_up: bool) -> Late:
    """From now on the client's next update is late."""
    made = Late(client.chat_update, given_up=given_up)
    monkeypatch.setattr(client, "chat_update", made)
    return made


async def ended(stage: Stage, card: Message) -> bool:
    """Whether the card has no buttons."""
    return stage.marta.buttons(card.ts) == []


async def none_behind(stage: Stage) -> bool:
    """Whether every card shows its row as it is."""
    return await cards.count_behind(stage.db) == 0


# --- cards ---


async def test_an_update_of_a_card_that_got_no_answer_is_sent_once_more_when_it_can_no_longer_come(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked, card = await stage.ask(), await stage.card()
        await eventually(lambda: nothing_unposted(stage))
        [process] = stage.processes
        with monkeypatch.context() as patch:
            older = late(patch, process.app.bot.publisher._slack.once, given_up=True)
            await stage.db.query("UPDATE cards SET wanted_version = 2")  # as after a first vote of two
            process.app.bot.publishing.call()
            await older.is_sent()
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")
        await eventually(lambda: ended(stage, card))
        await eventually(lambda: none_behind(stage))  # no update is on its way any more
        await older.comes()
        assert stage.marta.buttons(card.ts) == BUTTONS
        shift_clock(database, "31 seconds")
        process.app.bot.publishing.call()
        await eventually(lambda: ended(stage, card))


async def test_a_click_on_a_card_whose_buttons_should_be_gone_takes_them_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked, card = await stage.ask(), await stage.card()
        old = {"text": card.text, "blocks": list(card.blocks)}
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")
        await eventually(lambda: none_behind(stage))  # no update is on its way any more
        client = stage.processes[0].app.bot.publisher._slack.once
        await client.chat_update(channel=card.channel_id, ts=card.ts, **old)
        await stage.marta.click(card.ts, "Approve")
        assert "your click changed nothing" in (await stage.told(stage.marta, 2))[-1]
        await eventually(lambda: ended(stage, card))


@pytest.mark.parametrize(("verb", "script"), [("Approve", ask_for_refunds()), ("Reject", ONLY_ASK)])
async def test_a_card_for_one_person_alone_loses_its_buttons_when_it_is_pressed(
    database: Database, monkeypatch: pytest.MonkeyPatch, verb: str, script: Script
) -> None:
    async with staged(database, monkeypatch, script) as stage:
        asked = await stage.ask()
        await stage.card()
        marta, approval = stage.marta, await stage.approval()
        publisher = stage.processes[0].app.bot.publisher
        await eventually(lambda: publisher.links([approval.id]))  # where the card stands is known, too
        await marta.slash("/approvals", f"show {approval.id}")
        await stage.told(marta)
        [own] = marta.ephemerals
        assert marta.buttons(own) == BUTTONS
        await marta.click(own, verb)
        await stage.sandbox.until(lambda: marta.buttons(own.ts) == [], **WAIT)
        text = marta.read(own.ts)
        assert "Refund 38 payments" in text
        assert "This copy is for you alone and is not kept up to date. Open the card" in text
        assert ("Approved by Marta" in text) == (verb == "Approve")
        if verb == "Approve":
            await stage.said(asked, "That is all.")


async def test_a_card_for_one_person_alone_vanishes_when_slack_takes_nothing_in_its_place(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await stage.card()
        marta = stage.marta
        await marta.slash("/approvals", f"show {(await stage.approval()).id}")
        await stage.told(marta)
        [own] = marta.ephemerals
        stage.sandbox.faults.add("respond", SlackFault.http(500), times=2)
        await marta.click(own, "Approve")
        await stage.sandbox.until(lambda: own not in marta.ephemerals, **WAIT)
        await stage.said(asked, "That is all.")


async def test_an_update_that_something_in_between_has_answered_may_come_late_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Following, "_keep", unheard)
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        await eventually(lambda: nothing_unposted(stage))
        publisher = stage.processes[0].app.bot.publisher
        stage.sandbox.faults.add("chat.update", SlackFault.http(504), times=2)
        await stage.db.query("UPDATE cards SET wanted_version = 2")
        await stage.db.query("UPDATE notices SET shown = NULL")
        await publisher.publish_cards()
        with pytest.raises(SlackApiError):
            await publisher.lines.show((await stage.run()).id)
        for table in ("cards", "notices"):
            again = f"SELECT FROM {table} WHERE again_at > house_now()"
            await eventually(lambda again=again: stage.db.query(again))


# --- lines ---


async def test_what_another_process_read_before_the_end_does_not_stay_in_the_line(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, REJECTED, processes=2) as stage:
        asked, marta = await stage.ask(), stage.marta
        card = await stage.card()
        stage.model.hold()
        await marta.click(card, "Reject")
        await stage.sandbox.until(lambda: marta.views and "38 payments" in marta.read(marta.view), **WAIT)
        await marta.fill({"Reason": "Not today"}).submit()
        await line(stage, asked, "Reading what was decided; nothing ran.")
        await stage.db.query("UPDATE notices SET shown = NULL")
        other = stage.processes[1].app.bot.publisher.lines
        older = late(monkeypatch, other._slack.quick, given_up=False)
        run = await stage.run()
        showing = asyncio.create_task(eventually(lambda: shows(other, run)))
        await older.is_sent()
        await stage.model.release()
        await stage.said(asked, "That is all.")
        await older.comes()
        await showing
        await eventually(lambda: nothing_unposted(stage))
        assert "Finished." in await line(stage, asked, "")


async def test_a_line_is_shown_though_this_process_showed_the_same_before_another_did(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, processes=2) as stage:
        asked = await stage.ask()
        await line(stage, asked, "Waiting for")
        await eventually(lambda: nothing_unposted(stage))
        run, (one, other) = await stage.run(), (p.app.bot.publisher.lines for p in stage.processes)
        await eventually(lambda: shows(other, run))
        with monkeypatch.context() as patch:
            patch.setattr("bot.lines.line", lambda rows, context: sentence(fill("Something else.")))
            await eventually(lambda: shows(one, run))
        await line(stage, asked, "Something else.")
        await eventually(lambda: shows(other, run))
        await line(stage, asked, "Waiting for")


async def test_a_stopped_run_says_how_a_call_ended_that_was_let_finish(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Following, "_keep", unheard)
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked, card = await stage.ask(), await stage.card()
        await stage.approve_and_hold(card, after=5)
        [process] = stage.processes
        await cancel_run(process.app.bot.house, (await stage.run()).id, OPERATOR)
        process.app.bot.publishing.call()
        assert "⏳ Still running: Refund 38" in await line(stage, asked, "Stopped by the operator.")
        stage.provider.release()
        assert "Stopped by the operator." in await line(stage, asked, "✅ Done: Refund 38 payments")


async def test_a_line_does_not_change_with_every_try_of_a_call_that_must_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    once = script(LOOK, step(call("refund_payments", lambda _: {"payment_ids": found, "reason": "x"})))
    async with staged(database, monkeypatch, once) as stage:
        with psycopg.connect(database.owner_url) as owner:
            small = "SELECT id FROM shop.payments WHERE status = 'failed' AND amount < 50 LIMIT 1"
            [row] = owner.execute(small)
        found.append(row[0])
        with psycopg.connect(database.admin_url) as admin:
            admin.execute("SET session_replication_role = replica")  # a call of no run holds it
            admin.execute("INSERT INTO held_items (effect, item, call_id) VALUES ('refund', %s, 'c')", row)
        asked = await stage.ask()
        await line(stage, asked, "next, as soon as nothing else is in its way.")
        await eventually(lambda: tries(stage, 1))
        [shown, *_] = thread(stage, asked)
        before = shown.version
        await eventually(lambda: tries(stage, 4))
        assert shown.version - before <= 1, stage.marta.read(shown)


async def shows(lines: Lines, run: Run) -> bool:
    """Let a process bring a line up to date; False: another is about it just now."""
    try:
        return await lines.show(run.id)
    except Busy:
        return False


async def tries(stage: Stage, least: int) -> bool:
    """Whether the run was sent back to the queue so often."""
    rows = await stage.db.query("SELECT FROM audit_events WHERE kind = 'run.requeued'")
    return len(rows) >= least
