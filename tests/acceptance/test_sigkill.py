"""Processes die by SIGKILL and others go on: they share only the database, and every effect happens once."""

import pytest

from store.transitions import ApprovalStatus
from tests.acceptance.children import assert_whole, child, web_apart
from tests.acceptance.scripts import ask_for_refunds
from tests.acceptance.stage import Stage, staged
from tests.databases import Database
from tests.integration.store.rows import shift_clock

WHOLE = [
    "user: text",
    "assistant: tool_use",
    "user: tool_result",
    "assistant: tool_use",
    "user: tool_result",
]


async def test_a_killed_process_s_run_is_decided_and_ended_by_another(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = {"DATABASE_OWNER_URL": database.owner_url}
    async with staged(database, monkeypatch, ask_for_refunds(), processes=0) as stage:
        async with child(stage, "dev", **owner) as first:
            stage.sandbox.connect(first.url)
            asked = await stage.ask()
            card = await stage.card("38 payments")
            await first.kill()
        async with child(stage, "dev", **owner) as second:
            stage.sandbox.connect(second.url)
            click = await stage.marta.click(card, "Approve")
            assert click.acked
            await stage.said(asked, "That is all.")
            await no_buttons(stage)
        await assert_whole(stage, WHOLE)
        assert (await stage.run()).answer == "That is all."


async def test_a_worker_killed_while_it_refunds_is_followed_by_one_that_repeats_with_the_same_keys(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage:
        async with child(stage, "worker") as first:
            asked = await stage.ask()
            card = await stage.card("38 payments")
            await stage.approve_and_hold(card, after=20)
            await first.kill()
        assert len(stage.provider.refunds) == 21
        shift_clock(database, "16 seconds")  # the dead worker's lease is over
        async with child(stage, "worker"):
            await stage.said(asked, "That is all.")
            await no_buttons(stage)
        await assert_whole(stage, WHOLE)
        assert stage.provider.requests > 38
        assert (await stage.approval()).status is ApprovalStatus.EXECUTED


async def test_a_worker_killed_while_the_model_thinks_costs_no_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage:
        stage.model.hold()
        async with child(stage, "worker") as first:
            asked = await stage.ask()
            await stage.model.asked()
            await first.kill()
        await stage.model.release()
        shift_clock(database, "16 seconds")
        async with child(stage, "worker"):
            await stage.marta.click(await stage.card("38 payments"), "Approve")
            await stage.said(asked, "That is all.")
        await assert_whole(stage, WHOLE)


async def no_buttons(stage: Stage) -> None:
    """Wait until no copy of a card can be pressed any more."""
    await stage.sandbox.until(lambda: not any(stage.marta.buttons(card) for card in stage.cards), timeout=30)
