"""Two runs want the same payments: each is refunded once, and the second call learns that the world moved."""

import asyncio
from pathlib import Path

import pytest

from agent.scripted import Asked, Script, call, expect_results, say, script, step
from agent.tools.shop.provider import Fault
from bot.sandbox import Message
from store import audit, runs
from store.transitions import RunStatus
from tests.acceptance.children import child, web_apart
from tests.acceptance.crowds import crowd, crowd_policy
from tests.acceptance.scripts import LOOK, refund
from tests.acceptance.stage import DEADLINE_SECONDS, Stage, eventually, process_of, staged
from tests.databases import Database
from tests.integration.store.rows import shift_clock

WARNING = "38 of these items also wait in another approval"
REFUNDED, MOVED = "All are refunded.", "The world moved, so nothing of mine ran."
SMALL = "pay_0027"  # worth so little that nobody is asked


def what_came(asked: Asked) -> str:
    """Say what the last result says; anything else than done or moved is an error in the script."""
    [result] = asked.results
    if result["executed"]:
        return REFUNDED
    assert result["superseded"] and result["moved"], result
    return MOVED


END = step(say(what_came), expect=expect_results(1))


def batch() -> Script:
    """Each conversation proposes all that failed."""
    return script(LOOK, step(call("refund_payments", refund)), END, when=lambda text: "failed" in text)


def single() -> Script:
    """One payment that nobody is asked about."""
    input = {"payment_ids": [SMALL], "reason": "the charge failed"}
    return script(step(call("refund_payments", input)), END, when=lambda text: "small" in text)


async def two_cards(stage: Stage) -> tuple[list[Message], list[Message]]:
    """Two runs ask for the same; gives what Leo wrote, and the cards."""
    first = await stage.ask()
    card = await stage.card("38 payments")
    second = await stage.ask()
    return [first, second], [card, await stage.card("38 payments", besides=card)]


async def answers(stage: Stage, asked: list[Message]) -> list[str]:
    """How the runs of these messages ended, in order, once they have all ended."""

    async def ended() -> list[str]:
        found = await runs.listed(stage.db, unfinished_only=False, limit=10)
        assert len(found) == len(asked)
        done = all(run.status is RunStatus.COMPLETED for run in found)
        return [run.answer or "" for run in reversed(found)] if done else []

    return await eventually(ended)


async def assert_once(stage: Stage, count: int = 38) -> None:
    """So many payments are refunded, each once; nothing is held any more; the record holds."""
    refunded = [refund.payment_id for refund in stage.provider.refunds]
    assert (len(refunded), len(set(refunded))) == (count, count)
    assert await stage.db.query("SELECT item FROM held_items") == []
    assert (await audit.verify(stage.db)).broken == ()


async def test_both_cards_warn_and_the_one_approved_first_is_refunded_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, batch()) as stage:
        asked, cards = await two_cards(stage)
        for card in cards:
            await stage.shows(card, WARNING)
        for card in reversed(cards):
            await stage.marta.click(card, "Approve")
        assert sorted(await answers(stage, asked)) == [REFUNDED, MOVED]
        await assert_once(stage)


async def warns(stage: Stage, card: Message, others: int) -> None:
    """Wait until a card says that so many of its items also wait elsewhere; 0: that none does."""
    said = f"{others} of these items also wait"

    def does() -> bool:
        text = stage.marta.read(card.ts)
        return said in text if others else "also wait" not in text

    await stage.sandbox.until(does, timeout=DEADLINE_SECONDS)


async def opened(stage: Stage, words: str) -> None:
    """Wait until Marta sees a window with these words."""
    marta = stage.marta
    await stage.sandbox.until(
        lambda: bool(marta.views) and words in marta.read(marta.view), timeout=DEADLINE_SECONDS
    )


async def test_a_card_warns_for_as_long_as_its_items_wait_elsewhere_also_after_an_edit(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = crowd_policy(tmp_path, 1, quorum=2)
    async with staged(database, monkeypatch, batch(), policy=policy) as stage:
        [other] = await crowd(stage, 1)
        _, (first, second) = await two_cards(stage)
        await warns(stage, first, 38)
        await stage.marta.click(second, "Edit")
        await opened(stage, "38 payments")
        three = (await stage.approval()).shown.items[:3]
        await stage.marta.fill({"Payments": "\n".join(three)}).submit()
        await opened(stage, "Refund 3 payments")
        await stage.marta.submit()
        await stage.shows(second, "Refund 3 payments")
        for card in (first, second):
            await warns(stage, card, 3)
        await other.click(second, "Reject")
        await stage.sandbox.until(lambda: other.views, timeout=DEADLINE_SECONDS)
        await other.fill({"Reason": "Not these"}).submit()
        await warns(stage, first, 0)


async def test_both_approved_at_once_under_two_workers_refund_each_payment_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        staged(database, monkeypatch, batch(), processes=2) as stage,
        process_of(stage.settings, work=True),
    ):
        asked, cards = await two_cards(stage)
        await asyncio.gather(*(stage.marta.click(card, "Approve") for card in cards))
        assert sorted(await answers(stage, asked)) == [REFUNDED, MOVED]
        await assert_once(stage)


async def test_a_call_that_asks_nobody_waits_for_the_approved_one_and_learns_that_the_world_moved(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, batch(), single()) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        await stage.approve_and_hold(card)
        small = await stage.ask("the small one, please")
        await eventually(lambda: allowed_and_waiting(stage))
        stage.provider.release()
        assert await answers(stage, [asked, small]) == [REFUNDED, MOVED]
        await assert_once(stage)


async def test_an_approved_call_waits_for_the_one_that_asks_nobody_and_learns_that_the_world_moved(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, batch(), single()) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        stage.provider.plan(Fault.HELD_ANSWER)
        small = await stage.ask("the small one, please")
        async with asyncio.timeout(DEADLINE_SECONDS):
            await stage.provider.holding.wait()
        await stage.marta.click(card, "Approve")
        await stage.told(stage.marta)
        assert (await stage.approval()).status.value == "approved"
        stage.provider.release()
        assert await answers(stage, [asked, small]) == [MOVED, REFUNDED]
        await assert_once(stage, 1)


async def test_when_the_first_one_s_worker_dies_both_come_to_their_end_all_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, batch()) as stage:
        async with child(stage, "worker") as first:
            asked, cards = await two_cards(stage)
            await stage.approve_and_hold(cards[0], after=20)
            await stage.marta.click(cards[1], "Approve")
            await stage.told(stage.marta, 2)
            await first.kill()
        shift_clock(database, "16 seconds")  # the dead worker's lease is over
        async with child(stage, "worker"):
            assert await answers(stage, asked) == [REFUNDED, MOVED]
        await assert_once(stage)


async def allowed_and_waiting(stage: Stage) -> bool:
    """Whether an allowed call waits for its item, with its run back in the queue."""
    found = await stage.db.query(
        """SELECT FROM runs r JOIN calls c ON c.run_id = r.id
  WHERE r.status = 'queued' AND r.not_before IS NOT NULL AND c.status = 'allowed' AND c.attempts = 0"""
    )
    return bool(found)
