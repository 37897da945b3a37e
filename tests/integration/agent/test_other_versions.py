"""A row that only another version can read stops no worker, and hides no other row."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.drift import withdraw_outdated
from agent.leases import Leases
from agent.scripted import call, say, script, step
from agent.sweep import sweep
from store import approvals, calls
from store.errors import WrittenByNewer
from store.records import Approval
from store.transitions import ApprovalStatus, CallStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office

TWO = script(step(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]})))

ONE_EACH = [
    script(
        step(call("pay", {"bills": [bill]})), step(say("Done.")), when=lambda text, bill=bill: bill in text
    )
    for bill in ("b1", "b2")
]


def by_a_newer(o: Office, approval: Approval) -> None:
    """A newer release, deployed beside this one, has stored a rule with one key more."""
    o.execute("UPDATE approvals SET rule = rule || '{\"weight\": 1}' WHERE id = %s", approval.id)


def by_this(o: Office, approval: Approval) -> None:
    o.execute("UPDATE approvals SET rule = rule - 'weight' WHERE id = %s", approval.id)


async def two_asked(o: Office) -> list[Approval]:
    await o.start()
    await o.work()
    return await o.all_asked()


async def asked_by_two_runs(o: Office) -> list[Approval]:
    for bill in ("b1", "b2"):
        await o.start(bill, key=bill, thread=bill)
        await o.work()
    return await o.all_asked()


async def test_its_call_is_given_back_at_once_and_another_run_s_is_executed(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, *ONE_EACH) as o:
        newer, own = await asked_by_two_runs(o)
        await o.approve(newer)
        await o.approve(own)
        by_a_newer(o, newer)
        with pytest.raises(WrittenByNewer, match=f"{newer.id} was written by another version"):
            await o.work()
        assert [(one.status, one.attempts) for one in await o.calls(newer.run_id)] == [(CallStatus.ASKED, 0)]
        await o.work()
        assert o.world.paid == ["b2"]
        by_this(o, newer)
        o.shift_clock(f"{calls.LEFT_TO_NEWER + 1} seconds")
        await o.work()
        assert o.world.paid == ["b2", "b1"]


async def test_it_hides_no_other_from_the_clock_or_at_a_worker_s_start(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, TWO) as o:
        newer, own = await two_asked(o)
        by_a_newer(o, newer)
        assert await withdraw_outdated(o.house) == 0
        o.shift_clock("5 hours")
        await sweep(o.house)
        assert (await o.approval(own.id)).escalated_at is not None
        o.shift_clock("25 hours")
        await sweep(o.house)
        assert (await o.approval(own.id)).status is ApprovalStatus.EXPIRED


async def test_a_whole_page_of_them_hides_none_behind_it(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, TWO) as o:
        newer, own = sorted(await two_asked(o), key=lambda approval: approval.id)
        by_a_newer(o, newer)
        assert [a.id for a in await approvals.pending_after(o.house.db, "", limit=1)] == [own.id]
        assert await approvals.pending_after(o.house.db, own.id, limit=1) == []
        o.shift_clock("5 hours")
        assert [a.id for a in await approvals.to_escalate(o.house.db, limit=1)] == [own.id]
        o.shift_clock("25 hours")
        assert [a.id for a in await approvals.due(o.house.db, limit=1)] == [own.id]


async def test_votes_in_another_form_are_another_version_s_too(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, TWO) as o:
        newer, _ = await two_asked(o)
        o.execute("UPDATE approvals SET votes = '[{\"who\": 1}]' WHERE id = %s", newer.id)
        with pytest.raises(WrittenByNewer, match="run the newer one"):
            await o.approval(newer.id)


async def test_nor_is_the_clock_stopped_by_one_whose_worker_is_gone_or_whose_outcome_is_unknown(
    database: Database, tmp_path: Path
) -> None:
    async with office(
        database, tmp_path, *(replace(one, steps=one.steps[:1]) for one in ONE_EACH), repeatable=False
    ) as o:
        newer, own = await asked_by_two_runs(o)
        await o.approve(newer)
        token = Leases.new_token()
        claimed = await calls.claim(o.house.db, token=token, worker="newer", lease=1.0)
        assert claimed is not None
        assert await calls.start_attempt(o.house.db, claimed, key="k", repeatable=False, lease=1.0)
        by_a_newer(o, newer)
        o.shift_clock("30 hours")
        await sweep(o.house)
        assert (await o.approval(own.id)).status is ApprovalStatus.EXPIRED
        by_this(o, newer)
        await sweep(o.house)
        assert (await o.approval(newer.id)).status is ApprovalStatus.UNKNOWN
