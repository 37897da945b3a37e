"""What the model reads of its call, for each way in which that can end."""

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest

from agent.decide import Recorded, confirm_draft
from agent.edit import draft_edit
from agent.scripted import Asked, call, say, script, step
from agent.settle import settle
from agent.start import cancel_run
from agent.sweep import sweep
from agent.tool import ToolError
from store.records import Approval, Draft
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, POLICY, Office, office, until
from tests.integration.agent.test_deciding import waiting_for_locks

PAY = call("pay", {"bills": ["b1", "b2"]})
DONE = script(step(PAY), step(say("That is all.")))
TWO_MUST_APPROVE = POLICY.replace("[roles.s", "quorum = 2\n[roles.s")


async def read(o: Office, asked: Approval) -> Any:
    """Work on, and give the one result that the model was told."""
    await o.work()
    (told,) = Asked("", o.model.requests[-1]["messages"], ()).results
    assert told == await o.result(asked)
    return told


async def test_executed(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.approve(asked)
        told = await read(o, asked)
        assert (told["ok"], told["executed"], told["edited"]) == (True, True, False)
        assert told["approvedBy"] == "Marta (support_lead)"
        assert (told["executedInput"], told["data"]) == ({"bills": ["b1", "b2"]}, {"paid": 2})
        assert (told["itemsDone"], told["itemsNotDone"]) == (["b1", "b2"], [])


async def test_executed_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        draft = await draft_edit(o.house, asked.id, 1, o.person(), {"bills": ["b1"]})
        assert isinstance(draft, Draft)
        await confirm_draft(o.house, draft.id, o.person())
        told = await read(o, asked)
        assert (told["requestedInput"], told["executedInput"]) == ({"bills": ["b1", "b2"]}, {"bills": ["b1"]})
        assert told["edited"] is True


async def test_rejected(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.reject(asked, "Wrong month.")
        told = await read(o, asked)
        assert told.keys() == {
            "ok", "approvalDenied", "toolName", "deniedBy", "reason", "executed", "instruction"
        }  # fmt: skip
        assert (told["deniedBy"], told["reason"]) == ("Marta (support_lead)", "Wrong month.")
        for ingredient in ("A person decided", "smaller batches", "another tool", "end your turn"):
            assert ingredient in told["instruction"]


async def test_expired(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        o.shift_clock("25 hours")
        await o.sweep()
        told = await read(o, asked)
        assert (told["expired"], told["approvalDenied"], told["deniedBy"]) == (True, True, None)


async def test_superseded(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.approve(asked)
        o.world.due = 41
        told = await read(o, asked)
        assert (told["superseded"], told["executed"]) == (True, False)
        assert told["moved"] == [{"kind": "precondition", "name": "bills due", "was": 38, "is": 41}]
        assert "approvalDenied" not in told


async def test_superseded_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await edited(o)
        o.world.due = 41
        told = await read(o, asked)
        assert (told["superseded"], told["executed"], told["edited"]) == (True, False, True)
        assert says_what_is_left_out(told)
        assert "Nobody refused it" in told["instruction"]


async def edited(o: Office) -> Approval:
    """Marta has left one bill of two, and approved that."""
    asked = await o.propose()
    draft = await draft_edit(o.house, asked.id, 1, o.person(), {"bills": ["b1"]})
    assert isinstance(draft, Draft)
    await confirm_draft(o.house, draft.id, o.person())
    return asked


async def edited_and_lost(o: Office) -> Approval:
    """The same, and the answer of its only attempt was lost."""
    asked = await edited(o)
    o.world.fail = [RuntimeError("lost")]
    await o.work()
    return asked


def says_what_was_edited(told: Any) -> bool:
    """Whether the model reads what was asked, and what Marta made of it."""
    inputs = told["requestedInput"], told["editedInput"]
    return (inputs, told["editedBy"]) == (
        ({"bills": ["b1", "b2"]}, {"bills": ["b1"]}),
        "Marta (support_lead)",
    )


def says_what_is_left_out(told: Any) -> bool:
    """Whether it also reads that she decided that."""
    return says_what_was_edited(told) and "do not ask again for what they left out" in told["instruction"]


def latest(o: Office) -> Any:
    """The content of the last message that the model was sent."""
    return o.model.requests[-1]["messages"][-1]["content"]


async def test_failed_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await edited(o)
        o.world.refuse = [ToolError("The bank is closed.")]
        told = await read(o, asked)
        assert (told["failed"], told["executed"]) == (True, False)
        assert (told["editedInput"], "left out" in told["instruction"]) == ({"bills": ["b1"]}, True)


async def test_failed_in_part_after_an_edit_does_not_ask_to_keep_to_what_is_done(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await edited(o)
        o.world.refuse = [ToolError("The bank closed.", done=["b1"])]
        told = await read(o, asked)
        assert told["itemsDone"] == ["b1"]
        assert says_what_is_left_out(told) and "keep to it" not in told["instruction"]


async def test_settled_as_run_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        asked = await edited_and_lost(o)
        await settle(o.house, asked.id, 2, 1, o.person(), "ran")
        told = await read(o, asked)
        assert (told["executed"], told["executedInput"]) == (True, {"bills": ["b1"]})
        assert says_what_is_left_out(told) and "keep to it" not in told["instruction"]


@pytest.mark.parametrize("said", ["ran", "did_not_run"])
async def test_settled_late_after_an_edit(
    database: Database, tmp_path: Path, said: Literal["ran", "did_not_run"]
) -> None:
    answers = script(step(PAY), step(say("Nobody knows.")), step(say("It is noted.")))
    async with office(database, tmp_path, answers, repeatable=False) as o:
        asked = await edited_and_lost(o)
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        await o.work()
        await settle(o.house, asked.id, 2, 1, o.person(), said)
        await o.begin("What now?", key="ev2")
        await o.work()
        told = json.loads(latest(o)[0]["text"].partition(": ")[2])
        assert told["executed"] is (said == "ran")
        assert says_what_is_left_out(told)


async def test_stopped_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(PAY), step(say("It is noted.")))) as o:
        asked = await edited(o)
        await cancel_run(o.house, asked.run_id, LEO)
        await o.begin("Do it after all.", key="ev2")
        await o.work()
        (told,) = Asked("", o.model.requests[-1]["messages"], ()).results
        assert (told["cancelled"], told["executed"]) == (True, False)
        assert says_what_is_left_out(told)


async def test_refused_with_leave_to_try_again_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_MUST_APPROVE) as o:
        asked = await edited(o)
        await o.reject(await o.approval(asked.id), "After the 5th.", user="U0M1", may_retry=True)
        told = await read(o, asked)
        assert (told["approvalDenied"], told["reason"]) == (True, "After the 5th.")
        assert says_what_was_edited(told)
        assert told["instruction"].endswith("It is this that was refused.")


async def test_expired_after_an_edit_that_one_more_had_to_approve(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_MUST_APPROVE) as o:
        asked = await edited(o)
        o.shift_clock("25 hours")
        await o.sweep()
        told = await read(o, asked)
        assert (told["approvalDenied"], told["expired"]) == (True, True)
        assert says_what_was_edited(told)
        assert told["instruction"].endswith("It is this that was refused.")


async def test_expired_after_an_edit_that_began_in_time(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_MUST_APPROVE) as o:
        asked = await o.propose()
        draft = await draft_edit(o.house, asked.id, 1, o.person(), {"bills": ["b1"]})
        assert isinstance(draft, Draft)
        with psycopg.connect(o.owner_url) as held:
            held.execute("SELECT FROM approvals WHERE id = %s FOR UPDATE", [asked.id])
            confirming = asyncio.create_task(confirm_draft(o.house, draft.id, o.person()))
            await until(lambda: waiting_for_locks(o, 1), "the edit is sent")
            o.shift_clock("25 hours")
            sweeping = asyncio.create_task(sweep(o.house))
            await until(lambda: waiting_for_locks(o, 2), "the sweep waits for it")
        assert isinstance(await confirming, Recorded)
        await sweeping
        told = await read(o, asked)
        assert (told["expired"], says_what_was_edited(told)) == (True, True)


async def test_who_changed_it_is_named_and_not_who_took_it_over(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_MUST_APPROVE) as o:
        asked = await edited(o)
        o.world.price = 20
        draft = await draft_edit(o.house, asked.id, 2, o.person("U0M1"), {"bills": ["b1"]})
        assert isinstance(draft, Draft)
        await confirm_draft(o.house, draft.id, o.person("U0M1"))
        third = await o.approval(asked.id)
        assert third.revision == 3 and third.author is not None and third.author.user_id == "U0M1"
        o.shift_clock("25 hours")
        await o.sweep()
        assert says_what_was_edited(await read(o, asked))


async def test_unknown_after_an_edit(database: Database, tmp_path: Path) -> None:
    answers = script(step(PAY), step(say("Nobody knows.")))
    async with office(database, tmp_path, answers, repeatable=False) as o:
        asked = await edited_and_lost(o)
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        told = await read(o, asked)
        assert (told["unknown"], told["executed"]) == (True, None)
        assert says_what_is_left_out(told) and "keep to it" not in told["instruction"]


async def test_unknown_after_an_edit_and_a_stop(database: Database, tmp_path: Path) -> None:
    answers = script(step(PAY), step(say("It is noted.")))
    async with office(database, tmp_path, answers, repeatable=False) as o:
        asked = await edited_and_lost(o)
        await cancel_run(o.house, asked.run_id, LEO)
        await o.begin("What now?", key="ev2")
        await o.work()
        (told,) = Asked("", o.model.requests[-1]["messages"], ()).results
        assert (told["unknown"], told["executed"]) == (True, None)
        assert says_what_is_left_out(told)


async def test_not_started_in_time_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await edited(o)
        o.shift_clock("25 hours")
        await sweep(o.house)
        told = await read(o, asked)
        assert (told["expired"], told["executed"]) == (True, False)
        assert (told["editedInput"], "left out" in told["instruction"]) == ({"bills": ["b1"]}, True)


async def test_settled_as_not_run_after_an_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        asked = await edited_and_lost(o)
        assert await settle(o.house, asked.id, 2, 1, o.person(), "did_not_run")
        told = await read(o, asked)
        assert (told["settledBy"], told["executed"]) == ("Marta (support_lead)", False)
        assert (told["editedInput"], "left out" in told["instruction"]) == ({"bills": ["b1"]}, True)


async def test_unknown_stays_open_until_a_day_has_passed_and_then_has_one_closing_answer(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE, repeatable=False) as o:
        asked = await o.propose()
        await o.approve(asked)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("23 hours")
        await o.sweep()
        assert (await o.calls(asked.run_id))[0].result is None
        assert len(o.model.requests) == 1
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        told = Asked("", o.model.requests[-1]["messages"], ()).results[0]
        assert (told["unknown"], told["executed"]) == (True, None)
        assert o.model.requests[-1]["tool_choice"] == {"type": "none"}
        run, after = await o.run(asked.run_id), await o.approval(asked.id)
        assert (run.status, run.answer) == (RunStatus.COMPLETED, "That is all.")
        assert (after.status, after.version > asked.version) == (ApprovalStatus.UNKNOWN, True)
        assert len(o.execute("SELECT item FROM held_items")) == 2


async def test_a_settlement_after_that_changes_the_row_and_not_what_was_told(
    database: Database, tmp_path: Path
) -> None:
    from store import calls

    async with office(database, tmp_path, DONE, repeatable=False) as o:
        asked = await o.propose()
        await o.approve(asked)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        assert await calls.settle(
            o.house.db, asked.call_id, LEO, ran=False, result={}, outcome={"kind": "settled"}
        )
        assert (await o.approval(asked.id)).status is ApprovalStatus.FAILED
        assert (await o.result(asked))["unknown"] is True
        assert (await o.run(asked.run_id)).open_calls == 0
        assert o.execute("SELECT item FROM held_items") == []


async def test_cancelled(database: Database, tmp_path: Path) -> None:
    next_run = script(step(PAY), step(say("It was stopped.")))
    async with office(database, tmp_path, next_run) as o:
        asked = await o.propose()
        await cancel_run(o.house, asked.run_id, LEO)
        await o.start(text="What happened?", key="ev2")
        told = await read(o, asked)
        assert (told["cancelled"], told["executed"], told["toolName"]) == (True, False, "pay")


async def test_no_id_of_slack_is_told(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await o.approve(asked)
        await o.work()
        assert "U0" not in str(o.model.requests)
