"""A click on a card: who decides, once, whatever is pressed, and what everybody is told."""

import json
from typing import Any

import pytest

from bot.sandbox import Fault
from store import audit, directory
from store.errors import DatabaseUnavailable
from tests.acceptance.scripts import ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import Stage, eventually, staged
from tests.acceptance.test_http import post, signed
from tests.databases import Database


async def test_a_click_of_marta_refunds_every_payment_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38
        assert {refund.payment_id for refund in stage.provider.refunds} == set(
            (await stage.approval()).shown.items
        )


async def test_a_double_click_on_two_processes_is_one_decision_and_two_sentences(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), processes=2) as stage:
        asked = await stage.ask()
        card = await stage.card()
        clicks = await stage.marta.clicks(card, "Approve", times=2, to=[0, 1])
        assert [click.status for click in clicks] == [200, 200]
        told = await stage.told(stage.marta, 2)
        assert len(told) == len(set(told)) == 2
        await stage.said(asked, "That is all.")
        assert await decisions(stage) == ["approval.approved"]
        assert len(stage.provider.refunds) == 38


async def test_one_click_delivered_often_and_to_two_processes_is_told_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, processes=2) as stage:
        await stage.ask()
        request = stage.marta.prepare_click(await stage.card(), "Approve")
        answers = await stage.sandbox.send_identical(request, times=20, to=[0, 1])
        assert {answer.status for answer in answers} == {200}
        await stage.told(stage.marta)
        for process in stage.processes:
            await process.app.bot.tasks.drain(10)
        assert len(stage.marta.ephemerals) == 1


