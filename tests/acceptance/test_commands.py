"""/approvals and App Home: the same truth as the cards, for those who may see it."""

import pytest

from tests.acceptance.scripts import NOTHING, ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import staged
from tests.databases import Database


async def test_mine_lists_what_waits_for_the_person(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        await stage.marta.slash("/approvals")
        assert "Refund 38 payments" in (await stage.told(stage.marta))[0]


async def test_somebody_without_a_role_sees_in_all_only_what_they_asked_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        nora = stage.sandbox.add_person("U0NORA", "Nora")
        for person in (stage.leo, nora):
            await person.slash("/approvals", "all")
        told = (await stage.told(stage.leo))[0]
        assert "Refund 38 payments" in told
        assert "1 approval waits for somebody." in told
        assert "Refund 38 payments" not in (await stage.told(nora))[0]


async def test_show_is_a_card_that_can_be_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await stage.card()
        await stage.marta.slash("/approvals", f"show {(await stage.approval()).id}")
        await stage.told(stage.marta)
        await stage.marta.click(stage.marta.ephemerals[0], "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("help", "/approvals all"),
        ("dance", "I do not know “dance”"),
        ("show", "Say which one: /approvals show ID, with the id in the last line of the card."),
        ("show payload", "There is no approval “payload” that you may see."),
    ],
)
async def test_help_and_what_is_not_understood_are_answered(
    database: Database, monkeypatch: pytest.MonkeyPatch, typed: str, words: str
) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        delivery = await stage.marta.slash("/approvals", typed)
        assert delivery.acked
        assert words in (await stage.told(stage.marta))[0]


async def test_home_lists_what_waits_and_its_buttons_work(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        await stage.marta.open_home()
        await stage.sandbox.until(lambda: stage.marta.home is not None)
        assert stage.marta.home is not None
        assert "Refund 38 payments" in stage.marta.read(stage.marta.home)
