"""A tool that only reads can have done nothing: its calls fail, and nobody is asked what became of them."""

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent.execute import MOST_ATTEMPTS
from agent.scripted import call, say, script, step
from agent.settle import settle
from agent.start import cancel_run
from agent.sweep import sweep
from agent.tool import Context, Risk
from store import calls
from store.errors import DatabaseUnavailable
from store.transitions import ApprovalStatus, CallStatus
from tests.databases import Database
from tests.integration.agent.office import LEO, Office, approved, office, with_tool, without

BILLS = ["b1", "b2"]
ASKED = script(step(call("pay", {"bills": BILLS})))
LOOK = script(step(call("look", {"bills": BILLS})), step(say("It cannot be read.")))
MEASURING = ("facts", "policy", "preview", "precondition")


async def die_while_it_looks(o: Office, minutes: Iterable[int]) -> None:
    """Workers, one a minute, are gone while `look` is inside its tool."""
    gone = "UPDATE calls SET token = 'killed' WHERE status = 'executing'"
    house = with_tool(o.house, "look", execute=lambda input, ctx: o.execute(gone))
    for minute in minutes:
        await o.another_worker(house=house).work_off()
        o.shift_clock(f"{minute} minutes")
        await sweep(o.house)


async def test_a_tool_that_only_reads_and_whose_workers_die_has_failed_and_asks_nobody(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, LOOK) as o:
        run = await o.start()
        await die_while_it_looks(o, range(1, MOST_ATTEMPTS))
        assert await o.statuses(run.id) == ["allowed"]
        await die_while_it_looks(o, [MOST_ATTEMPTS])
        await o.work()
        [one] = await o.calls(run.id)
        assert (one.status, one.attempts) == (CallStatus.FAILED, MOST_ATTEMPTS)
        assert one.result["content"]["error"] == "The worker that executed it is gone."
        assert o.execute("SELECT id FROM approvals") == []
        assert (await o.run(run.id)).answer == "It cannot be read."


async def test_a_tool_that_only_reads_and_whose_run_was_stopped_asks_nobody(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(call("look", {"bills": BILLS})))) as o:
        run = await o.start()
        await die_while_it_looks(o, [1])
        await cancel_run(o.house, run.id, LEO)
        await sweep(o.house)
        assert await o.statuses(run.id) == ["failed"]
        assert o.execute("SELECT id FROM approvals") == []


async def test_a_tool_that_only_reads_is_not_asked_about_when_its_first_attempt_is_long_ago(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, LOOK) as o:
        run = await o.start()
        await die_while_it_looks(o, [1])
        o.shift_clock("25 hours")
        await o.work()
        assert (await o.statuses(run.id), o.execute("SELECT id FROM approvals")) == (["failed"], [])


