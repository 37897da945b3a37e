"""What the clock does, whoever looks at it and however many do."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import sweep as sweeping
from agent.leases import Leases
from agent.scripted import call, expect_results, say, script, step
from agent.sweep import sweep
from store import approvals, audit, calls, cards, runs
from store.errors import DatabaseUnavailable, StatementRefused
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, POLICY, approved, office

PAY = call("pay", {"bills": ["b1"]})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("Done.")))
LOOK = call("look", {"bills": ["b1"]})


async def test_an_approval_expires_at_its_deadline_and_not_before(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        o.shift_clock("23 hours 59 minutes")
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.PENDING
        o.shift_clock("24 hours 1 second")
        await o.sweep()
        after = await o.approval(asked.id)
        assert (after.status, after.decided_by) == (ApprovalStatus.EXPIRED, None)
        (event,) = [e for e in await o.record(asked.id) if e.kind == "approval.expired"]
        assert event.actor is not None
        assert event.actor.kind == "system"
        assert (await o.run(asked.run_id)).status is RunStatus.COMPLETED


async def test_it_may_wait_for_seven_days_also_when_clocks_go_forward_meanwhile(
    database: Database, tmp_path: Path
) -> None:
    policy = POLICY.replace("[defaults]", '[defaults]\nexpires_after = "7d"')
    async with office(database, tmp_path, ASKED, policy=policy) as o:
        o.execute(f"ALTER DATABASE {database.name} SET timezone = 'Europe/Madrid'")
        [(ahead,)] = o.execute("SELECT timestamptz '2027-03-27 12:00+00' - now()")
        o.shift_clock(f"{ahead.total_seconds()} seconds")
        asked = await o.propose()
        assert (asked.expires_at - asked.created_at).total_seconds() == 7 * 24 * 3600


async def test_an_approved_call_that_nobody_claims_in_time_expires_without_a_veto(
    database: Database, tmp_path: Path
) -> None:
    late = script(step(PAY), step(say("Too late."), expect=expect_results(lambda told: told[0]["expired"])))
    async with office(database, tmp_path, late) as o:
        asked = await o.propose()
        await o.approve(asked)
        o.shift_clock("1 hour 1 second")
        await o.work()
        await o.sweep()
        assert ((await o.approval(asked.id)).status, o.world.attempts) == (ApprovalStatus.EXPIRED, [])
        assert o.execute("SELECT id FROM vetoes") == []
        assert "Nobody refused it" in (await o.result(asked))["instruction"]


async def test_an_escalation_sends_a_copy_of_the_card_to_each_person(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.shift_clock("4 hours 1 second")
        await sweep(o.house)
        await sweep(o.house)
        copies = await cards.of_approvals(o.house.db, [asked.id])
        assert [(card.channel_id, card.user_id) for card in copies] == [
            ("C0APPROVALS", None),
            (None, "U0ANA"),
        ]
        after = await o.approval(asked.id)
        assert {card.wanted_version for card in copies} == {after.version}
        assert (await o.events(asked.id)).count("approval.escalated") == 1


async def test_an_escalation_asks_nobody_for_what_they_asked_for_themselves(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose(requester=replace(LEO, user_id="U0ANA"))
        o.shift_clock("4 hours 1 second")
        await sweep(o.house)
        copies = await cards.of_approvals(o.house.db, [asked.id])
        assert [(card.channel_id, card.user_id) for card in copies] == [("C0APPROVALS", None)]
        assert (await o.events(asked.id)).count("approval.escalated") == 1


async def test_no_escalation_comes_at_or_after_the_deadline(database: Database, tmp_path: Path) -> None:
    policy = POLICY.replace("[roles.support_lead]", 'expires_after = "2h"\n[roles.support_lead]')
    async with office(database, tmp_path, DONE, policy=policy) as o:
        asked = await o.propose()
        o.shift_clock("5 hours")
        await o.sweep()
        after = await o.approval(asked.id)
        assert (after.status, after.escalated_at) == (ApprovalStatus.EXPIRED, None)


async def test_sweeps_of_many_workers_at_once_do_each_thing_once(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        for number in range(4):
            await o.start(key=f"ev{number}", thread=f"1.{number}")
        await o.work()
        o.shift_clock("4 hours 1 second")
        await asyncio.gather(*(sweep(o.house) for _ in range(4)))
        assert o.execute("SELECT count(*) FROM cards WHERE user_id = 'U0ANA'") == [(4,)]
        o.shift_clock("24 hours 1 second")
        await asyncio.gather(*(sweep(o.house) for _ in range(4)))
        assert o.execute("SELECT count(*) FROM audit_events WHERE kind = 'approval.expired'") == [(4,)]
        await o.work()
        assert (await audit.verify(o.house.db)).broken == ()


async def test_a_run_whose_worker_is_gone_goes_on_elsewhere(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        run = await o.start()
        assert await runs.claim(o.house.db, token="dead", worker="w-dead", lease=15) == run.id
        await o.sweep()
        assert (await o.run(run.id)).status is RunStatus.RUNNING
        o.shift_clock("16 seconds")
        await o.sweep()
        assert (await o.run(run.id)).answer == "Hello."
        assert "run.lease_lost" in await o.events(run.id)


@pytest.mark.parametrize("proposed", [LOOK, call("tip", {"bills": ["b1"]})])
async def test_an_allowed_call_whose_worker_died_before_it_was_executed_is_not_lost(
    database: Database, tmp_path: Path, proposed: Any
) -> None:
    async with office(database, tmp_path, script(step(proposed), step(say("Done.")))) as o:
        run = await o.start()
        with pytest.MonkeyPatch.context() as patch:

            async def killed(*args: Any, **values: Any) -> Any:
                raise KeyError("as if the process had been killed here")

            patch.setattr(calls, "start_attempt", killed)
            await o.work()
        assert await o.statuses(run.id) == ["executing"]
        o.shift_clock("16 seconds")
        await o.sweep()
        o.shift_clock("20 seconds")
        await o.sweep()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED
        assert len(o.world.attempts) + o.world.looks == 1


async def test_a_renewed_lease_is_not_recovered(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        await o.approve(asked)
        claimed = await calls.claim(o.house.db, token="alive", worker="w-alive", lease=15)
        assert claimed is not None
        o.shift_clock("10 seconds")
        with o.worker.leases.holding("alive"):
            await o.worker.leases.renew()
        o.shift_clock("16 seconds")
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTING


async def test_a_lease_that_was_lost_is_let_go(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path) as o:
        with o.worker.leases.holding("never claimed"):
            await o.worker.leases.renew()
            assert o.worker.leases._held == set()


async def test_a_quiet_house_has_nothing_to_sweep(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        await o.approve(await o.propose())
        await o.work()
        assert await sweep(o.house) == 0


def failing_first(whole: Any, fault: Exception) -> Any:
    """The same function, but with this fault for whatever it is first called with."""
    seen: list[str] = []

    async def moved(house: Any, row: Any, *more: Any, **values: Any) -> Any:
        seen.append(row.id)
        if row.id == seen[0]:
            raise fault
        return await whole(house, row, *more, **values)

    return moved


@pytest.mark.parametrize("fault", [KeyError("odd"), StatementRefused("odd", "22003")])
async def test_an_approval_that_cannot_be_swept_hides_no_other(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fault: Exception,
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        for number in range(3):
            await o.start(key=f"ev{number}", thread=f"1.{number}")
        await o.work()
        for function, clock in (("escalate", "4 hours 1 second"), ("expire", "24 hours 1 second")):
            o.shift_clock(clock)
            with monkeypatch.context() as patch:
                patch.setattr(approvals, function, failing_first(getattr(approvals, function), fault))
                assert await sweep(o.house) == 2
            assert "odd" in "".join(capsys.readouterr())
            assert await sweep(o.house) == 1


async def test_a_call_that_cannot_be_swept_hides_no_other(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay_what_is_named = script(step(call("pay", lambda asked: {"bills": asked.text.split()[-1:]})))
    async with office(database, tmp_path, pay_what_is_named) as o:
        for bill in ("b1", "b2"):
            await o.start(f"Pay {bill}", key=bill, thread=f"1.{bill}")
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)
            assert await calls.claim(o.house.db, token=f"dead {asked.id}", worker="w-dead", lease=15)
        o.shift_clock("16 seconds")
        with monkeypatch.context() as patch:
            patch.setattr(sweeping, "_recover", failing_first(sweeping._recover, KeyError("odd")))
            assert await sweep(o.house) == 1
        assert await sweep(o.house) == 1


async def test_a_step_that_fails_whole_hides_no_other_step(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        await o.propose()
        o.shift_clock("4 hours 1 second")

        async def fail(*args: Any) -> Any:
            raise KeyError("odd")

        monkeypatch.setattr(approvals, "due", fail)
        assert await sweep(o.house) == 1


async def test_a_database_that_is_away_ends_the_round(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        await o.propose()
        o.shift_clock("24 hours 1 second")
        monkeypatch.setattr(approvals, "expire", failing_first(approvals.expire, DatabaseUnavailable("away")))
        with pytest.raises(DatabaseUnavailable):
            await sweep(o.house)


async def test_a_call_that_is_lost_before_its_attempt_again_and_again_is_taken_up_later_each_time(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(PAY))) as o:
        await approved(o)
        ahead, pauses = 0.0, []
        for _ in range(4):
            assert (
                await calls.claim(o.house.db, token=Leases.new_token(), worker="dies", lease=1.0) is not None
            )
            ahead += 2.0
            o.shift_clock(f"{ahead} seconds")
            await sweep(o.house)
            [(pause,)] = o.execute("SELECT extract(epoch FROM not_before - house_now())::float FROM calls")
            pauses.append(pause)
            ahead += pause + 1.0
            o.shift_clock(f"{ahead} seconds")
        assert pauses[0] <= 0 and [round(pause) for pause in pauses[1:]] == [4, 8, 16]
