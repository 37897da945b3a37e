"""What went wrong elsewhere, with real HTTP, Slack's payloads and processes that come and go."""

import asyncio
from pathlib import Path

import pytest

from agent.scripted import call, expect_results, say, script, step
from agent.tools.shop.provider import Fault
from agent.tools.shop.seed import fail_three_overnight
from bot.sandbox import Fault as SlackFault
from bot.sandbox import Message
from store import approvals, audit, backlog, cards, runs
from store.transitions import ApprovalStatus
from tests.acceptance.children import child
from tests.acceptance.crowds import changed_policy, crowd, crowd_policy
from tests.acceptance.scripts import LOOK, ONLY_ASK, ask_for_refunds, refund, refund_others, refund_two
from tests.acceptance.stage import APPROVALS, DEADLINE_SECONDS, SUPPORT, Stage, eventually, process_of, staged
from tests.databases import Database
from tests.integration.store.rows import shift_clock

WAIT = {"timeout": DEADLINE_SECONDS}
TWICE = ask_for_refunds(LOOK, step(call("refund_payments", refund)), step(say("That is all."), optional=True))


async def test_c03_an_old_card_is_refused_and_points_to_the_one_that_took_its_place(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, TWICE) as stage:
        await stage.ask()
        old = await stage.card("38 payments")
        await fail_three_overnight(database.owner_url)
        still_shown = old.snapshot()
        await stage.marta.click(old, "Approve")
        new = await stage.card("41 payments")
        publisher, current = stage.processes[0].app.bot.publisher, await stage.approval()
        await eventually(lambda: publisher.links([current.id]))  # where it stands is known, too
        await stage.marta.click(still_shown, "Approve")
        told = (await stage.told(stage.marta, 2))[1]
        assert "replaced because its facts moved" in told
        assert new.ts.replace(".", "") in str(stage.marta.ephemerals[1].blocks)
        newest = await stage.approval()
        assert (newest.status, newest.votes) == (ApprovalStatus.PENDING, ())
        assert stage.provider.requests == 0


TWO_CARDS = script(
    LOOK,
    step(call("refund_payments", refund_two), call("refund_payments", refund_others)),
    step(say("One of two."), expect=expect_results(2)),
)


@pytest.mark.parametrize("first", ["Approve", "Reject"])
async def test_c04_of_two_cards_of_one_turn_each_settles_once_and_leaves_the_other_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    async with staged(database, monkeypatch, TWO_CARDS) as stage:
        asked, marta = await stage.ask(), stage.marta
        two, others = await stage.card("2 payments"), await stage.card("36 payments")
        stage.model.hold()
        if first == "Approve":
            await marta.click(two, "Approve")
            await stage.shows(two, "Done")
            assert stage.is_open(others)
            await reject(stage, others)
        else:
            await reject(stage, others)
            await stage.shows(others, "Rejected")
            assert stage.is_open(two)
            await marta.click(two, "Approve")
        await stage.shows(two, "Done")
        await stage.shows(others, "Rejected")
        await stage.model.release()
        await stage.said(asked, "One of two.")
        assert [marta.buttons(card.ts) for card in (two, others)] == [[], []]
        assert (len(stage.cards), len(stage.provider.refunds)) == (2, 2)


async def reject(stage: Stage, card: Message) -> None:
    """Marta rejects what is on a card."""
    await stage.marta.click(card, "Reject")
    await stage.sandbox.until(lambda: "Reason" in stage.marta.read(stage.marta.view), **WAIT)
    await stage.marta.fill({"Reason": "Not these"}).submit()


async def test_c06_the_second_of_two_clicks_on_two_processes_reads_who_was_first(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = crowd_policy(tmp_path, 1)
    async with staged(database, monkeypatch, ask_for_refunds(), processes=2, policy=policy) as stage:
        [second] = await crowd(stage, 1)
        asked = await stage.ask()
        card = (await stage.card()).snapshot()
        stage.provider.plan(Fault.HELD_ANSWER)
        await stage.marta.click(card, "Approve", to=0)
        await stage.provider.holding.wait()
        await second.click(card, "Approve", to=1)
        assert "Already approved by Marta" in (await stage.told(second))[0]
        stage.provider.release()
        await stage.said(asked, "That is all.")
        assert (stage.provider.requests, len(stage.provider.refunds)) == (38, 38)


async def test_c07_a_card_from_before_a_restart_works_when_it_is_the_first_thing_pressed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), processes=0) as stage:
        asked, card = await asked_before_a_restart(stage)
        async with process_of(stage.settings, work=True) as after:
            stage.sandbox.connect(after.url)
            await stage.marta.click(card, "Approve")
            assert "You approved" in (await stage.told(stage.marta))[0]
            await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38


async def test_c08_an_approve_after_the_deadline_is_refused_though_no_sweep_has_run(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, processes=0) as stage:
        _, card = await asked_before_a_restart(stage)
        shift_clock(database, "2 hours")
        async with process_of(stage.settings, work=False) as web:
            stage.sandbox.connect(web.url)
            await stage.marta.click(card, "Approve")
            assert "expired" in (await stage.told(stage.marta))[0]
        refused = await stage.approval()
        assert (refused.status, refused.votes) == (ApprovalStatus.EXPIRED, ())
        assert stage.provider.requests == 0


