"""A decision has one winner: status, revision, version and deadline are in the statement that decides."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from store import approvals, audit, rows, runs
from store.engine import Database
from store.errors import NoRight
from store.records import Actor, Approval
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests import databases
from tests.integration.store.rows import (
    ANA,
    LEO,
    MARTA,
    TEAM,
    a_draft,
    a_pending_approval,
    a_run,
    an_approved_one,
    approve,
    attempt,
    cancel,
    claim_call,
    confirm,
    execute,
    expire,
    pending_approvals,
    person,
    reject,
    release,
    shift_clock,
    take,
    the,
    the_call,
    the_run,
    vote,
    vote_of,
)

pytestmark = pytest.mark.store

Decide = Callable[[Database, Approval], Coroutine[Any, Any, bool]]
ENDS = {"approval.approved", "approval.rejected", "approval.expired", "run.cancelled"}


async def kinds(db: Database, approval: Approval) -> list[str]:
    return [event.kind for event in await audit.of(db, approval.run_id)]


async def decided(db: Database, verdict: str | None = None) -> int:
    row = await db.one(
        "SELECT count(*) AS n FROM decisions WHERE %(v)s::text IS NULL OR verdict = %(v)s", {"v": verdict}
    )
    assert row is not None
    return int(row["n"])


# --- one winner ---


@pytest.mark.parametrize("late", ["0 s", "25 hours"])
async def test_fifty_decisions_at_once_have_one_winner(
    db: Database, database: databases.Database, late: str
) -> None:
    approval = await a_pending_approval(db)
    shift_clock(database, late)
    ways: list[Decide] = [approve, reject, expire]
    won = await asyncio.gather(*(ways[n % 3](db, approval) for n in range(50)))
    assert sum(won) == 1
    assert await decided(db) == (1 if late == "0 s" else 0)
    assert len(ENDS & set(found := await kinds(db, approval))) == 1
    assert sum(Counter(found)[kind] for kind in ENDS) == 1


async def test_the_same_click_twice_decides_once(db: Database) -> None:
    approval = await a_pending_approval(db)
    assert sorted(await asyncio.gather(approve(db, approval), approve(db, approval))) == [False, True]


async def test_a_decision_reckoned_from_an_older_row_changes_nothing(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=3)
    assert await vote(db, approval, person("U1"))
    assert not await approve(db, approval)
    assert not await vote(db, approval, person("U2"))
    assert not await reject(db, approval)
    assert [v.person.user_id for v in (await the(db, approval.id)).votes] == ["U1"]


async def test_a_decision_of_another_revision_changes_nothing(db: Database) -> None:
    approval = await a_pending_approval(db)
    assert not await approve(db, replace(approval, revision=2))
    assert (await the(db, approval.id)).status is ApprovalStatus.PENDING


@pytest.mark.parametrize("way", [approve, vote, reject])
async def test_after_the_deadline_nobody_decides_though_no_sweep_has_run(
    db: Database, database: databases.Database, way: Decide
) -> None:
    approval = await a_pending_approval(db, expires_after=3600.0)
    shift_clock(database, "1 hour")
    assert not await way(db, approval)
    assert (await the(db, approval.id)).status is ApprovalStatus.PENDING
    assert await decided(db) == 0


async def test_a_draft_is_not_confirmed_after_the_deadline(
    db: Database, database: databases.Database
) -> None:
    approval = await a_pending_approval(db)
    draft = await a_draft(db, approval)
    shift_clock(database, "24 hours")
    assert not await confirm(db, approval, draft)


async def test_nothing_expires_before_its_deadline(db: Database, database: databases.Database) -> None:
    approval = await a_pending_approval(db)
    shift_clock(database, "23 hours 59 minutes")
    assert not await expire(db, approval)
    assert await approvals.due(db) == []


# --- quorum ---


async def vote_until_it_counts(db: Database, approval_id: str, actor: Actor) -> bool:
    """What deciding does: reckon from the row as it is, try, and look again when others were first."""
    while (now := await the(db, approval_id)).status is ApprovalStatus.PENDING:
        enough = len(now.votes) + 1 >= now.rule.quorum
        if await (approve if enough else vote)(db, now, actor):
            return True
    return False


@pytest.mark.parametrize("quorum", [1, 2, 3, 4, 5, 8])
async def test_eight_voters_at_once_reach_a_quorum_exactly(db: Database, quorum: int) -> None:
    approval = await a_pending_approval(db, quorum=quorum)
    voters = [person(f"U{n}") for n in range(8)]
    counted = await asyncio.gather(*(vote_until_it_counts(db, approval.id, voter) for voter in voters))
    after = await the(db, approval.id)
    assert (after.status, len(after.votes), sum(counted)) == (ApprovalStatus.APPROVED, quorum, quorum)
    assert await decided(db, "approve") == quorum
    assert len({v.person.user_id for v in after.votes}) == quorum
    assert (await kinds(db, approval)).count("approval.approved") == 1


async def test_a_rejection_among_votes_ends_the_vote(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=3)
    await vote(db, approval, person("U1"))
    assert await reject(db, await the(db, approval.id), person("U2"))
    assert not await vote_until_it_counts(db, approval.id, person("U3"))


# --- edits ---


async def test_a_confirmed_draft_is_the_next_revision_with_the_editors_vote_only(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=3)
    await vote(db, approval, person("U1"))
    now = await the(db, approval.id)
    draft = await a_draft(db, now)
    assert await confirm(db, now, draft, approved=False)
    after = await the(db, approval.id)
    assert (after.status, after.revision, after.version) == (ApprovalStatus.PENDING, 2, now.version + 1)
    assert after.shown == draft.content
    assert [v.person for v in after.votes] == [MARTA]
    assert after.author == MARTA
    confirmed = await approvals.read_draft(db, draft.id)
    assert confirmed is not None
    assert confirmed.confirmed_as == 2


async def test_the_first_revision_stays_what_it_was(db: Database) -> None:
    approval = await a_pending_approval(db)
    assert await confirm(db, approval, await a_draft(db, approval))
    first = f"SELECT {rows.CONTENT} FROM revisions WHERE approval_id = %s AND revision = 1"
    row = await db.one(first, [approval.id])
    assert row is not None and rows.content(row) == approval.shown


async def test_two_drafts_confirmed_at_once_have_one_winner(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    drafts = [await a_draft(db, approval, author) for author in (MARTA, person("U1"))]
    won = await asyncio.gather(*(confirm(db, approval, draft, draft.author) for draft in drafts))
    assert sorted(won) == [False, True]
    assert (await the(db, approval.id)).revision == 2
    assert await decided(db) == 1


async def test_an_edit_and_an_approval_at_once_have_one_winner(db: Database) -> None:
    for _ in range(5):
        approval = await a_pending_approval(db)
        draft = await a_draft(db, approval)
        won = await asyncio.gather(confirm(db, approval, draft), approve(db, approval, ANA))
        assert sorted(won) == [False, True]
        assert (await the(db, approval.id)).revision == (2 if won[0] else 1)


async def test_a_draft_of_an_older_revision_is_refused(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    old = await a_draft(db, approval, person("U1"))
    assert await confirm(db, approval, await a_draft(db, approval), approved=False)
    assert not await confirm(db, await the(db, approval.id), old, person("U1"))
    assert (await the(db, approval.id)).shown.items == ("b1",)


async def test_a_draft_counts_once(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    draft = await a_draft(db, approval)
    assert await confirm(db, approval, draft, approved=False)
    assert not await confirm(db, replace(approval, version=2), draft)


async def test_a_draft_of_another_approval_is_refused(db: Database) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    draft = await a_draft(db, first)
    assert not await confirm(db, second, draft)
    assert (await the(db, second.id)).revision == 1


async def test_a_draft_is_found_again_by_its_author_alone_and_until_it_is_outdated(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    await a_draft(db, approval)
    last = await a_draft(db, approval)
    assert await approvals.draft_of(db, approval, MARTA) == last
    assert await approvals.draft_of(db, approval, ANA) is None
    assert await approvals.draft_of(db, await a_pending_approval(db), MARTA) is None
    assert await confirm(db, approval, await a_draft(db, approval, ANA), ANA, approved=False)
    assert await approvals.draft_of(db, await the(db, approval.id), MARTA) is None


async def test_a_draft_alone_decides_nothing(db: Database) -> None:
    approval = await a_pending_approval(db)
    await a_draft(db, approval)
    after = await the(db, approval.id)
    assert after == replace(approval, now=after.now)


@pytest.mark.parametrize("table", ["revisions", "decisions"])
@pytest.mark.parametrize("change", ["UPDATE {} SET revision = 9", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
async def test_what_was_shown_and_said_cannot_be_changed_even_by_the_owner(
    db: Database, database: databases.Database, table: str, change: str
) -> None:
    await an_approved_one(db)
    with pytest.raises(Exception, match="are append-only"):
        execute(database.owner_url, change.format(table))
    with pytest.raises(NoRight, match="permission denied"):
        await db.query(change.format(table))


# --- what follows from a decision ---


async def test_an_approval_has_an_hour_to_be_claimed(db: Database) -> None:
    after = await an_approved_one(db)
    assert after.decided_at is not None
    assert after.claim_by is not None
    assert (after.claim_by - after.decided_at).total_seconds() == 3600
    assert after.decided_by == MARTA


async def test_a_rejection_closes_the_call_and_queues_the_run(db: Database) -> None:
    approval = await a_pending_approval(db)
    assert await reject(db, approval)
    call = await the_call(db, approval.call_id)
    assert (call.status, call.result["content"]["ok"]) == (CallStatus.REJECTED, False)
    run = await the_run(db, approval.run_id)
    assert (run.status, run.open_calls) == (RunStatus.QUEUED, 0)
    assert await approvals.pending_all(db, limit=9) == []


async def test_the_run_goes_on_only_when_the_last_of_the_turn_is_closed(db: Database) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    await reject(db, first)
    assert (await the_run(db, first.run_id)).status is RunStatus.AWAITING_APPROVAL
    await reject(db, second)
    assert (await the_run(db, first.run_id)).status is RunStatus.QUEUED


async def test_both_of_a_turn_closed_at_once_leave_the_run_queued(db: Database) -> None:
    for _ in range(5):
        first, second = await pending_approvals(db, [["b1"], ["b2"]])
        assert all(await asyncio.gather(reject(db, first), reject(db, second)))
        run = await the_run(db, first.run_id)
        assert (run.status, run.open_calls) == (RunStatus.QUEUED, 0)
        assert await take(db) is not None


async def test_a_rejection_vetoes_the_effect_until_the_next_run_of_the_conversation_starts(
    db: Database,
) -> None:
    first = await a_pending_approval(db)
    thread = first.conversation.thread_ts
    await reject(db, first)
    await a_run(db, thread=thread)
    claimed = await take(db)
    assert claimed is not None
    assert [(v.effect, v.kind, v.denied_by) for v in claimed.vetoes] == [("payment", "rejected", MARTA)]
    assert await runs.complete(db, claimed, body=[], answer="No.", input_tokens=0, output_tokens=0)
    following = await take(db)
    assert following is not None
    assert following.vetoes == ()
    assert following.run.seq == 2


async def test_two_refusals_of_one_effect_leave_one_veto(db: Database) -> None:
    first, second = await pending_approvals(db, [["b1"], ["b2"]])
    assert all(await asyncio.gather(reject(db, first), reject(db, second)))
    assert len(await db.query("SELECT FROM vetoes WHERE lifted_at IS NULL")) == 1


async def test_an_earlier_refusal_is_found_for_the_next_card(db: Database) -> None:
    first = await a_pending_approval(db)
    assert await approvals.earlier_refusal(db, first) is None
    await reject(db, first)
    await db.query("UPDATE vetoes SET lifted_at = house_now()")
    later = replace(first, created_at=(await the(db, first.id)).now)
    refusal = await approvals.earlier_refusal(db, later)
    assert refusal is not None
    assert refusal.reason == "Not today."


async def test_silence_closes_the_call_vetoes_the_effect_and_tells_people_once(
    db: Database, database: databases.Database
) -> None:
    approval = await a_pending_approval(db)
    shift_clock(database, "24 hours")
    assert [a.id for a in await approvals.due(db)] == [approval.id]
    assert sorted(await asyncio.gather(*(expire(db, approval) for _ in range(4)))) == [False] * 3 + [True]
    told = await db.query("SELECT user_id FROM notices WHERE kind = 'approval_expired' ORDER BY 1")
    assert [row["user_id"] for row in told] == ["U0ANA", "U0LEO"]
    assert (await the_call(db, approval.call_id)).status is CallStatus.EXPIRED
    assert (await db.query("SELECT kind FROM vetoes")) == [{"kind": "expired"}]


# --- approved and not claimed in time ---


async def test_an_approved_one_that_nobody_claims_lapses_without_a_veto(
    db: Database, database: databases.Database
) -> None:
    approval = await an_approved_one(db)
    assert not await expire(db, approval)
    shift_clock(database, "61 minutes")
    assert await claim_call(db) is None
    assert [a.id for a in await approvals.due(db)] == [approval.id]
    assert await expire(db, approval)
    assert await db.query("SELECT FROM vetoes") == []
    assert (await the_run(db, approval.run_id)).status is RunStatus.QUEUED


async def test_an_attempted_one_does_not_lapse(db: Database, database: databases.Database) -> None:
    await an_approved_one(db)
    claimed = await claim_call(db)
    assert claimed is not None
    await attempt(db, claimed)
    assert await release(db, claimed)
    shift_clock(database, "2 hours")
    assert claimed.approval is not None
    after = await the(db, claimed.approval.id)
    assert await approvals.due(db) == []
    assert not await expire(db, after)
    assert (await claim_call(db)) is not None


# --- escalation ---


async def test_further_people_are_asked_once_each_with_a_card(
    db: Database, database: databases.Database
) -> None:
    approval = await a_pending_approval(db)
    assert await approvals.to_escalate(db) == []
    shift_clock(database, "4 hours")
    assert [a.id for a in await approvals.to_escalate(db)] == [approval.id]
    asked = [approvals.escalate(db, approval, [(TEAM, "U0ANA")]) for _ in range(4)]
    assert sorted(await asyncio.gather(*asked)) == [False] * 3 + [True]
    copies = await db.query("SELECT user_id FROM cards WHERE user_id IS NOT NULL")
    assert copies == [{"user_id": "U0ANA"}]
    assert await approvals.to_escalate(db) == []


# --- lists ---


async def waiting_for(db: Database, actor: Actor, *roles: str) -> list[str]:
    assert actor.team_id is not None
    assert actor.user_id is not None
    found = await approvals.waiting_for(
        db, team_id=actor.team_id, user_id=actor.user_id, roles=roles, limit=9
    )
    counted = await approvals.count_waiting_for(db, team_id=actor.team_id, user_id=actor.user_id, roles=roles)
    assert counted == len(found)
    return [a.id for a in found]


async def test_a_person_sees_what_waits_for_their_say(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    assert await waiting_for(db, MARTA, "support_lead") == [approval.id]
    assert await waiting_for(db, ANA, "admin") == []
    assert await waiting_for(db, LEO, "support_lead") == []
    assert await waiting_for(db, replace(LEO, team_id="T0OTHER"), "support_lead") == [approval.id]
    await vote(db, approval)
    assert await waiting_for(db, MARTA, "support_lead") == []


async def test_those_asked_further_see_it_once_they_are_asked(db: Database) -> None:
    approval = await a_pending_approval(db)
    await approvals.escalate(db, approval, [(TEAM, "U0ANA")])
    assert await waiting_for(db, ANA, "admin") == [approval.id]


async def test_what_is_past_its_deadline_waits_for_nobody(db: Database, database: databases.Database) -> None:
    await a_pending_approval(db)
    shift_clock(database, "24 hours")
    assert await waiting_for(db, MARTA, "support_lead") == []


async def test_overlaps_names_the_open_ones_with_the_same_items_of_the_effect(db: Database) -> None:
    first = await a_pending_approval(db, ["b1", "b2"])
    second = await a_pending_approval(db, ["b2", "b3"])
    await a_pending_approval(db, ["b2"], effect="mail")
    await a_pending_approval(db, ["b9"])
    (found,) = await approvals.overlaps(db, first)
    assert (found.approval_id, found.items) == (second.id, ("b2",))
    await cancel(db, second.run_id)
    assert await approvals.overlaps(db, first) == []


async def test_a_vote_keeps_the_words_that_came_with_it(db: Database) -> None:
    approval = await a_pending_approval(db, quorum=2)
    await approvals.vote(db, approval, MARTA, [vote_of(MARTA)], "Looks right.")
    (row,) = await db.query("SELECT user_id, role, reason, verdict, revision FROM decisions")
    assert row == {
        "user_id": "U0MARTA",
        "role": "support_lead",
        "reason": "Looks right.",
        "verdict": "approve",
        "revision": 1,
    }
