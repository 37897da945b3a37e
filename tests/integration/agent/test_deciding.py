"""Who decides, how many must, and who was first."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from agent.decide import Recorded, Refused, decide, refuse_click
from agent.scripted import call, say, script, step
from store import approvals
from store.records import Actor, Vote
from store.transitions import ApprovalStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, POLICY, TEAM, Office, office, until

PAY = call("pay", {"bills": ["b1"]})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("Done.")))
TWO_OF = POLICY.replace("[roles.support_lead]", "quorum = 2\n[roles.support_lead]")
CROWD = ["U0MARTA", "U0M1", "U0M2", "U0M3", "U0M4", "U0M5", "U0M6", "U0M7"]
MARTA = Actor("person", TEAM, "U0MARTA", "Marta")


async def test_of_many_clicks_at_once_one_wins_and_the_others_hear_who_was_first(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        clicks = await asyncio.gather(*(o.approve(asked, user) for user in CROWD * 2))
        won = [click for click in clicks if isinstance(click, Recorded)]
        lost = [click for click in clicks if isinstance(click, Refused)]
        assert (len(won), {click.kind for click in lost}) == (1, {"decided"})
        first = won[0].approval.decided_by
        assert {click.approval and click.approval.decided_by for click in lost} == {first}
        await o.work()
        assert o.world.paid == ["b1"]


async def test_approve_and_reject_at_once_leave_one_decision(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        pairs = [(o.approve(asked, u), o.reject(asked, user=u)) for u in CROWD[:4]]
        clicks = await asyncio.gather(*(click for pair in pairs for click in pair))
        assert sum(isinstance(click, Recorded) for click in clicks) == 1
        await o.work()
        after = await o.approval(asked.id)
        assert bool(o.world.paid) == (after.status is ApprovalStatus.EXECUTED)
        assert len(o.execute("SELECT id FROM decisions")) == 1


async def test_the_last_votes_of_a_quorum_at_once_are_all_counted(database: Database, tmp_path: Path) -> None:
    policy = TWO_OF.replace("quorum = 2", "quorum = 8")
    async with office(database, tmp_path, DONE, policy=policy) as o:
        asked = await o.propose()
        clicks = await asyncio.gather(*(o.approve(asked, user) for user in CROWD))
        assert all(isinstance(click, Recorded) for click in clicks)
        assert sorted(click.missing for click in clicks if isinstance(click, Recorded)) == list(range(8))
        after = await o.approval(asked.id)
        assert (after.status, len(after.votes)) == (ApprovalStatus.APPROVED, 8)
        await o.work()
        assert o.world.keys == [asked.id]


async def test_one_vote_of_two_runs_nothing_and_counts_once(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, policy=TWO_OF) as o:
        asked = await o.propose()
        first = await o.approve(asked)
        assert isinstance(first, Recorded)
        assert first.missing == 1
        again = await o.approve(asked)
        assert isinstance(again, Refused)
        assert again.kind == "already_voted"
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.PENDING
        assert o.world.keys == []


async def test_one_rejection_is_enough_whatever_the_votes(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_OF) as o:
        asked = await o.propose()
        await o.approve(asked)
        await o.reject(asked)
        await o.work()
        assert ((await o.approval(asked.id)).status, o.world.keys) == (ApprovalStatus.REJECTED, [])


@pytest.mark.parametrize("column, value", [("version", 2), ("revision", 2)])
async def test_a_decision_reckoned_from_an_older_row_changes_nothing(
    database: Database, tmp_path: Path, column: str, value: int
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.execute(
            "INSERT INTO revisions SELECT approval_id, 2, input, input_hash, facts, items, items_digest,"
            " precondition, preview, preview_hash, schema_hash, author, created_at FROM revisions"
        )
        o.execute(f"UPDATE approvals SET {column} = %s", value)
        vote = (Vote(MARTA, "2026-11-30T00:00:00Z"),)
        assert not await approvals.approve(o.house.db, asked, MARTA, vote, None)
        assert not await approvals.reject(o.house.db, asked, MARTA, "no", result={}, veto=True)
        assert (await o.approval(asked.id)).status is ApprovalStatus.PENDING


async def test_the_deadline_holds_in_the_statement_itself(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.shift_clock("24 hours")
        vote = (Vote(MARTA, "2026-11-30T00:00:00Z"),)
        assert not await approvals.approve(o.house.db, asked, MARTA, vote, None)
        assert not await approvals.reject(o.house.db, asked, MARTA, "no", result={}, veto=True)


async def test_who_is_too_late_hears_of_a_decision_that_began_in_time(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        with psycopg.connect(o.owner_url) as other:
            other.execute("SELECT FROM approvals FOR UPDATE")
            in_time = asyncio.create_task(o.approve(asked))
            await until(lambda: waiting_for_locks(o, 1), "Marta's decision is sent")
            o.shift_clock("25 hours")
            too_late = asyncio.create_task(o.approve(asked, "U0M1"))
            await until(lambda: waiting_for_locks(o, 2), "who is too late waits for it")
        assert isinstance(await in_time, Recorded)
        told = await too_late
        assert isinstance(told, Refused)
        assert told.approval is not None and told.approval.decided_by is not None
        assert (told.kind, told.approval.decided_by.user_id) == ("decided", "U0MARTA")


async def waiting_for_locks(o: Office, count: int) -> bool:
    """Whether so many statements wait for a row."""
    waiting = "wait_event_type = 'Lock' AND datname = current_database()"
    return o.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {waiting}") == [(count,)]


async def test_whoever_is_too_late_finds_it_expired_though_no_sweep_came_by(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.shift_clock("25 hours")
        told = await o.approve(asked)
        assert isinstance(told, Refused)
        assert told.kind == "expired"
        assert await o.events(asked.id) == ["approval.requested", "approval.expired", "click.refused"]
        assert await o.statuses(asked.run_id) == ["expired"]


async def test_the_requester_does_not_approve_their_own_call(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose(requester=MARTA)
        clicked = await o.approve(asked)
        assert isinstance(clicked, Refused)
        assert clicked.kind == "four_eyes"
        assert isinstance(await o.approve(asked, "U0M1"), Recorded)
        await o.work()
        assert o.world.paid == ["b1"]


async def test_the_policy_may_let_the_requester_approve(database: Database, tmp_path: Path) -> None:
    policy = f"{POLICY}\n[tools.pay]\nfour_eyes = false\n"
    async with office(database, tmp_path, ASKED, policy=policy) as o:
        assert isinstance(await o.approve(await o.propose(requester=MARTA)), Recorded)


async def test_those_of_the_escalation_decide_only_after_it(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        early = await o.approve(asked, "U0ANA")
        assert isinstance(early, Refused)
        assert early.kind == "not_an_approver"
        o.shift_clock("4 hours 1 second")
        await o.sweep()
        assert isinstance(await o.approve(await o.asked(), "U0ANA"), Recorded)


async def test_the_rule_of_the_proposal_holds_though_the_policy_was_changed_since(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, policy=TWO_OF) as o:
        asked = await o.propose()
        async with office(database, tmp_path, policy=POLICY) as later:
            first = await later.approve(asked)
            assert isinstance(first, Recorded)
            assert first.missing == 1


async def test_an_unknown_approval_is_refused_and_recorded(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path) as o:
        clicked = await decide(o.house, "apr_made_up", 1, o.person(), "approve")
        assert clicked == Refused("unknown", None)
        await refuse_click(o.house, "apr_made_up", LEO, "made_up")
        assert await o.events("apr_made_up") == ["click.refused", "click.refused"]


async def test_a_decision_holds_what_was_shown_and_why_in_the_record(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.reject(asked, "Wrong month.")
        await o.work()
        (event,) = [e for e in await o.record(asked.id) if e.kind == "approval.rejected"]
        assert event.actor is not None
        assert (event.actor.user_id, event.actor.role) == ("U0MARTA", "support_lead")
        assert event.data["preview_hash"] == asked.shown.preview_hash
        assert (event.data["revision"], event.data["reason"]) == (1, "Wrong month.")
