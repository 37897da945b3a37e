"""A batch that fails in the middle: everybody reads what went through, and the rest is done once."""

import json

import pytest

from agent.scripted import Asked, call, expect_results, script, step
from store import approvals, audit
from store.transitions import ApprovalStatus
from tests.acceptance.commands import answered
from tests.acceptance.scripts import LAST_WORDS, LOOK, refund
from tests.acceptance.stage import Stage, staged
from tests.databases import Database

SAID = "the provider refused to refund {}: the card is closed"


def refund_the_rest(asked: Asked) -> dict[str, object]:
    """What the failed call says was not done."""
    rest = asked.result_of("refund_payments")["itemsNotDone"]
    return {"payment_ids": rest, "reason": "the charge failed"}


FAILED = step(call("refund_payments", refund_the_rest), expect=expect_results(1))
TWICE = script(LOOK, step(call("refund_payments", refund), expect=expect_results(1)), FAILED, LAST_WORDS)


async def test_a_batch_that_fails_in_the_middle_says_what_went_through_and_the_next_does_the_rest(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, TWICE) as stage:
        asked = await stage.ask()
        first = await stage.card("Refund 38 payments")
        in_order = [row["id"] for row in await stage.db.query(IN_ORDER)]
        closed = in_order[20]
        stage.provider.refused_payments.add(closed)
        await stage.marta.click(first, "Approve")
        card = await stage.shows(first, "20 went through")
        assert SAID.format(closed) in card
        second = await stage.card("Refund 18 payments")
        await says_what_went_through(stage, database, in_order[:20], closed)
        stage.provider.refused_payments.clear()
        await stage.marta.click(second, "Approve")
        await stage.said(asked, "That is all.")
        assert sorted(refund.payment_id for refund in stage.provider.refunds) == sorted(in_order)
        assert (await audit.verify(stage.db)).broken == ()


IN_ORDER = "SELECT id FROM shop.payments WHERE status = 'failed' ORDER BY charged_at, id"


async def says_what_went_through(stage: Stage, database: Database, done: list[str], closed: str) -> None:
    """Model, record and commands have the same twenty."""
    [result] = stage.model.requests[-1].messages[-1]["content"]
    told = json.loads(result["content"])
    assert result["is_error"] is True
    assert (told["itemsDone"], len(told["itemsNotDone"]), told["partial"]) == (done, 18, True)
    assert told["error"] == SAID.format(closed)
    run = await stage.run()
    [failed] = [event for event in await audit.of(stage.db, run.id) if event.kind == "call.failed"]
    assert failed.data["done"] == done
    shown = await answered("runs", "show", run.id, DATABASE_URL=database.url)
    assert "20 of 38" in shown.out
    asked = await approvals.of_run(stage.db, run.id)
    [approval_id] = [a.id for a in asked if a.status is ApprovalStatus.FAILED]
    shown = await answered("approvals", "show", approval_id, DATABASE_URL=database.url)
    assert f"20 of 38: {done[0]}, {done[1]}" in shown.out
