"""What must hold whatever happens, where no other test looks at it: one sentence of the design each."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from agent.decide import Recorded, Refused
from agent.scripted import call, say, script, step
from agent.tool import Context
from agent.usercode import UserCode, UserCodeTimeout
from store import approvals
from store.records import Approval, Vote
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import POLICY, Office, office, until, with_tool
from tests.integration.agent.test_worker import at_work, is_status

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("Done.")))


async def approved(o: Office) -> Approval:
    asked = await o.propose()
    await o.approve(asked)
    return asked


# 1: pause = end


async def test_a_paused_run_keeps_no_connection(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        await o.propose()
        assert o.house.db.pool.lent == 0


# 3: one winner


async def test_a_decision_of_a_row_that_is_no_longer_pending_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.execute("UPDATE approvals SET status = 'cancelled' WHERE id = %s", asked.id)
        marta = o.person().actor("support_lead")
        votes = (Vote(marta, "2026-11-30T00:00:00Z"),)
        assert await approvals.approve(o.house.db, asked, marta, votes, None) is None
        assert await approvals.vote(o.house.db, asked, marta, votes, None) is None
        assert (await o.approval(asked.id)).votes == ()


def let_the_next_click_read(row: Approval, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next reading gives `row`, which others have changed since; those after it the row as it is."""
    read, old = approvals.read, [row]

    async def late(db: Any, approval_id: str) -> Approval | None:
        return old.pop() if old else await read(db, approval_id)

    monkeypatch.setattr(approvals, "read", late)


async def test_a_click_that_lost_the_race_hears_who_was_first(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        await o.approve(asked, "U0M1")
        let_the_next_click_read(asked, monkeypatch)
        clicked = await o.approve(asked)
        assert isinstance(clicked, Refused)
        assert clicked.approval is not None
        assert clicked.approval.decided_by is not None
        assert (clicked.kind, clicked.approval.decided_by.user_id) == ("decided", "U0M1")
        assert len(o.execute("SELECT id FROM decisions")) == 1


async def test_a_vote_that_lost_the_race_is_counted_from_the_row_as_it_is_now(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = POLICY.replace("[roles.support_lead]", "quorum = 2\n[roles.support_lead]")
    async with office(database, tmp_path, ASKED, policy=policy) as o:
        asked = await o.propose()
        await o.approve(asked, "U0M1")
        let_the_next_click_read(asked, monkeypatch)
        clicked = await o.approve(asked)
        assert isinstance(clicked, Recorded)
        assert (clicked.missing, len(clicked.approval.votes)) == (0, 2)


# 5: once


async def test_a_key_is_not_attempted_while_an_older_attempt_is_inside_the_tool(
    database: Database, tmp_path: Path
) -> None:
    go_on = threading.Event()

    def hold(input: Any, ctx: Context) -> None:
        go_on.wait(20)

    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        worker = o.another_worker(house=with_tool(o.house, "pay", execute=hold, timeout="100ms"))
        await worker.work_off()
        o.shift_clock("1 minute")
        await worker.work_off()
        (one,) = await o.calls(asked.run_id)
        assert (one.attempts, (await o.events(asked.id)).count("attempt.started")) == (1, 1)
        go_on.set()


# 8: input is validated again


class Pay(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)

    @field_validator("bills")
    @classmethod
    def refuse_b2(cls, bills: list[str]) -> list[str]:
        """A rule that no schema shows."""
        if "b2" in bills:
            raise ValueError("b2 is closed")
        return bills


async def test_an_input_that_is_no_longer_valid_never_runs(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        stricter = with_tool(o.house, "pay", input=Pay)
        assert stricter.tools["pay"].schema_hash == asked.shown.schema_hash
        await o.another_worker(house=stricter).work_off()
        assert (await o.approval(asked.id)).status is ApprovalStatus.SUPERSEDED
        assert o.world.attempts == []


async def test_a_repeat_with_another_schema_is_unknown_and_runs_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("1 minute")
        await o.another_worker(house=with_tool(o.house, "pay", version="2")).work_off()
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN
        assert o.world.attempts == [1]


# 15: everything is on the record


@pytest.mark.parametrize("tool", ["tip", "look", "note"])
async def test_an_allowed_call_is_on_the_record_from_its_verdict_to_its_end(
    database: Database, tmp_path: Path, tool: str
) -> None:
    async with office(
        database, tmp_path, script(step(call(tool, {"bills": ["b1"]})), step(say("Done.")))
    ) as o:
        run = await o.start()
        await o.work()
        (one,) = await o.calls(run.id)
        events = [event.kind for event in await o.record(run.id) if event.call_id == one.id]
        assert events == ["call.allowed", "call.claimed", "attempt.started", "call.executed"]


# 17: user code cannot stop the house


async def test_a_timeout_holds_though_the_loop_of_user_code_is_blocked() -> None:
    go_on = threading.Event()

    async def blocks() -> None:
        go_on.wait(20)

    async with UserCode(threads=1) as user_code:
        try:
            async with asyncio.timeout(5):
                with pytest.raises(UserCodeTimeout):
                    await user_code.run("blocker", blocks, timeout=0.05)
        finally:
            go_on.set()


async def test_the_lease_is_renewed_while_the_tool_is_at_work(database: Database, tmp_path: Path) -> None:
    seen: set[Any] = set()

    async with office(database, tmp_path, DONE) as o:

        def hold(ctx: Context) -> None:
            deadline = time.monotonic() + 10
            while len(seen) < 3 and time.monotonic() < deadline:
                seen.update(o.execute("SELECT lease_until FROM calls"))
                time.sleep(0.05)

        asked = await approved(o)
        o.world.watch = hold
        async with at_work(o.another_worker(lease=1.0, sweep_every=3600.0)):
            await until(lambda: is_status(o, asked.run_id, RunStatus.COMPLETED), "it is done")
        assert len(seen) == 3


async def test_a_worker_whose_user_code_stays_stuck_leaves_to_be_restarted(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr("agent.worker.os._exit", left.append)
    async with office(database, tmp_path) as o:
        await o.worker._tick()
        assert left == []
        monkeypatch.setattr(UserCode, "must_exit", True)
        await o.worker._tick()
        assert left == [1]
