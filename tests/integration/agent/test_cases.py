"""What went wrong elsewhere, and must not go wrong here."""

import time
from pathlib import Path
from typing import Any

import pytest

from agent import execute, policy
from agent.decide import Refused, confirm_draft, decide
from agent.edit import draft_edit
from agent.scripted import Asked, call, expect_results, say, script, step
from store import approvals, calls, runs
from store.records import ClaimedCall, Draft
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import POLICY, Office, office, with_tool

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
ONE = script(step(PAY), step(say("That is all.")))


def denied(results: list[Any]) -> bool:
    return all(result["approvalDenied"] and not result["executed"] for result in results)


async def test_c01_a_rejected_call_has_no_effect_and_the_model_is_told(
    database: Database, tmp_path: Path
) -> None:
    rejected = script(step(PAY), step(say("It was refused."), expect=expect_results(denied)))
    async with office(database, tmp_path, rejected) as o:
        asked = await o.propose()
        await o.reject(asked, "Wrong month.")
        await o.work()
        assert o.world.keys == []
        told = await o.result(asked)
        assert (told["deniedBy"], told["reason"]) == ("Marta (support_lead)", "Wrong month.")
        assert (await o.run(asked.run_id)).answer == "It was refused."


async def test_c02_no_way_leads_around_the_claim_of_an_approved_row(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ONE) as o:
        asked = await o.propose()
        await o.reject(asked)
        await o.work()
        (refused,) = await o.calls(asked.run_id)
        forged = ClaimedCall(refused, await o.run(asked.run_id), "a token", await o.approval(asked.id))
        assert await execute.Execution(o.house, o.worker.leases, forged, "t").attempt() is None
        assert await execute.execute(o.house, o.worker.leases, forged, "t") is None
        assert o.world.keys == []


async def test_c03_the_old_cards_approve_does_not_land_on_the_new_call(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(PAY), step(PAY), step(say("Done.")))) as o:
        old = await o.propose()
        await o.approve(old)
        o.world.due = 41
        await o.work()
        new = await o.asked()
        clicked = await o.approve(old)
        assert isinstance(clicked, Refused)
        assert clicked.approval is not None
        assert (clicked.kind, clicked.approval.replaced_by) == ("superseded", new.id)
        await o.work()
        assert o.world.keys == []
        assert (await o.asked()).votes == ()
        await o.approve(new)
        await o.work()
        assert o.world.keys == [new.id]


async def test_c05_a_killed_worker_leads_to_one_effect_under_the_same_key(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ONE) as o:
        asked = await o.propose()
        await o.approve(asked)
        await die_after_the_effect(o)
        assert o.world.paid == BILLS
        o.shift_clock("16 seconds")
        await o.sweep()
        assert (o.world.paid, o.world.keys) == (BILLS, [asked.id, asked.id])
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED


async def test_c05_a_killed_worker_leads_to_a_person_where_nothing_may_be_repeated(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(PAY)), repeatable=False) as o:
        asked = await o.propose()
        await o.approve(asked)
        await die_after_the_effect(o)
        o.shift_clock("16 seconds")
        await o.sweep()
        assert (o.world.paid, o.world.keys) == (BILLS, [asked.id])
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN
        assert (await o.run(asked.run_id)).status is RunStatus.AWAITING_APPROVAL


async def die_after_the_effect(o: Office) -> None:
    """Let a worker execute and lose its claim before it records: as if it were killed there."""
    house_of_the_dead = o.another_worker("w-dead")
    o.world.watch = lambda ctx: o.execute("UPDATE calls SET token = 'killed' WHERE status = 'executing'")
    await house_of_the_dead.work_off()
    o.world.watch = lambda ctx: None


async def test_c08_an_approve_after_the_deadline_is_refused_before_any_sweep(
    database: Database, tmp_path: Path
) -> None:
    expired = script(step(PAY), step(say("Nobody decided."), expect=expect_results(denied)))
    async with office(database, tmp_path, expired) as o:
        asked = await o.propose()
        o.shift_clock("24 hours")
        clicked = await o.approve(asked)
        assert isinstance(clicked, Refused)
        assert clicked.kind == "expired"
        refused = await o.approval(asked.id)
        assert (refused.status, refused.votes) == (ApprovalStatus.EXPIRED, ())
        await o.sweep()
        assert o.world.keys == []
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXPIRED


async def test_c09_a_late_reject_is_kept_as_a_late_refusal(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ONE) as o:
        asked = await o.propose()
        o.shift_clock("25 hours")
        await o.reject(asked)
        await o.sweep()
        clicked = await o.reject(asked)
        assert isinstance(clicked, Refused)
        assert clicked.kind == "expired"
        events = await o.record(asked.id)
        assert [e.kind for e in events].count("approval.late_refusal") == 2
        assert all(e.actor and e.actor.user_id == "U0MARTA" for e in events if "late" in e.kind)
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXPIRED


async def test_c10_the_model_reads_what_a_person_changed(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ONE) as o:
        asked = await o.propose()
        marta = o.person()
        draft = await draft_edit(o.house, asked.id, 1, marta, {"bills": ["b1"]})
        assert isinstance(draft, Draft)
        await confirm_draft(o.house, draft.id, marta)
        await o.work()
        told = await o.result(asked)
        assert o.world.paid == ["b1"]
        assert (told["edited"], told["requestedInput"]["bills"]) == (True, BILLS)
        assert told["executedInput"]["bills"] == ["b1"]
        assert "do not ask again for the original" in told["instruction"]


async def test_c11_a_rejected_outcome_is_not_asked_again_in_pieces_or_through_another_tool(
    database: Database, tmp_path: Path
) -> None:
    stubborn = script(
        step(PAY),
        step(call("pay", {"bills": ["b1"]}), call("tip", {"bills": ["b1"]}), call("tip", {"bills": BILLS})),
        step(say("I stop."), expect=expect_results(lambda told: denied(told) and len(told) == 3)),
    )
    async with office(database, tmp_path, stubborn) as o:
        asked = await o.propose()
        await o.reject(asked, "Not this year.")
        await o.work()
        assert o.world.keys == []
        assert await o.all_asked() == []
        assert await o.statuses(asked.run_id) == ["rejected", "vetoed", "vetoed", "vetoed"]
        assert {told["reason"] for told in Asked("", o.model.requests[-1]["messages"], ()).results} == {
            "Not this year."
        }


async def test_c12_one_approved_and_one_rejected_make_one_effect_and_two_results(
    database: Database, tmp_path: Path
) -> None:
    two = script(
        step(call("pay", {"bills": ["b1"]}, id="first"), call("pay", {"bills": ["b2"]}, id="second")),
        step(say("One of two."), expect=expect_results(2)),
    )
    async with office(database, tmp_path, two) as o:
        run = await o.start()
        await o.work()
        first, second = await o.all_asked()
        await o.reject(first)
        await o.approve(second)
        await o.work()
        assert o.world.paid == ["b2"]
        assert [block["tool_use_id"] for block in o.model.last_message] == ["first", "second"]
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


async def test_c13_the_same_task_again_is_a_new_approval_that_shows_the_refusal(
    database: Database, tmp_path: Path
) -> None:
    again = script(step(PAY), step(say("Refused.")), step(PAY), step(say("Paid.")))
    async with office(database, tmp_path, again) as o:
        first = await o.propose()
        assert await approvals.earlier_refusal(o.house.db, first) is None
        await o.reject(first, "Too early.")
        await o.work()
        second = await o.propose(key="ev2")
        refusal = await approvals.earlier_refusal(o.house.db, second)
        assert refusal is not None
        assert (refusal.approval_id, refusal.reason) == (first.id, "Too early.")
        assert refusal.denied_by is not None
        assert o.world.keys == []
        assert second.id != first.id
        await o.approve(second)
        await o.work()
        assert o.world.keys == [second.id]