async def test_what_people_were_asked_for_ends_with_its_approval_though_its_tool_only_reads_by_now(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        reads = with_tool(o.house, "pay", risk=Risk.READ_ONLY, repeatable=False, **dict.fromkeys(MEASURING))
        gone = "UPDATE calls SET token = 'killed' WHERE status = 'executing'"
        dying = with_tool(o.house, "pay", execute=lambda input, ctx: o.execute(gone))
        await o.another_worker(house=dying).work_off()
        await cancel_run(o.house, asked.run_id, LEO)
        o.shift_clock("1 minute")
        await sweep(reads)
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN


async def die_inside(o: Office, tool: str) -> None:
    """A worker is gone while it is inside this tool, and its claim with it."""
    gone = "UPDATE calls SET token = 'killed' WHERE status = 'executing'"
    house = with_tool(o.house, tool, execute=lambda input, ctx: o.execute(gone))
    await o.another_worker(house=house).work_off()
    o.shift_clock("1 minute")
    await sweep(o.house)


@pytest.mark.parametrize("by_now", [{"risk": Risk.READ_ONLY} | dict.fromkeys(MEASURING), {"effect": "mail"}])
async def test_what_was_begun_is_not_gone_on_with_as_another_thing(
    database: Database, tmp_path: Path, by_now: dict[str, Any]
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        await die_inside(o, "pay")
        assert (await o.approval(asked.id)).status is ApprovalStatus.APPROVED
        begun: list[object] = []
        other = with_tool(o.house, "pay", execute=lambda input, ctx: begun.append(input), **by_now)
        o.shift_clock("1 hour")
        await o.another_worker(house=other).work_off()
        approval = await o.approval(asked.id)
        assert (approval.status, begun) == (ApprovalStatus.UNKNOWN, [])
        assert approval.outcome is not None
        assert approval.outcome["text"] == "It was attempted, and pay has changed since."


async def test_nor_where_a_person_lets_it_be_tried_again(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.refuse = [RuntimeError("connection reset")]
        await o.work()
        await settle(o.house, asked.id, 1, 1, o.person(), "try_again")
        reads = with_tool(o.house, "pay", risk=Risk.READ_ONLY, **dict.fromkeys(MEASURING))
        await o.another_worker(house=reads).work_off()
        assert ((await o.approval(asked.id)).status, o.world.paid) == (ApprovalStatus.UNKNOWN, [])


async def test_nor_where_nobody_was_asked(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(call("tip", {"bills": ["b1"]})))) as o:
        run = await o.start()
        await die_inside(o, "tip")
        o.shift_clock("1 hour")
        reads = with_tool(o.house, "tip", risk=Risk.READ_ONLY, **dict.fromkeys(MEASURING))
        await o.another_worker(house=reads).work_off()
        assert (await o.statuses(run.id), o.world.paid) == (["unknown"], [])


@pytest.mark.parametrize("after", ["its version changed", "it is gone", "it changes something now"])
async def test_a_tool_that_only_read_and_has_changed_since_has_failed(
    database: Database, tmp_path: Path, after: str
) -> None:
    async with office(database, tmp_path, LOOK) as o:
        run = await o.start()
        await die_while_it_looks(o, [1])
        house = {
            "its version changed": with_tool(o.house, "look", version="2"),
            "it is gone": without(o.house, "look"),
            "it changes something now": with_tool(o.house, "look", risk=Risk.IRREVERSIBLE, repeatable=True),
        }[after]
        o.shift_clock("1 hour")
        await o.another_worker(house=house).work_off()
        assert (await o.statuses(run.id), o.execute("SELECT id FROM approvals")) == (["failed"], [])
        [told] = await o.calls(run.id)
        assert told.result["content"]["error"] == "It was attempted, and look has changed since."


async def test_a_call_that_held_items_and_only_reads_by_now_gives_them_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, script(step(call("tip", {"bills": ["b1"]})))) as o:
        run = await o.start()
        with monkeypatch.context() as without_claims:  # an older release allowed it, and its worker is gone
            without_claims.setattr(calls, "claim_allowed", broken)
            await o.work()
        gone = "UPDATE calls SET token = 'killed' WHERE status = 'executing'"
        reads = with_tool(o.house, "tip", risk=Risk.READ_ONLY, **dict.fromkeys(MEASURING))
        dying = with_tool(reads, "tip", execute=lambda input, ctx: o.execute(gone))
        o.shift_clock("10 minutes")
        await sweep(reads)
        await o.another_worker(house=dying).work_off()
        assert o.execute("SELECT item FROM held_items") == [("b1",)]
        await cancel_run(o.house, run.id, LEO)
        o.shift_clock("20 minutes")
        await sweep(reads)
        assert (await o.statuses(run.id), o.execute("SELECT item FROM held_items")) == (["failed"], [])


async def broken(*given: Any, **named: Any) -> None:
    raise DatabaseUnavailable("It is away.")


async def test_what_may_have_happened_is_unknown_though_its_tool_only_reads_by_now(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.watch = lambda ctx: o.execute("UPDATE calls SET token = 'killed' WHERE status = 'executing'")
        await o.work()
        o.shift_clock("1 minute")
        reads = with_tool(o.house, "pay", risk=Risk.READ_ONLY, **dict.fromkeys(MEASURING))
        await sweep(reads)
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN


async def test_a_tool_that_only_reads_waits_for_an_older_attempt_that_is_still_inside_it(
    database: Database, tmp_path: Path
) -> None:
    look = script(step(call("look", {"bills": BILLS})), step(say("It is there.")))
    inside, go = threading.Event(), threading.Event()

    def slowly(input: Any, ctx: Context) -> str:
        inside.set()
        go.wait(20)
        return "there"

    async with office(database, tmp_path, look) as o:
        house = with_tool(o.house, "look", execute=slowly)
        run = await o.start()
        slow = asyncio.create_task(o.another_worker(house=house).work_off())
        assert await asyncio.to_thread(inside.wait, 20), "the tool was not begun"
        o.execute("UPDATE calls SET token = 'lost'; UPDATE runs SET token = 'lost'")
        o.shift_clock("1 minute")
        await sweep(house)
        await o.another_worker(house=house).work_off()
        assert await o.statuses(run.id) == ["allowed"]
        go.set()
        await slow
        o.shift_clock("1 hour")
        await o.another_worker(house=house).work_off()
        assert (await o.statuses(run.id), (await o.run(run.id)).answer) == (["done"], "It is there.")


async def test_a_tool_that_only_reads_fails_at_once_and_asks_nobody(
    database: Database, tmp_path: Path
) -> None:
    look = script(step(call("look", {"bills": BILLS})), step(say("It is broken.")))
    async with office(database, tmp_path, look) as o:
        o.world.refuse = [RuntimeError("a bug")]
        run = await o.start()
        await o.work()
        (one,) = await o.calls(run.id)
        assert (one.status, o.world.looks) == (CallStatus.FAILED, 1)
        assert "a bug" in one.result["content"]["error"]
        assert o.execute("SELECT id FROM approvals") == []
