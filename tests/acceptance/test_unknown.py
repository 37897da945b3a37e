"""Nobody knows whether it ran: people are asked on the card, one of them says it, and everybody is told."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from agent.scripted import Asked, call, expect_results, say, script, step
from agent.tools.shop.provider import Fault
from bot.sandbox import Fault as SlackFault
from bot.sandbox import Message
from store import approvals, audit, notices
from tests.acceptance.commands import answered
from tests.acceptance.scripts import LOOK, ask_for_refunds, refund
from tests.acceptance.stage import APPROVALS, SUPPORT, Stage, eventually, staged
from tests.acceptance.test_clicks import unreachable
from tests.acceptance.test_invariants import hold_back_what_follows_an_answer
from tests.acceptance.unrepeatable import NAME as UNREPEATABLE
from tests.databases import Database
from tests.integration.store.rows import shift_clock

QUESTION = ["It ran", "It did not run", "Try again"]
I_SEE = step(say("I see."), expect=expect_results(lambda told: told[0]["settledBy"]))


def ask(*after: Any) -> Any:
    return ask_for_refunds(*(after or (I_SEE,)))


async def asks(stage: Stage, buttons: list[str] | None = None) -> Message:
    """The card once it asks what happened."""
    await stage.sandbox.until(
        lambda: any(stage.marta.buttons(card) == (buttons or QUESTION) for card in stage.cards), timeout=20
    )
    return next(card for card in stage.cards if stage.marta.buttons(card))


async def lost(stage: Stage) -> tuple[Message, Message]:
    """Leo's message and the card, after the 21st answer of the provider was lost."""
    asked = await stage.ask()
    stage.provider.plan(*[None] * 20, Fault.LOST_ANSWER)
    await stage.marta.click(await stage.card("38 payments"), "Approve")
    return asked, await asks(stage)


def below(stage: Stage, card: Message) -> list[str]:
    """What stands in the card's thread."""
    return [stage.marta.read(m) for m in stage.sandbox.channel(APPROVALS).thread(card.ts)[1:]]


async def test_the_card_says_what_is_known_and_a_person_settles_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        approval = await stage.approval()
        said = stage.marta.read(card.ts)
        for words in (
            "Nobody knows whether it ran.",
            "It had counted 20 of 38 by then.",
            f"The key was {approval.id}.",
            "Nobody knows which of these 38 went through",
            "support_lead may say what happened",
        ):
            assert words in said
        click = await stage.marta.click(card, "It did not run")
        assert click.acked
        assert "You said that “Refund 38 payments" in (await stage.told(stage.marta, 2))[1]
        await stage.said(asked, "I see.")
        assert "says that it did not run" in await stage.shows(card, "looked and says")
        assert stage.marta.buttons(card.ts) == []
        assert len(stage.provider.refunds) == 21


async def test_two_people_on_two_processes_are_one_settlement_and_the_second_reads_who_was_first(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE, processes=2) as stage:
        asked, card = await lost(stage)
        seen = card.snapshot()
        clicks = await stage.marta.clicks(card, "It ran", times=2, to=[0, 1])
        assert [click.status for click in clicks] == [200, 200]
        await stage.said(asked, "I see.")
        await stage.marta.click(seen, "Try again")
        told = (await stage.told(stage.marta, 4))[1:]
        assert sorted("You said that" in one for one in told) == [False, False, True]
        assert sum("You have already said" in one for one in told) == 2
        assert await settlements(stage) == ["call.settled"]


