"""The model misbehaves, insists, or the house changes: what people see of it in Slack, over the whole app."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.scripted import call, expect_results, say, script, step
from bot.sandbox import Message
from store.transitions import ApprovalStatus, RunStatus
from tests.acceptance.commands import vistobueno
from tests.acceptance.crowds import changed_policy
from tests.acceptance.scripts import LAST_WORDS, LOOK, ask_for_refunds, refund, refund_two
from tests.acceptance.stage import DEADLINE_SECONDS, SUPPORT, Stage, process_of, staged
from tests.databases import Database
from tests.integration.store.rows import execute, shift_clock

WAIT = {"timeout": DEADLINE_SECONDS}
REFUND = call("refund_payments", refund)


def thread(stage: Stage, asked: Message) -> list[str]:
    """What the bot has said under a message."""
    return [stage.marta.read(m) for m in stage.sandbox.channel(SUPPORT).thread(asked.ts)[1:]]


async def line(stage: Stage, asked: Message, words: str) -> None:
    """Wait until the first message of the answer has these words."""
    await stage.sandbox.until(lambda: words in "".join(thread(stage, asked)[:1]), **WAIT)


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_a_busy_model_is_waited_for_without_a_lease_and_the_thread_says_until_when(
    database: Database, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        stage.model.fail_next(status, retry_after=600)
        asked = await stage.ask()
        await line(stage, asked, "Something is in the way; trying again ")
        held = execute(database.owner_url, "SELECT status::text, token, lease_until FROM runs")
        assert held == [("queued", None, None)]
        shift_clock(database, "601 seconds")
        await stage.marta.click(await stage.card(), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


async def test_a_run_that_fails_after_its_refunds_says_why_and_its_retry_repeats_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card()
        stage.model.fail_next(401)
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "I could not finish: The model refused (401): ")
        told = thread(stage, asked)[-1]
        assert "What ran before stays as it is and is not repeated." in told
        retry = re.search(r"vistobueno (runs retry run_\w+)$", told)
        assert retry is not None, told
        await line(stage, asked, "Stopped: this run could not be finished.")
        ended = vistobueno(*retry[1].split(), **environ(stage))
        assert (ended.code, ended.err) == (0, "")
        await stage.said(asked, "That is all.")
        assert (stage.provider.requests, len(stage.provider.refunds)) == (38, 38)
        assert (await stage.run()).status is RunStatus.COMPLETED


def environ(stage: Stage) -> dict[str, str]:
    """What a command on the stage's database needs."""
    return {
        "DATABASE_URL": stage.settings.database_url or "",
        "SLACK_BOT_TOKEN": stage.settings.slack_bot_token or "",
        "SLACK_SIGNING_SECRET": stage.settings.slack_signing_secret or "",
        "ANTHROPIC_API_KEY": "test",
        "VISTOBUENO_POLICY": stage.settings.policy,
    }


INSISTS = script(
    LOOK,
    step(REFUND),
    step(call("refund_payments", refund_two)),
    step(REFUND, call("search_payments", {"status": "failed", "limit": 5})),
    step(call("refund_payments", {"payment_ids": ["pay_001"], "reason": "just one"})),
    step(say("I wanted to refund them, and Marta refused."), expect=expect_results(1)),
)


async def test_a_model_that_insists_after_a_refusal_is_heard_three_times_and_then_explains_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, INSISTS) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card(), "Reject")
        await stage.sandbox.until(lambda: "Reason" in stage.marta.read(stage.marta.view), **WAIT)
        await stage.marta.fill({"Reason": "Not on a Sunday"}).submit()
        await stage.said(asked, "I wanted to refund them, and Marta refused.")
        assert [exchange.closing for exchange in stage.model.requests] == [False] * 5 + [True]
        assert (len(stage.cards), stage.provider.requests) == (1, 0)


async def test_a_card_of_an_older_release_says_that_it_is_no_longer_valid_and_the_agent_asks_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = ask_for_refunds(step(REFUND, expect=expect_results(_taken_back)), LAST_WORDS)
    async with staged(database, monkeypatch, again, processes=0) as stage:
        async with process_of(stage.settings, work=True) as before:
            stage.sandbox.connect(before.url)
            asked = await stage.ask()
            old = await stage.card("38 payments")
            still_shown = old.snapshot()
        newer = replace(stage.settings, tools="tests.acceptance.newer:TOOLS")
        async with process_of(newer, work=True) as after:
            stage.sandbox.connect(after.url)
            shown = await stage.shows(
                old, "No longer valid: refund_payments has changed since this was asked."
            )
            assert "Nothing ran." in shown and stage.marta.buttons(old.ts) == []
            new = await stage.card("38 payments", besides=old)
            await stage.marta.click(still_shown, "Approve")
            assert "no longer valid, and nothing of it ran" in (await stage.told(stage.marta))[0]
            assert stage.provider.requests == 0
            await stage.marta.click(new, "Approve")
            await stage.said(asked, "That is all.")
            assert len(stage.provider.refunds) == 38
        assert (await stage.approval()).status is ApprovalStatus.EXECUTED


STRICTER = {"quorum = 1 ": "quorum = 2 ", 'users = ["U0MARTA"]': 'users = ["U0MARTA", "U0EVA"]'}
HOUSES = {
    "the tool is gone": (
        "tests.acceptance.newer:WITHOUT_REFUNDS",
        {"[tools.refund_payments] ": "[tools.send_email] "},
        "There is no tool refund_payments any more.",
    ),
    "two must approve": (
        "agent.tools:TOOLS",
        STRICTER,
        "The policy for refund_payments is stricter now than when this was asked.",
    ),
}


@pytest.mark.parametrize("change", HOUSES)
async def test_a_card_that_cannot_run_any_more_says_why_and_a_click_on_it_is_told_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    tools, policy, why = HOUSES[change]
    gone = ask_for_refunds(step(say("I can't refund any more."), expect=expect_results(_taken_back)))
    async with staged(database, monkeypatch, gone, processes=0) as stage:
        async with process_of(stage.settings, work=True) as before:
            stage.sandbox.connect(before.url)
            asked = await stage.ask()
            card = await stage.card("38 payments")
            still_shown = card.snapshot()
        now = replace(stage.settings, tools=tools, policy=str(changed_policy(tmp_path, policy)))
        async with process_of(now, work=True) as after:
            stage.sandbox.connect(after.url)
            await stage.shows(card, f"No longer valid: {why}")
            await stage.said(asked, "I can't refund any more.")
            told = f"no longer valid, and nothing of it ran: {why}"
            await stage.marta.click(still_shown, "Approve")
            assert told in (await stage.told(stage.marta))[0]
            await stage.marta.click(still_shown, "Edit")
            await stage.sandbox.until(lambda: told in stage.marta.read(stage.marta.view), **WAIT)
        assert (await stage.approval()).status is ApprovalStatus.SUPERSEDED
        assert stage.provider.requests == 0


def _taken_back(results: list[object]) -> bool:
    [told] = results
    return isinstance(told, dict) and bool(told["superseded"]) and told["executed"] is False
