"""/approvals cancel: the requester or an approver stops a run, is answered, and everybody sees it."""

import pytest

from store.transitions import ApprovalStatus, RunStatus
from tests.acceptance.scripts import NOTHING, ONLY_ASK
from tests.acceptance.stage import Stage, eventually, staged
from tests.databases import Database


async def answer(stage: Stage, user: str, typed: str) -> str:
    """What the person reads who typed it, within the time that Slack gives."""
    person = stage.sandbox.person(user)
    before = len(person.ephemerals)
    delivery = await person.slash("/approvals", typed)
    assert delivery.acked
    return (await stage.told(person, before + 1))[before]


@pytest.mark.parametrize("user", ["U0LEO", "U0MARTA"])
@pytest.mark.parametrize("named", ["approval", "run"])
async def test_the_requester_and_an_approver_stop_a_run_by_its_id_or_its_approvals(
    database: Database, monkeypatch: pytest.MonkeyPatch, user: str, named: str
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        old, approval = card.snapshot(), await stage.approval()
        who = "Leo" if user == "U0LEO" else "Marta (support_lead)"
        subject = approval.id if named == "approval" else approval.run_id
        said = await answer(stage, user, f"cancel {subject}")
        assert said == "Stopped: what waited of “please refund the failed payments” does not run any more."
        assert "Cancelled" in await stage.shows(card, f"the run was stopped by {who}")
        assert stage.marta.buttons(card.ts) == []
        await stage.said(asked, f"This run was stopped by {who}.")
        await stage.said(asked, f"Stopped by {who}.")
        assert (await stage.run()).status is RunStatus.CANCELLED
        told = len(stage.marta.ephemerals)
        await stage.marta.click(old, "Approve")
        assert f"The run was stopped by {who}" in (await stage.told(stage.marta, told + 1))[-1]
        again = await answer(stage, user, f"cancel {subject}")
        assert again.startswith(f"This has ended already (cancelled by {who} 20")
        assert again.endswith("), so there is nothing to stop.")
        assert stage.provider.requests == 0


async def test_what_is_not_ones_own_not_there_or_not_named_is_not_stopped(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        approval = await stage.approval()
        stage.sandbox.add_person("U0NORA", "Nora")
        said = await answer(stage, "U0NORA", f"cancel {approval.id}")
        assert said == "Only Leo or support_lead, admin may stop this, so nothing was stopped."
        assert "There is no approval and no run “apr_x”" in await answer(stage, "U0LEO", "cancel apr_x")
        assert "/approvals cancel ID" in await answer(stage, "U0LEO", "cancel")
        assert "There is no approval and no run" in await answer(stage, "U0LEO", "cancel \0")
        assert (await stage.approval()).status is ApprovalStatus.PENDING


async def test_what_is_already_running_is_let_finish_and_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        await stage.approve_and_hold(card)
        said = await answer(stage, "U0LEO", f"cancel {(await stage.approval()).id}")
        assert "what is already running is let finish" in said
        stage.provider.release()
        await stage.shows(card, "Done")

        async def executed() -> bool:
            return (await stage.approval()).status is ApprovalStatus.EXECUTED

        await eventually(executed)
        await stage.said(asked, "This run was stopped by Leo.")
        run, approval = await stage.run(), await stage.approval()
        assert run.status is RunStatus.CANCELLED
        assert len(stage.provider.refunds) == 38
        assert "ended already (executed), so" in await answer(stage, "U0MARTA", f"cancel {approval.id}")
        assert "ended already (cancelled by Leo " in await answer(stage, "U0MARTA", f"cancel {run.id}")


async def test_a_guest_stops_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING) as stage:
        stage.sandbox.add_person("U0GUEST", "Gus")
        stage.sandbox.workspace.users["U0GUEST"].is_restricted = True
        assert "full members" in await answer(stage, "U0GUEST", "cancel run_x")
