"""Calls whose outcome nobody knows: who says what became of them, once, and who is told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import field_validator

from agent.decide import Refused
from agent.scripted import Asked, call, expect_results, say, script, step
from agent.settle import REMIND_AFTER, Said, Settled, may_run, settle
from agent.start import cancel_run
from agent.sweep import sweep
from agent.tool import Risk
from store import approvals, audit, cards
from store.records import Approval, NobodyKnows
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent import till
from tests.integration.agent.office import LEO, Office, office, with_tool, without

BILLS = ["b1", "b2"]
PAY, TIP = call("pay", {"bills": BILLS}), call("tip", {"bills": ["b1"]})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("That is all.")))
MEASURING = ("facts", "policy", "preview", "precondition")
NEXT_DAY = "24 hours 1 second"


async def lost(o: Office, **values: Any) -> Approval:
    """An approved call whose answer was lost, and that may not be repeated."""
    asked = await o.propose(**values)
    await o.approve(asked)
    o.world.fail = [RuntimeError("no answer")]
    await o.work()
    return await o.approval(asked.id)


async def says(
    o: Office, approval: Approval, said: Said, user: str = "U0MARTA", attempts: int = 1
) -> Settled | Refused:
    """Press the button on what was read."""
    return await settle(o.house, approval.id, approval.revision, attempts, o.person(user), said)


def why(outcome: Settled | Refused) -> str:
    assert isinstance(outcome, Refused)
    return outcome.kind


async def kinds(o: Office, approval: Approval) -> list[str]:
    """What was recorded since nobody knew."""
    events = await o.events(approval.id)
    return events[events.index("call.unknown") + 1 :]


# --- what it was ---


async def test_what_is_known_is_kept_with_the_approval(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        known, (one,) = NobodyKnows.of(approval), await o.calls(approval.run_id)
        assert known is not None
        assert (known.attempts, known.key, known.first_attempt_at) == (1, approval.id, one.first_attempt_at)
        assert "RuntimeError: no answer" in known.why
        assert (known.retry_until - known.first_attempt_at).total_seconds() == 86400
        assert known.since >= known.first_attempt_at


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [("ran", ApprovalStatus.EXECUTED, "it did happen"), ("did_not_run", ApprovalStatus.FAILED, "did not")],
)
async def test_a_person_says_what_happened_the_model_is_told_and_the_run_goes_on(
    database: Database, tmp_path: Path, said: Said, status: ApprovalStatus, words: str
) -> None:
    told = expect_results(lambda t: t[0]["settledBy"] == "Marta (support_lead)")
    async with office(
        database, tmp_path, script(step(PAY), step(say("I see."), expect=told)), repeatable=False
    ) as o:
        approval = await lost(o)
        outcome = await says(o, approval, said)
        assert isinstance(outcome, Settled)
        assert (outcome.approval.id, outcome.said) == (approval.id, said)
        after = await o.approval(approval.id)
        assert (after.status, after.outcome["late"]) == (status, False)
        assert await kinds(o, approval) == ["call.settled"]
        assert o.execute("SELECT item FROM held_items") == []
        await o.work()
        assert words in (await o.result(approval))["instruction"]
        run = await o.run(approval.run_id)
        assert (run.status, run.answer) == (RunStatus.COMPLETED, "I see.")
        assert o.execute("SELECT count(*) FROM notices WHERE kind = 'outcome_settled'") == [(0,)]
        assert o.world.attempts == [1]


async def test_it_is_tried_again_with_its_key_though_the_tool_is_not_repeatable(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        approval = await lost(o)
        assert isinstance(await says(o, approval, "try_again"), Settled)
        again = await o.approval(approval.id)
        assert (again.status, again.decided_by, again.decided_at) == (
            ApprovalStatus.APPROVED,
            approval.decided_by,
            approval.decided_at,
        )
        assert again.outcome["tried_again_by"]["user"] == "U0MARTA"
        o.world.due = 41  # not checked again after a first attempt
        await o.work()
        after = await o.approval(approval.id)
        assert (after.status, o.world.attempts, o.world.paid) == (ApprovalStatus.EXECUTED, [1, 2], BILLS)
        assert set(o.world.keys) == {approval.id}
        assert (await o.run(approval.run_id)).status is RunStatus.COMPLETED
        assert "call.tried_again" in await o.events(approval.id)


async def test_what_is_lost_again_is_asked_again(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        await says(o, approval, "try_again")
        o.world.fail = [RuntimeError("again no answer")]
        await o.work()
        after = await o.approval(approval.id)
        known = NobodyKnows.of(after)
        assert (known and known.attempts, o.world.attempts) == (2, [1, 2])
        assert why(await says(o, approval, "did_not_run")) == "attempted_again"
        assert isinstance(await says(o, after, "ran", attempts=2), Settled)


# --- an allowed call ---


async def test_an_allowed_call_is_settled_by_those_whom_the_policy_would_have_asked(
    database: Database, tmp_path: Path
) -> None:
    done = script(step(TIP), step(say("I see."), expect=expect_results(lambda t: t[0]["executed"])))
    async with office(database, tmp_path, done, repeatable=False) as o:
        o.world.fail = [RuntimeError("no answer")]
        run = await o.start()
        await o.work()
        (approval,) = await approvals.of_run(o.house.db, run.id)
        assert why(await says(o, approval, "ran", "U0LEO")) == "not_an_approver"
        assert isinstance(await says(o, approval, "ran"), Settled)
        await o.work()
        assert (await o.run(run.id)).answer == "I see."


async def test_an_allowed_call_can_be_tried_again_under_its_own_key(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(TIP), step(say("Tipped."))), repeatable=False) as o:
        o.world.fail = [RuntimeError("no answer")]
        run = await o.start()
        await o.work()
        (approval,) = await approvals.of_run(o.house.db, run.id)
        assert isinstance(await says(o, approval, "try_again"), Settled)
        await o.work()
        after = await o.approval(approval.id)
        assert (after.status, after.decided_by and after.decided_by.name) == (
            ApprovalStatus.EXECUTED,
            "Marta",
        )
        assert set(o.world.keys) == {approval.call_id}
        assert ((await o.run(run.id)).answer, o.world.attempts) == ("Tipped.", [1, 2])


# --- who may, and when ---


@pytest.mark.parametrize("said", ["ran", "did_not_run", "try_again"])
async def test_whoever_may_not_decide_it_may_not_settle_it(
    database: Database, tmp_path: Path, said: Said
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        assert why(await says(o, approval, said, "U0ANA")) == "not_an_approver"
        assert why(await says(o, approval, said, "U0NOBODY")) == "not_an_approver"
        assert (await o.approval(approval.id)).version == approval.version
        assert await kinds(o, approval) == ["click.refused", "click.refused"]
        assert o.world.attempts == [1]


async def test_the_requester_does_not_settle_it(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        marta = o.person().actor()
        asked = await o.propose(requester=marta)
        await o.approve(asked, "U0M1")
        o.world.fail = [RuntimeError("no answer")]
        await o.work()
        assert why(await says(o, asked, "ran")) == "four_eyes"
        assert isinstance(await says(o, asked, "ran", "U0M1"), Settled)


async def test_those_of_the_escalation_may_settle_it_once_they_are_asked(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        approval = await lost(o)
        o.shift_clock("4 hours 1 minute")
        await sweep(o.house)
        copies = await cards.of_approvals(o.house.db, [approval.id])
        assert [copy.user_id for copy in copies] == [None, "U0ANA"]
        assert isinstance(await says(o, approval, "ran", "U0ANA"), Settled)
        await o.work()


async def test_many_at_once_are_one_settlement_and_the_others_are_told_so(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        said: list[Said] = ["ran", "did_not_run", "try_again"] * 4
        outcomes = await asyncio.gather(
            *(says(o, approval, one, f"U0M{at % 7 + 1}") for at, one in enumerate(said))
        )
        won = [one for one in outcomes if isinstance(one, Settled)]
        assert len(won) == 1
        assert {why(one) for one in outcomes if one not in won} <= {"settled", "attempted_again"}
        events = await kinds(o, approval)
        assert len([kind for kind in events if kind in {"call.settled", "call.tried_again"}]) == 1
        assert events.count("click.refused") == 11
        assert (await audit.verify(o.house.db)).broken == ()


async def test_it_is_not_tried_again_a_day_after_the_first_attempt_and_is_still_settled(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        approval = await lost(o)
        o.shift_clock("23 hours")
        await o.sweep()
        assert (await o.calls(approval.run_id))[0].result is None
        o.shift_clock("24 hours 1 second")
        assert why(await says(o, approval, "try_again")) == "too_old"
        await o.sweep()
        assert why(await says(o, approval, "try_again")) == "too_old"
        assert isinstance(await says(o, approval, "did_not_run"), Settled)
        assert o.world.attempts == [1]


class Pay(till.Pay):
    """Pay these bills."""

    @field_validator("bills")
    @classmethod
    def takes_none_any_more(cls, bills: list[str]) -> list[str]:
        raise ValueError("no bill is taken any more")


@pytest.mark.parametrize("change", ["version", "effect", "only reads", "validation", "gone"])
async def test_it_is_not_tried_again_with_another_tool(
    database: Database, tmp_path: Path, change: str
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        house = {
            "version": with_tool(o.house, "pay", version="2"),
            "effect": with_tool(o.house, "pay", effect="mail"),
            "only reads": with_tool(o.house, "pay", risk=Risk.READ_ONLY, **dict.fromkeys(MEASURING)),
            "validation": with_tool(o.house, "pay", input=Pay),
            "gone": without(o.house, "pay"),
        }[change]
        assert may_run(o.house, approval)
        assert may_run(house, approval) == (change == "validation")  # which only the tool's own code knows
        outcome = await settle(house, approval.id, 1, 1, o.person(), "try_again")
        assert why(outcome) == "tool_changed"
        assert isinstance(await settle(house, approval.id, 1, 1, o.person(), "ran"), Settled)


async def test_of_a_stopped_run_it_is_settled_and_not_tried_again(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        approval = await lost(o)
        await cancel_run(o.house, approval.run_id, LEO)
        stopped = await o.approval(approval.id)
        assert (stopped.status, stopped.outcome) == (ApprovalStatus.UNKNOWN, approval.outcome)
        assert stopped.version > approval.version  # its card has a button less
        assert why(await says(o, approval, "try_again")) == "run_stopped"
        assert isinstance(await says(o, approval, "ran"), Settled)
        assert (await o.run(approval.run_id)).open_calls == 0


async def test_what_is_not_unknown_is_not_settled(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        assert why(await says(o, asked, "ran")) == "settled"
        assert why(await settle(o.house, "apr_made_up", 1, 1, o.person(), "ran")) == "unknown"
        assert (await o.approval(asked.id)).status is ApprovalStatus.PENDING


# --- reminders ---


async def test_people_are_asked_and_reminded_a_few_times_whoever_looks_and_however_often(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        approval = await lost(o)
        for hours in (0, 0.5, 1, 2, 4, 5, 12, 13, 24, 30, 72, 100, 500):
            o.shift_clock(f"{hours} hours 1 minute")
            await asyncio.gather(*(sweep(o.house) for _ in range(3)))
            await o.work()
        numbers = o.execute("SELECT data->'number' FROM notices WHERE kind = 'outcome_reminder' ORDER BY id")
        assert numbers == [(n,) for n in range(1, len(REMIND_AFTER) + 1)]
        assert (await o.events(approval.id)).count("approval.reminded") == len(REMIND_AFTER)
        assert (await audit.verify(o.house.db)).broken == ()


async def test_reminders_that_nobody_sent_are_not_made_up_for(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        await lost(o)
        o.shift_clock("13 hours")
        assert await sweep(o.house) == 2  # with the escalation
        assert o.execute("SELECT data->'number' FROM notices WHERE kind = 'outcome_reminder'") == [(4,)]
        assert await sweep(o.house) == 0


async def test_what_is_settled_is_not_reminded_of(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        await says(o, await lost(o), "ran")
        await o.work()
        o.shift_clock("5 hours")
        await o.sweep()
        assert o.execute("SELECT id FROM notices WHERE kind = 'outcome_reminder'") == []


# --- too late for the run ---


def told_texts(o: Office) -> list[str]:
    """The texts of the last message of the last request."""
    return [block["text"] for block in o.model.last_message if block["type"] == "text"]


async def test_a_late_settlement_is_told_in_the_thread_and_to_the_next_run_and_only_once(
    database: Database, tmp_path: Path
) -> None:
    whole = script(step(PAY), *(step(say(text)) for text in ("Nobody knows.", "Thank you.", "Nothing new.")))
    async with office(database, tmp_path, whole, repeatable=False) as o:
        approval = await lost(o)
        o.shift_clock(NEXT_DAY)
        await o.sweep()
        assert (await o.run(approval.run_id)).answer == "Nobody knows."
        assert isinstance(await says(o, approval, "did_not_run"), Settled)
        assert (await o.approval(approval.id)).outcome["late"] is True
        assert o.execute("SELECT data->>'approval_id' FROM notices WHERE kind = 'outcome_settled'") == [
            (approval.id,)
        ]
        assert (await o.result(approval))["unknown"] is True
        await o.start("And now?", key="ev2")
        await o.work()
        settled, task = told_texts(o)
        assert settled.startswith("Meanwhile a person settled an earlier call whose outcome was unknown: {")
        for words in ('"executed": false', '"settledBy": "Marta (support_lead)"', approval.provider_id):
            assert words in settled
        assert task == "And now?"
        await o.start("And?", key="ev3")
        await o.work()
        assert told_texts(o) == ["And?"]


async def test_a_settlement_after_the_run_was_stopped_is_the_calls_result_and_told_in_the_thread(
    database: Database, tmp_path: Path
) -> None:
    told = expect_results(lambda t: t[0]["executed"] is True)
    async with office(
        database, tmp_path, script(step(PAY), step(say("I see."), expect=told)), repeatable=False
    ) as o:
        approval = await lost(o)
        await cancel_run(o.house, approval.run_id, LEO)
        await says(o, approval, "ran")
        assert o.execute("SELECT count(*) FROM notices WHERE kind = 'outcome_settled'") == [(1,)]
        await o.start("What happened?", key="ev2")
        await o.work()
        assert told_texts(o) == ["What happened?"]
        assert Asked("", o.model.requests[-1]["messages"], ()).results[0]["settledBy"]


async def test_a_settlement_after_the_next_run_read_of_it_is_told_to_the_one_after(
    database: Database, tmp_path: Path
) -> None:
    unknown = expect_results(lambda t: t[0]["unknown"])
    first = script(step(PAY), step(say("Nobody knows."), expect=unknown), step(say("I see.")))
    async with office(database, tmp_path, first, repeatable=False) as o:
        approval = await lost(o)
        await cancel_run(o.house, approval.run_id, LEO)
        await o.start("What happened?", key="ev2")
        await o.work()
        await says(o, approval, "ran")
        await o.start("And now?", key="ev3")
        await o.work()
        assert [text[:9] for text in told_texts(o)] == ["Meanwhile", "And now?"]