async def test_try_again_asks_first_and_uses_the_same_keys(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = step(say("All refunded."), expect=expect_results(lambda told: told[0]["executed"] is True))
    async with staged(database, monkeypatch, ask(done), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        buttons = [e for block in card.blocks for e in block.get("elements", []) if e.get("confirm")]
        ran, did_not_run, risk = (button["confirm"]["text"]["text"] for button in buttons)
        assert "it may happen twice" in risk
        assert "recorded under your name that it ran" in ran
        assert "recorded under your name that nothing of it ran" in did_not_run
        await stage.marta.click(card, "Try again")
        assert "is tried again under the same key" in (await stage.told(stage.marta, 2))[1]
        await stage.said(asked, "All refunded.")
        assert len(stage.provider.refunds) == 38
        assert len({refund.payment_id for refund in stage.provider.refunds}) == 38
        assert stage.provider.requests > 38  # the lost one came again, with its key
        assert await settlements(stage) == ["call.tried_again"]


async def test_whoever_may_not_decide_is_told_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        for person in (stage.leo, stage.sandbox.person("U0ANA")):
            for at, button in enumerate(QUESTION, 1):
                click = person.prepare_click(card.snapshot(), button)
                [answer] = await stage.sandbox.send_identical(click, times=1)
                told = await stage.told(person, at)
                assert (answer.status, told[-1][:34]) == (200, "Only support_lead may decide this;")
        assert await settlements(stage) == []
        await stage.marta.click(card, "It ran")
        await stage.said(asked, "I see.")


async def test_a_settlement_is_committed_when_slack_has_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        hold_back_what_follows_an_answer(monkeypatch)
        await stage.marta.click(card, "It ran")
        assert await settlements(stage) == ["call.settled"]
        await stage.said(asked, "I see.")


async def test_without_a_database_nothing_is_recorded_and_it_can_be_pressed_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        with monkeypatch.context() as without:
            unreachable(stage, without)
            assert (await stage.marta.click(card, "It ran")).status == 200
            assert "nothing was recorded" in (await stage.told(stage.marta, 2))[1]
        assert await settlements(stage) == []
        await stage.marta.click(card, "It ran")
        await stage.said(asked, "I see.")


async def test_people_are_asked_and_reminded_below_the_card_once_by_two_workers(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE, processes=2) as stage:
        _, card = await lost(stage)
        first = await eventually(lambda: said_below(stage, card, 1))
        assert "Marta" in first[0] and "please look at what really happened" in first[0]
        assert "Try again" in first[0]
        shift_clock(database, "1 hour 1 minute")
        again = await eventually(lambda: said_below(stage, card, 2))
        assert "Still nobody knows whether" in again[1]
        await stage.marta.click(card, "It ran")
        approval = await stage.approval()
        await notices.add_to_conversation(  # as if it had waited for Slack meanwhile
            stage.db,
            dedupe_key="late",
            conversation_id=approval.conversation_id,
            kind="outcome_reminder",
            data={"approval_ids": [approval.id], "number": 3},
        )
        shift_clock(database, "5 hours")
        await stage.said(stage.sandbox.channel(SUPPORT).messages[0], "I see.")
        late = "SELECT ts FROM notices WHERE dedupe_key = 'late' AND posted_at IS NOT NULL"
        assert await eventually(lambda: stage.db.query(late)) == [{"ts": None}]
        assert len(below(stage, card)) == 2


@pytest.mark.parametrize("how", ["Slack wants to be left alone there", "the bot is not in the channel"])
async def test_a_reminder_that_cannot_be_posted_holds_up_nothing_in_the_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        await eventually(lambda: said_below(stage, card, 1))
        if how == "the bot is not in the channel":
            await stage.sandbox.admin.kick(APPROVALS)
        else:
            stage.sandbox.faults.add("chat.postMessage", SlackFault.rate_limited(120))
        shift_clock(database, "1 hour 1 minute")
        waits = "SELECT id FROM notices WHERE kind = 'outcome_reminder' AND not_before IS NOT NULL"
        await eventually(lambda: stage.db.query(waits))
        await stage.marta.click(card, "It ran")
        await stage.said(asked, "I see.")
        assert await stage.db.query(f"{waits} AND posted_at IS NULL")


async def test_after_an_outage_people_are_reminded_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = "SELECT id FROM notices WHERE kind = 'outcome_reminder' AND failures > 0"
    reminders = "SELECT id FROM notices WHERE kind = 'outcome_reminder'"
    async with staged(database, monkeypatch, ask(), tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        await eventually(lambda: said_below(stage, card, 1))
        stage.sandbox.faults.add("chat.postMessage", SlackFault.http(503), 500)
        for number, hours in ((2, 1), (3, 4), (4, 12)):
            shift_clock(database, f"{hours} hours 1 minute")
            await eventually(partial(exactly, stage, reminders, number))
            await eventually(lambda: stage.db.query(failed))
        stage.sandbox.faults.clear()
        shift_clock(database, "13 hours")
        await eventually(partial(exactly, stage, f"{reminders} AND posted_at IS NOT NULL", 4))
        assert len(below(stage, card)) == 2
        await stage.marta.click(card, "It ran")
        await stage.said(asked, "I see.")


async def exactly(stage: Stage, query: str, count: int) -> bool:
    """Whether it gives so many rows."""
    return len(await stage.db.query(query)) == count


async def said_below(stage: Stage, card: Message, count: int) -> list[str]:
    said = below(stage, card)
    return said if len(said) >= count else []


async def test_after_a_day_the_run_ends_and_what_is_said_late_reaches_the_thread_and_the_next_run(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    def hear(asked: Asked) -> str:
        heard.extend(b["text"] for b in asked.messages[-1]["content"] if b["type"] == "text")
        return "Thank you."

    closing = step(say("Nobody knows."), expect=expect_results(lambda told: told[0]["unknown"]))
    whole = ask(closing, step(say(hear)))
    async with staged(database, monkeypatch, whole, tools=UNREPEATABLE) as stage:
        asked, card = await lost(stage)
        old = card.snapshot()
        shift_clock(database, "24 hours 1 minute")
        await stage.said(asked, "Nobody knows.")
        await asks(stage, ["It ran", "It did not run"])
        await stage.marta.click(old, "Try again")
        assert "more than 24 hours ago" in (await stage.told(stage.marta, 2))[1]
        await stage.marta.click(card, "It did not run")
        await stage.said(asked, "Marta (support_lead) looked and says that “Refund 38 payments")
        await stage.leo.mention(SUPPORT, "and now?", asked.ts)
        await stage.said(asked, "Thank you.")
        assert [text.startswith("Meanwhile a person settled") for text in heard] == [True, False]


def refund_one(asked: Asked) -> dict[str, Any]:
    payments = asked.result_of("search_payments")["data"]["payments"]
    cheap = next(p["id"] for p in payments if Decimal(p["amount"].split()[0]) <= 50)
    return {"payment_ids": [cheap], "reason": "the charge failed"}


async def test_a_call_that_nobody_was_asked_about_gets_such_a_card_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = script(LOOK, step(call("refund_payments", refund_one)), I_SEE)
    async with staged(database, monkeypatch, whole, tools=UNREPEATABLE) as stage:
        stage.provider.plan(Fault.LOST_ANSWER)
        asked = await stage.ask("please refund one")
        card = await asks(stage)
        assert "Nobody knows whether it ran." in stage.marta.read(card)
        await stage.marta.click(card, "It ran")
        await stage.said(asked, "I see.")
        assert len(stage.provider.refunds) == 1


async def test_the_lists_and_the_command_line_say_what_is_unknown_and_what_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(
        database, monkeypatch, script(LOOK, step(call("refund_payments", refund))), tools=UNREPEATABLE
    ) as stage:
        await lost(stage)
        approval = await stage.approval()
        await stage.marta.slash("/approvals")
        mine = (await stage.told(stage.marta, 2))[1]
        assert "nobody knows whether it ran" in mine
        ana = stage.sandbox.person("U0ANA")
        await ana.slash("/approvals")
        assert "Nothing waits for your approval." in (await stage.told(ana))[0]
        await stage.marta.slash("/approvals", f"show {approval.id}")
        await stage.told(stage.marta, 3)
        assert stage.marta.buttons(stage.marta.ephemerals[-1]) == QUESTION

    async def said(*words: str) -> str:
        return (await answered(*words, DATABASE_URL=database.url)).out

    listed = await said("approvals", "list")
    assert f"Nobody knows whether {approval.id} ran: `vistobueno approvals show {approval.id}`" in listed
    for shown in (await said("approvals", "show", approval.id), await said("runs", "show", approval.run_id)):
        assert "Nobody knows whether it ran: refund_payments broke off" in shown
        assert f"under the key {approval.id}." in shown
        assert "then say it on its card in Slack: It ran, It did not run, and until" in shown
    assert (await said("runs", "cancel", approval.run_id)).splitlines() == [
        f"{approval.run_id} is cancelled",
        f"Nobody knows whether {approval.id} ran: `vistobueno approvals show {approval.id}` says what to do.",
    ]


async def settlements(stage: Stage) -> list[str]:
    """The kinds of recorded settlements of the newest approval."""
    (newest,) = await approvals.listed(stage.db, open_only=False, limit=1)
    events = await audit.of(stage.db, newest.id)
    return [event.kind for event in events if event.kind in {"call.settled", "call.tried_again"}]