async def test_the_buttons_are_gone_once_it_is_decided(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")
        await stage.sandbox.until(lambda: stage.marta.buttons(card.ts) == [])


@pytest.mark.parametrize(
    ("who", "why"), [("stranger", "stranger"), ("guest", "guest"), ("bot", "bot"), ("deactivated", "deleted")]
)
async def test_whoever_is_no_colleague_is_refused_privately_and_on_the_record(
    database: Database, monkeypatch: pytest.MonkeyPatch, who: str, why: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        person = stage.sandbox.add_person("U0OTHER", "Otto", team_id="T0OTHER" if who == "stranger" else "")
        user = stage.sandbox.workspace.users["U0OTHER"]
        user.is_restricted, user.is_bot = who == "guest", who == "bot"
        click = person.prepare_click(card, "Approve")
        user.deleted = who == "deactivated"
        [answer] = await stage.sandbox.send_identical(click, times=1)
        assert answer.status == 200
        events = await eventually(lambda: refused_clicks(stage))
        assert events == [why]
        assert (await stage.approval()).status.value == "pending"


async def test_a_colleague_without_a_role_is_told_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await stage.leo.click(card, "Approve")
        assert len(await stage.told(stage.leo)) == 1
        assert (await stage.approval()).status.value == "pending"


async def test_a_made_up_id_changes_nothing_and_is_answered(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        forged = (await stage.card()).snapshot()
        for block in forged.blocks:
            for element in block.get("elements", []):
                if "value" in element:
                    element["value"] = "apr_made_up:1"
        click = await stage.marta.click(forged, "Approve")
        assert click.status == 200
        assert len(await stage.told(stage.marta)) == 1
        assert (await stage.approval()).status.value == "pending"


async def test_the_first_card_is_refused_once_another_took_its_place(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        old = card.snapshot()
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")
        before = len(stage.marta.ephemerals)
        assert (await stage.marta.click(old, "Approve")).status == 200
        await stage.told(stage.marta, before + 1)
        assert len(stage.provider.refunds) == 38


@pytest.mark.parametrize("fault", [Fault.hang(), Fault.http(500)], ids=["slow", "broken"])
async def test_a_directory_that_gives_no_answer_asks_to_press_again_and_the_next_press_works(
    database: Database, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        await stage.directory_is_stale("U0MARTA")
        stage.sandbox.faults.add("users.info", fault, times=1)
        click = await stage.marta.click(card, "Approve")
        assert click.acked
        assert "press again" in (await stage.told(stage.marta))[0]
        assert (await stage.approval()).status.value == "pending"
        await eventually(lambda: _pressed(stage))
        await stage.said(asked, "That is all.")


async def test_a_deactivated_approver_decides_no_more_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await stage.marta.slash("/approvals")  # the directory knows her now
        click = stage.marta.prepare_click(card, "Approve")
        await stage.sandbox.admin.deactivate("U0MARTA")
        await stage.sandbox.send_identical(click, times=1)
        assert await eventually(lambda: refused_clicks(stage)) == ["deleted"]


async def test_a_change_that_is_told_again_does_not_undo_a_newer_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await stage.marta.slash("/approvals")  # the directory knows her now
        assert await hear(stage, 20, is_restricted=True) == 200
        assert await hear(stage, 10) == 200  # from before, delivered again
        await stage.marta.click(card, "Approve")
        assert await eventually(lambda: refused_clicks(stage)) == ["guest"]
        assert (await stage.approval()).status.value == "pending"


async def test_a_change_that_gives_a_right_back_counts_once_slack_says_so_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        assert await hear(stage, 10, deleted=True) == 200
        await stage.marta.click(card.snapshot(), "Approve")
        assert await eventually(lambda: refused_clicks(stage)) == ["deleted"]
        assert await hear(stage, 20) == 200
        stage.sandbox.workspace.users["U0MARTA"].is_restricted = True
        await stage.marta.click(card.snapshot(), "Approve")
        assert await eventually(lambda: refused_clicks(stage, 2)) == ["deleted", "guest"]
        stage.sandbox.workspace.users["U0MARTA"].is_restricted = False
        assert await hear(stage, 30) == 200
        await stage.marta.click(card.snapshot(), "Approve")
        await stage.said(asked, "That is all.")


@pytest.mark.parametrize("fields", [{"team_id": "T0OTHER", "profile": {}}, {"event_ts": None}])
async def test_a_change_of_another_workspace_or_without_a_time_is_only_looked_into(
    database: Database, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        await stage.marta.slash("/approvals")
        assert await hear(stage, 10, name="evil", real_name="Evil", is_restricted=True, **fields) == 200
        row = await directory.read_user(stage.db, "T0SHOP", "U0MARTA")
        assert row is not None
        assert (row.name, row.restricted, row.stranger, row.unconfirmed) == ("Marta", False, False, True)
        assert await directory.read_user(stage.db, "T0OTHER", "U0MARTA") is None
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "That is all.")


async def hear(stage: Stage, at: int, *, event_ts: str | None = "", **fields: Any) -> int:
    """Slack tells, at some second, who Marta is; the status it gets."""
    user = {
        "id": "U0MARTA",
        "team_id": "T0SHOP",
        "name": "marta",
        "real_name": "Marta",
        "profile": {},
        **fields,
    }
    event = {"type": "user_change", "user": user, "event_ts": f"{1_796_000_000 + at}.000100"}
    if event_ts is None:
        del event["event_ts"]
    body = json.dumps({"type": "event_callback", "team_id": "T0SHOP", "event_id": f"Ev{at}", "event": event})
    return await post(stage, body.encode(), signed(stage, body.encode()))


async def _pressed(stage: Stage) -> bool:
    await stage.marta.click(stage.cards[0].snapshot(), "Approve")
    return (await stage.approval()).status.value != "pending"


async def test_without_a_database_a_click_is_answered_and_nothing_is_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        unreachable(stage, monkeypatch)
        click = await stage.marta.click(card, "Approve")
        assert click.status == 200
        assert "nothing was recorded" in (await stage.told(stage.marta))[0]
        assert (await stage.approval()).status.value == "pending"


async def test_without_a_database_an_event_is_refused_so_that_slack_sends_it_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        with monkeypatch.context() as without:
            unreachable(stage, without)
            await stage.ask()
            await stage.sandbox.until(lambda: any(d.status == 500 for d in stage.sandbox.deliveries))
        await stage.card()


def unreachable(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The click path finds no database."""

    async def refuse(*_: object) -> None:
        raise DatabaseUnavailable("PostgreSQL cannot be reached.")

    for process in stage.processes:
        clicks = process.app.bot.clicks.db
        monkeypatch.setattr(clicks, "query", refuse)
        monkeypatch.setattr(clicks, "one", refuse)


async def decisions(stage: Stage) -> list[str]:
    """The kinds of recorded decisions of the newest run."""
    events = await audit.of(stage.db, (await stage.run()).id)
    return [e.kind for e in events if e.kind in {"approval.voted", "approval.approved", "approval.rejected"}]


async def refused_clicks(stage: Stage, count: int = 1) -> list[str]:
    """Why clicks on the newest approval were refused, once there are so many."""
    events = await audit.of(stage.db, (await stage.approval()).id)
    refused = [event.data["why"] for event in events if event.kind == "click.refused"]
    return refused if len(refused) >= count else []
