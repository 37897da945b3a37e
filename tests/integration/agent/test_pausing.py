"""A run that asks ends there, and what runs later is what was shown."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agent.canonical import digest
from agent.scripted import call, expect_results, say, script, step
from agent.tool import always_ask, forbid_when
from store import calls
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office, with_tool, without

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
WITHDRAWN = script(
    step(PAY),
    step(
        say("It changed."),
        expect=expect_results(lambda told: told[0]["superseded"] and not told[0]["executed"]),
    ),
)


async def test_nothing_of_a_run_is_left_in_the_process_that_asked(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(PAY))) as o:
        await o.work()
        tasks, threads = asyncio.all_tasks(), threading.active_count()
        asked = await o.propose()
        assert asyncio.all_tasks() == tasks
        assert threading.active_count() == threads
        assert (o.worker.leases._held, o.worker._busy) == (set(), set())
        busy = o.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND usename = 'vistobueno_app' AND state <> 'idle'"
        )
        held = o.execute("SELECT token, lease_until FROM runs WHERE id = %s", asked.run_id)
        assert (busy, held) == ([(0,)], [(None, None)])
        assert (await o.run(asked.run_id)).status is RunStatus.AWAITING_APPROVAL


async def test_another_process_goes_on_where_the_first_stopped(database: Database, tmp_path: Path) -> None:
    done = script(step(PAY), step(say("Paid.")))
    async with office(database, tmp_path, done) as first:
        asked = await first.propose()
        async with office(database, tmp_path, done) as second:
            first.model.scripted.scripts = ()
            await second.approve(await second.asked())
            await second.work()
            assert (await second.approval(asked.id)).status is ApprovalStatus.EXECUTED
            second.model.scripted.used.add((0, 0))


async def tampered(o: Office, statement: str) -> None:
    asked = await o.propose()
    o.execute("ALTER TABLE revisions DISABLE TRIGGER USER")
    o.execute(statement, asked.id)
    await o.approve(asked)
    await o.work()
    after = await o.approval(asked.id)
    assert (after.status, o.world.attempts) == (ApprovalStatus.SUPERSEDED, [])
    assert after.attempted is False


@pytest.mark.parametrize(
    "change",
    [
        """input = '{"bills": ["b1", "b9"]}'""",
        """items = '{b1,b9}'""",
        """facts = jsonb_set(facts, '{count}', '1')""",
        """preview = jsonb_set(preview, '{title}', '"Pay 1 bill"')""",
        """precondition = '{"bills due": 1}'""",
        "schema_hash = 'another'",
        "preview_hash = 'another'",
        "input_hash = 'another'",
        "items_digest = 'another'",
    ],
)
async def test_a_stored_revision_that_was_changed_never_runs(
    database: Database, tmp_path: Path, change: str
) -> None:
    async with office(database, tmp_path, WITHDRAWN) as o:
        await tampered(o, f"UPDATE revisions SET {change} WHERE approval_id = %s")


async def test_an_input_that_was_changed_with_its_hash_does_not_fit_its_facts(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, WITHDRAWN) as o:
        forged = digest({"bills": ["b1", "b9"]})
        change = f"""input = '{{"bills": ["b1", "b9"]}}', input_hash = '{forged}'"""
        await tampered(o, f"UPDATE revisions SET {change} WHERE approval_id = %s")


class PayMore(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)
    fast: bool = False


HOUSES: dict[str, Any] = {
    "the tool is gone": lambda house: without(house, "pay"),
    "its schema changed": lambda house: with_tool(house, "pay", input=PayMore),
    "its version changed": lambda house: with_tool(house, "pay", version="2"),
    "its policy forbids": lambda house: with_tool(
        house, "pay", policy=(always_ask, forbid_when(lambda i, f: f.count > 1, "one at a time"))
    ),
}


@pytest.mark.parametrize("change", HOUSES)
async def test_a_house_that_changed_while_the_call_waited_withdraws_it(
    database: Database, tmp_path: Path, change: str
) -> None:
    async with office(database, tmp_path, WITHDRAWN) as o:
        asked = await o.propose()
        await o.approve(asked)
        await o.another_worker(house=HOUSES[change](o.house)).work_off()
        after = await o.approval(asked.id)
        assert (after.status, o.world.attempts) == (ApprovalStatus.SUPERSEDED, [])
        assert (await o.result(asked))["reason"]
        assert (await o.run(asked.run_id)).status is RunStatus.COMPLETED


async def test_an_allowed_call_whose_facts_moved_before_it_ran_does_not_run(
    database: Database, tmp_path: Path
) -> None:
    async with office(
        database, tmp_path, script(step(call("tip", {"bills": ["b1"]})), step(say("Moved.")))
    ) as o:
        run = await o.start()
        claim = calls.claim_allowed

        async def dearer(*args: Any, **values: Any) -> Any:
            o.world.price = 11
            return await claim(*args, **values)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(calls, "claim_allowed", dearer)
            await o.work()
        (tip,) = await o.calls(run.id)
        assert (tip.status, o.world.attempts) == ("superseded", [])
        assert {moved["kind"] for moved in tip.result["content"]["moved"]} == {"amount"}
