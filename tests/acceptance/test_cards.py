"""Cards match their rows: lost posts, refused blocks and deleted messages heal by themselves."""

import pytest

from bot.sandbox import Fault
from store import approvals, cards
from store.records import Card
from tests.acceptance.scripts import ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import APPROVALS, Stage, eventually, staged
from tests.databases import Database


async def test_a_card_that_is_deleted_is_posted_again_when_it_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        click = stage.marta.prepare_click(card, "Approve")
        stage.sandbox.admin.delete_message(APPROVALS, card.ts)
        await stage.sandbox.send_identical(click, times=1)
        await stage.said(asked, "That is all.")
        await stage.sandbox.until(lambda: len(stage.cards) == 1 and stage.marta.buttons(stage.cards[0]) == [])
        assert stage.cards[0].ts != card.ts


@pytest.mark.parametrize("code", ["invalid_blocks", "invalid_attachments"])
@pytest.mark.parametrize("times", [1, 2])
async def test_refused_blocks_become_a_plainer_card_that_can_be_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch, code: str, times: int
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await stage.said(asked, "Waiting for approval")
        card = await stage.card()
        stage.sandbox.admin.delete_message(APPROVALS, card.ts)
        stage.sandbox.faults.add("chat.postMessage", Fault.error(code), times=times)
        await lose_card(stage)
        again = await stage.card("38 payments")
        assert again.ts != card.ts
        assert ("table" in {block["type"] for block in again.blocks}) is False


async def test_a_channel_without_the_bot_gets_its_card_once_the_bot_is_invited(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.sandbox.admin.kick(APPROVALS)
        await stage.ask()
        await eventually(lambda: _failed(stage))
        stage.sandbox.admin.invite(APPROVALS)
        await stage.card("38 payments")


async def test_an_answer_that_was_lost_leaves_a_card_that_works(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        stage.sandbox.faults.add("chat.postMessage", Fault.drop_after(), times=2)
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


async def lose_card(stage: Stage) -> None:
    """Let the publisher find that the card is gone."""
    card = await eventually(lambda: _recorded(stage))
    await stage.db.query(
        "UPDATE cards SET ts = NULL, shown_version = 0 WHERE id = %s", [card.id if card else None]
    )
    stage.processes[0].app.bot.publishing.call()


async def _recorded(stage: Stage) -> Card | None:
    """The card, once the database knows where it is."""
    found = await cards.of_approval(stage.db, (await stage.approval()).id)
    return next((card for card in found if card.ts is not None), None)


async def _failed(stage: Stage) -> bool:
    waiting = await cards.of_approval(stage.db, (await stage.approval()).id) if await _asked(stage) else []
    return any(card.failures > 0 for card in waiting)


async def _asked(stage: Stage) -> bool:
    return bool(await approvals.listed(stage.db, open_only=True, limit=1))