async def test_c15_an_approval_that_nobody_answers_escalates_expires_and_ends_its_run(
    database: Database, tmp_path: Path
) -> None:
    waits = script(step(PAY), step(say("Nobody decided in time."), expect=expect_results(denied)))
    async with office(database, tmp_path, waits) as o:
        asked = await o.propose()
        o.shift_clock("4 hours 1 second")
        await o.sweep()
        assert (await o.approval(asked.id)).escalated_at is not None
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        run = await o.run(asked.run_id)
        assert (run.status, run.answer) == (RunStatus.COMPLETED, "Nobody decided in time.")
        told = o.execute("SELECT user_id FROM notices WHERE kind = 'approval_expired' ORDER BY user_id")
        assert told == [("U0ANA",), ("U0LEO",)]
        assert (await o.result(asked))["expired"] is True


async def test_c16_a_worker_that_dies_as_it_takes_work_has_left_a_lease_that_lapses(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ONE) as o:
        dead: dict[str, Any] = {"worker": "w-dead", "lease": 15.0}
        run = await o.start()
        assert await runs.claim(o.house.db, token="dead", **dead) == run.id
        assert o.execute("SELECT token, lease_until > house_now() FROM runs") == [("dead", True)]
        await o.work()
        assert await o.all_asked() == [], "it is taken from nobody who may still be there"
        o.shift_clock("16 seconds")
        await o.sweep()
        await o.approve(await o.asked())
        assert await calls.claim(o.house.db, token="dead too", **dead) is not None
        assert o.execute("SELECT token, lease_until > house_now() FROM calls") == [("dead too", True)]
        o.shift_clock("32 seconds")
        await o.sweep()
        assert ((await o.run(run.id)).status, o.world.paid) == (RunStatus.COMPLETED, BILLS)


@pytest.mark.parametrize("approvers", ["[]", '["nobody"]'])
async def test_c17_without_approvers_the_house_does_not_start(
    database: Database, tmp_path: Path, approvers: str
) -> None:
    closed = POLICY.replace('["support_lead"]', approvers)
    with pytest.raises(policy.PolicyError, match="approvers"):
        async with office(database, tmp_path, policy=closed):
            pass


async def test_c17_nobody_may_decide_who_is_not_in_the_policy_of_this_workspace(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(PAY))) as o:
        asked = await o.propose()
        for team, user in (("T0SHOP", "U0STRANGER"), ("T0OTHER", "U0MARTA")):
            person = policy.Person(team, user, "x", o.house.policy.roles_of(team, user))
            clicked = await decide(o.house, asked.id, 1, person, "approve")
            assert isinstance(clicked, Refused)
            assert clicked.kind == "not_an_approver"
        assert (await o.approval(asked.id)).votes == ()
        assert (await o.events(asked.id)).count("click.refused") == 2


async def test_c25_a_slow_person_uses_up_none_of_the_time_that_the_call_has_to_run(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ONE) as o:
        hasty = with_tool(o.house, "pay", timeout="2s")
        asked = await o.propose()
        o.shift_clock("23 hours")
        await o.approve(asked)
        await o.another_worker(house=hasty).work_off()
        after = await o.approval(asked.id)
        assert (after.status, o.world.paid) == (ApprovalStatus.EXECUTED, BILLS)
        assert [
            e.actor.kind for e in await o.record(asked.id) if e.kind == "attempt.started" and e.actor
        ] == ["system"]


@pytest.mark.parametrize("silent", ["people", "the tool"])
async def test_c25_what_the_clock_ends_is_ended_by_the_system_and_blames_nobody(
    database: Database, tmp_path: Path, silent: str
) -> None:
    waits = script(step(PAY), step(say("It did not happen."), optional=True))
    async with office(database, tmp_path, waits, repeatable=False) as o:
        asked = await o.propose()
        if silent == "people":
            o.shift_clock("24 hours 1 second")
            await o.sweep()
        else:
            await o.approve(asked)
            o.world.watch = lambda ctx: time.sleep(0.4)
            await o.another_worker(house=with_tool(o.house, "pay", timeout="200ms")).work_off()
        after, [last] = await o.approval(asked.id), (await o.record(asked.id))[-1:]
        assert last.actor is not None
        ended = {"people": "approval.expired", "the tool": "call.unknown"}[silent]
        assert (last.kind, last.actor.kind, last.actor.user_id) == (ended, "system", None)
        assert (after.decided_by is None) is (silent == "people")
        if silent == "people":
            assert (await o.result(asked))["deniedBy"] is None
