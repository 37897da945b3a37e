"""What must hold at the border to Slack, where no other test looks at it."""

import pytest
from starlette.routing import Route

from agent.scripted import call, say, script, step
from agent.usercode import Health, UserCode
from bot.after import AfterAnswer
from bot.sandbox import Fault
from store import approvals, runs
from store.transitions import ApprovalStatus
from tests.acceptance.scripts import LOOK, NOTHING, ONLY_ASK, ask_for_refunds, refund_two
from tests.acceptance.stage import DEADLINE_SECONDS, SUPPORT, staged
from tests.acceptance.test_clicks import unreachable
from tests.acceptance.test_http import BODY, get, post, signed
from tests.databases import Database


def hold_back_what_follows_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on only what is done before the answer is done."""

    async def nothing(_: AfterAnswer) -> None:
        pass

    monkeypatch.setattr(AfterAnswer, "begin", nothing)


async def test_a_click_is_committed_when_slack_has_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        hold_back_what_follows_an_answer(monkeypatch)
        await stage.marta.click(card, "Approve")
        assert (await stage.approval()).status is not ApprovalStatus.PENDING
        await stage.said(asked, "That is all.")


async def test_a_rejection_is_committed_when_slack_has_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked, marta = await stage.ask(), stage.marta
        await marta.click(await stage.card(), "Reject")
        await stage.sandbox.until(
            lambda: marta.views and "38 payments" in marta.read(marta.view), timeout=DEADLINE_SECONDS
        )
        hold_back_what_follows_an_answer(monkeypatch)
        await marta.fill({"Reason": "Not today"}).submit()
        assert (await stage.approval()).status is ApprovalStatus.REJECTED
        await stage.said(asked, "That is all.")


async def test_a_mention_is_committed_when_slack_has_its_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        hold_back_what_follows_an_answer(monkeypatch)
        await stage.ask()
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=2)) == 1


async def test_a_mention_that_cannot_be_stored_is_not_acknowledged(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        with monkeypatch.context() as without:
            unreachable(stage, without)
            assert await post(stage, BODY, signed(stage, BODY)) == 500
        assert await post(stage, BODY, signed(stage, BODY)) == 200


async def test_a_user_whom_slack_does_not_know_decides_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        await stage.directory_is_stale("U0MARTA")
        stage.sandbox.faults.add("users.info", Fault.error("user_not_found"), times=1)
        await stage.marta.click(card, "Approve")
        after = await stage.approval()
        assert (after.status, after.votes) == (ApprovalStatus.PENDING, ())


async def test_no_url_decides(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        http = stage.processes[0].app.http
        assert http is not None
        routes = [route for route in http.routes if isinstance(route, Route)]
        gets = {route.path for route in routes if "GET" in (route.methods or ())}
        assert gets == {"/healthz", "/readyz", "/metrics"}
        assert len(routes) == len(http.routes)
        assert (await get(stage, "/slack/events"))[0] == 405


@pytest.mark.parametrize("word", ["approve", "reject", "yes"])
async def test_no_typed_word_decides(database: Database, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        asked = await stage.ask()
        await stage.card()
        approval_id = (await stage.approval()).id
        await stage.marta.slash("/approvals", f"{word} {approval_id}")
        await stage.marta.mention(SUPPORT, f"{word} {approval_id}", thread_ts=asked.ts)
        after = await approvals.read(stage.db, approval_id)
        assert after is not None
        assert (after.status, after.votes) == (ApprovalStatus.PENDING, ())


async def test_a_card_warns_of_another_approval_that_waits_for_its_items(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = script(
        LOOK,
        step(call("refund_payments", refund_two)),
        step(say("That is all."), optional=True),
        when=lambda text: "two" in text,
    )
    async with staged(database, monkeypatch, two, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card("38 payments")
        first = await stage.approval()
        await stage.ask("only two of them")
        second = stage.marta.read(await stage.card("2 payments"))
        assert "Careful: 2 of these items also wait in another approval" in second
        assert first.id in second


async def test_readiness_names_the_tool_that_holds_up_user_code(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        stuck = Health(False, 6.0, {}, "refund_payments blocks the loop of user code since 6 s")
        monkeypatch.setattr(UserCode, "health", lambda self: stuck)
        status, body = await get(stage, "/readyz")
        assert (status, "refund_payments" in body) == (503, True)