async def test_c09_a_reject_after_the_deadline_is_kept_as_a_late_refusal(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, processes=0) as stage:
        _, card = await asked_before_a_restart(stage)
        async with process_of(stage.settings, work=False) as web:
            stage.sandbox.connect(web.url)
            await stage.marta.click(card, "Reject")
            await stage.sandbox.until(lambda: "38 payments" in stage.marta.read(stage.marta.view), **WAIT)
            shift_clock(database, "2 hours")
            await stage.marta.fill({"Reason": "Too many"}).submit()
            assert "expired" in stage.marta.read(stage.marta.view)
            await stage.marta.close()
            await stage.marta.click(card, "Reject")
            await stage.sandbox.until(lambda: "expired" in stage.marta.read(stage.marta.view), **WAIT)
        events = await audit.of(stage.db, (await stage.approval()).id)
        assert [event.kind for event in events].count("approval.late_refusal") == 2


async def test_c14_a_person_of_another_workspace_is_refused_in_private_and_it_is_on_the_record(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        otto = stage.sandbox.add_person("U0OTTO", "Otto", channels=[APPROVALS], team_id="T0OTHER")
        await otto.click(await stage.card(), "Approve")
        assert "Only full members of this workspace" in (await stage.told(otto))[0]
        assert stage.marta.ephemerals == []
        approval = await stage.approval()
        assert (approval.status, approval.votes) == (ApprovalStatus.PENDING, ())
        [refused] = [e for e in await audit.of(stage.db, approval.id) if e.kind == "click.refused"]
        assert refused.actor is not None
        assert (refused.actor.team_id, refused.actor.user_id, refused.data["why"]) == (
            "T0OTHER",
            "U0OTTO",
            "stranger",
        )


async def test_c18_a_mention_that_was_answered_too_late_and_delivered_again_is_one_run_and_one_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ask_for_refunds()
    async with staged(database, monkeypatch, script) as stage, child(stage, "web") as web:
        stage.sandbox.connect(web.url)
        web.freeze()
        asked = await stage.ask()
        web.thaw()
        await stage.sandbox.until(
            lambda: any(d.retry_num and d.acked for d in stage.sandbox.deliveries), **WAIT
        )
        [late, *_, taken] = stage.sandbox.deliveries
        assert (late.failure, taken.payload["event_id"]) == ("http_timeout", late.payload["event_id"])
        await stage.marta.click(await stage.card(), "Approve")
        await stage.said(asked, "That is all.")
        await web.stop()
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=5)) == 1
        said = [stage.marta.read(m) for m in stage.sandbox.channel(SUPPORT).thread(asked.ts)[1:]]
        assert len(said) == len(set(said)), said


async def test_c24_every_copy_loses_its_buttons_while_the_work_is_still_going_on(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = changed_policy(tmp_path, {'expires_after = "2h"': 'escalate_after = "1h"'})
    async with staged(database, monkeypatch, ask_for_refunds(), policy=policy) as stage:
        stage.sandbox.faults.add("chat.postMessage", SlackFault.drop_after(), times=2)
        asked = await stage.ask()
        await stage.sandbox.until(lambda: len(stage.cards) == 2, **WAIT)  # one of them nobody heard of
        shift_clock(database, "61 minutes")
        ana = stage.sandbox.person("U0ANA")
        await stage.sandbox.until(lambda: stage.sandbox.dm("U0ANA").messages, **WAIT)
        copies = [(stage.marta, stage.cards[0]), (stage.marta, stage.cards[1])]
        copies.append((ana, stage.sandbox.dm("U0ANA").messages[0]))
        await stage.approve_and_hold(stage.cards[0])
        await stage.sandbox.until(lambda: not any(person.buttons(copy.ts) for person, copy in copies), **WAIT)
        stage.provider.release()
        await stage.said(asked, "That is all.")


@pytest.mark.parametrize("first", [0, 1])
async def test_c27_of_an_approve_and_a_reject_at_the_same_instant_one_is_the_decision(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: int
) -> None:
    policy = crowd_policy(tmp_path, 1)
    async with staged(database, monkeypatch, ask_for_refunds(), processes=2, policy=policy) as stage:
        [other] = await crowd(stage, 1)
        asked = await stage.ask()
        card = (await stage.card()).snapshot()
        await other.click(card, "Reject")
        await stage.sandbox.until(lambda: "38 payments" in other.read(other.view), **WAIT)
        form = other.fill({"Reason": "Not today"})
        both = [stage.marta.click(card, "Approve", to=0), form.submit(to=1)]
        await asyncio.gather(*(both if first == 0 else reversed(both)))
        await stage.said(asked, "That is all.")
        approval = await stage.approval()
        approved = approval.status is ApprovalStatus.EXECUTED
        assert approved or approval.status is ApprovalStatus.REJECTED
        assert len(stage.provider.refunds) == (38 if approved else 0)
        refused = [e for e in await audit.of(stage.db, approval.id) if e.kind == "click.refused"]
        assert [event.data["why"] for event in refused] == ["decided"]


async def asked_before_a_restart(stage: Stage) -> tuple[Message, Message]:
    """What Leo wrote and the card, of a process that has ended since."""
    async with process_of(stage.settings, work=True) as before:
        stage.sandbox.connect(before.url)
        asked = await stage.ask()
        card = await stage.card("38 payments")
        await eventually(lambda: _all_is_posted(stage))
    return asked, card


async def _all_is_posted(stage: Stage) -> bool:
    waits = await approvals.listed(stage.db, open_only=True, limit=1)
    behind = await cards.count_behind(stage.db) + await backlog.count_unposted(stage.db)
    return bool(waits) and not behind
