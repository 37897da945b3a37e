"""What people see and do while an approval waits: edit it, list it, write in its thread, or let it expire."""

import json
from functools import partial

import pytest

from agent.scripted import call, expect_results, expect_text, say, script, step
from agent.tools.shop.seed import fail_three_overnight
from bot.sandbox import Channel, Person
from store.transitions import ApprovalStatus
from tests.acceptance.scripts import LOOK, ONLY_ASK, ask_for_refunds, refund, refund_two
from tests.acceptance.stage import DEADLINE_SECONDS, SUPPORT, staged
from tests.databases import Database
from tests.integration.store.rows import shift_clock

WAIT = {"timeout": DEADLINE_SECONDS}


async def test_an_edit_is_checked_then_shown_beside_what_it_replaces_then_runs_exactly_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = expect_results(lambda r: r[0]["edited"] and r[0]["executedInput"]["payment_ids"] == ["pay_0007"])
    edited = ask_for_refunds(step(say("I refunded the one you left in."), expect=told))
    async with staged(database, monkeypatch, edited) as stage:
        marta, asked = stage.marta, await stage.ask()
        await marta.click(await stage.card(), "Edit")
        await stage.sandbox.until(lambda: marta.views and "38 payments" in marta.read(marta.view), **WAIT)
        await marta.fill({"Payments": "pay_0007\npay_0007"}).submit()
        assert list(marta.view.errors.values()) == ["give every payment once; repeated: pay_0007"]
        answer = await marta.fill({"Payments": "pay_0007"}).submit()
        assert "Checking your changes" in json.dumps(json.loads(answer.body))
        await stage.sandbox.until(lambda: "Refund 1 payment " in marta.read(marta.view), **WAIT)
        assert "38 items · €4,120.00 → 1 item · €" in marta.read(marta.view)
        assert (await stage.approval()).revision == 1
        await marta.submit()
        assert marta.views == []
        await stage.said(asked, "I refunded the one you left in.")
        assert [refund.payment_id for refund in stage.provider.refunds] == ["pay_0007"]
        approval = await stage.approval()
        assert (approval.status, approval.revision) == (ApprovalStatus.EXECUTED, 2)


async def test_what_nobody_decides_expires_and_agent_admin_and_requester_hear_of_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = expect_results(lambda r: r[0]["expired"] and not r[0]["executed"] and not r[0].get("deniedBy"))
    expired = ask_for_refunds(step(say("Nobody decided, so nothing was refunded."), expect=heard))
    async with staged(database, monkeypatch, expired) as stage:
        asked = await stage.ask()
        card = await stage.card()
        shift_clock(database, "2 hours")
        await stage.said(asked, "Nobody decided, so nothing was refunded.")
        for user_id in ("U0ANA", "U0LEO"):
            person, dm = stage.sandbox.person(user_id), stage.sandbox.dm(user_id)
            await stage.sandbox.until(partial(reads, person, dm, "38 payments"), **WAIT)
        await stage.sandbox.until(lambda: stage.marta.buttons(card.ts) == [], **WAIT)
        assert (await stage.approval()).status is ApprovalStatus.EXPIRED
        assert stage.provider.requests == 0


async def test_approvals_lists_the_oldest_first_with_agent_tool_amount_age_and_deadline(
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
        expires = (await stage.approval()).expires_at
        shift_clock(database, "45 minutes")
        await stage.ask("only two of them")
        await stage.card("2 payments")
        await stage.marta.slash("/approvals", "all")
        [listed] = await stage.told(stage.marta)
        first, second = listed.index("Refund 38 payments"), listed.index("Refund 2 payments")
        assert first < second
        row = listed[first:second]
        for fact in ("Refund helper", "refund_payments", "€4,120.00", "45 minutes", f"{expires:%Y-%m-%d}"):
            assert fact in row, (fact, listed)


async def test_a_reply_while_one_waits_learns_what_on_whom_and_until_when_and_is_read_afterwards(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    replied = step(say("Yes, they are done."), expect=expect_text("are you done?"))
    script = ask_for_refunds(step(say("That is all.")), replied)
    async with staged(database, monkeypatch, script) as stage:
        asked = await stage.ask()
        card = await stage.card()
        await stage.leo.mention(SUPPORT, "are you done?", thread_ts=asked.ts)
        await stage.said(asked, "It waits for support_lead")
        thread = [stage.leo.read(m) for m in stage.sandbox.channel(SUPPORT).thread(asked.ts)]
        [answer] = [words for words in thread if "It waits for support_lead" in words]
        until = (await stage.approval()).expires_at
        assert "Refund 38 payments · €4,120.00" in answer
        assert f"{until:%Y-%m-%d %H:%M}" in answer
        await stage.marta.click(card, "Approve")
        await stage.said(asked, "Yes, they are done.")


async def test_it_reads_what_it_waits_for_by_now_after_the_world_moved(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    replied = step(say("Yes, they are done."), expect=expect_text("are you done?"))
    again = step(call("refund_payments", refund))
    script = ask_for_refunds(LOOK, again, step(say("That is all.")), replied)
    async with staged(database, monkeypatch, script) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        await stage.leo.mention(SUPPORT, "are you done?", thread_ts=asked.ts)
        await stage.said(asked, "decide “Refund 38 payments")
        await fail_three_overnight(database.owner_url)
        await stage.marta.click(card, "Approve")
        anew = await stage.card("41 payments")
        await stage.said(asked, "decide “Refund 41 payments")
        thread = [stage.leo.read(m) for m in stage.sandbox.channel(SUPPORT).thread(asked.ts)]
        assert not any("decide “Refund 38 payments" in words for words in thread)
        await stage.marta.click(anew, "Approve")
        await stage.said(asked, "Yes, they are done.")


def reads(person: Person, channel: Channel, words: str) -> bool:
    """Whether some message there has these words."""
    return any(words in person.read(message) for message in channel.messages)
