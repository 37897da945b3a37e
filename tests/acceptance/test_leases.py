"""Leases between processes that die, sleep or are asked to end: taken over in time, never acted on late."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agent.scripted import Script, call, expect_results, say, script, step
from store import audit
from store.records import AuditEvent
from store.transitions import ApprovalStatus, RunStatus
from tests.acceptance.children import Child, assert_whole, child, web_apart
from tests.acceptance.crowds import changed_policy
from tests.acceptance.scripts import NOTHING, ask_for_refunds
from tests.acceptance.stage import DEADLINE_SECONDS, Stage, eventually
from tests.acceptance.test_sigkill import WHOLE
from tests.databases import Database

LATER = step(say("That is all."), optional=True)  # to whoever takes the run over
LEASE = 2.0
LEASES = ("--lease", f"{LEASE:g}")
WITHIN = LEASE + 2.0
TAKEN_OVER = 45.0  # what a process that is gone was about to post is posted by another after 20 s
BUSY = 2.0  # seconds that a machine which tests something else, too, may add


def worker(stage: Stage) -> AbstractAsyncContextManager[Child]:
    """A worker with short leases."""
    return child(stage, "worker", *LEASES)


async def events(stage: Stage, *kinds: str) -> list[AuditEvent]:
    """The events of these kinds (none: of all) of the newest run, in order."""
    found = await audit.of(stage.db, (await stage.run()).id)
    return [each for each in found if not kinds or each.kind in kinds]


async def test_a_call_of_a_killed_worker_is_with_another_within_its_lease_and_two_seconds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage, worker(stage) as first:
        asked = await stage.ask()
        await stage.approve_and_hold(await stage.card("38 payments"), after=20)
        async with worker(stage):
            await asyncio.sleep(LEASE)  # the dead one has renewed it meanwhile
            died = time.time()
            await first.kill()
            await stage.said(asked, "That is all.", TAKEN_OVER)
        claims = [e.at.timestamp() for e in await events(stage, "call.claimed") if e.approval_id is not None]
        assert len(claims) > 1
        assert max(claims) - died < WITHIN + BUSY
        await assert_whole(stage, WHOLE)


async def test_a_run_of_a_killed_worker_is_with_another_within_its_lease_and_two_seconds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, NOTHING) as stage, worker(stage) as first:
        stage.model.hold()
        asked = await stage.ask()
        await stage.model.asked()
        async with worker(stage):
            await asyncio.sleep(LEASE)
            died = time.time()
            await first.kill()
            await eventually(lambda: taken_over(stage))
            claims = [event.at.timestamp() for event in await events(stage, "run.claimed")]
            assert max(claims) - died < WITHIN + BUSY
            await stage.model.release()
            await stage.said(asked, "Hello.", TAKEN_OVER)


async def taken_over(stage: Stage) -> bool:
    return len(await events(stage, "run.claimed")) > 1


async def test_a_worker_that_sleeps_through_its_effect_wakes_up_and_records_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage, worker(stage) as sleeper:
        asked = await stage.ask()
        await stage.approve_and_hold(await stage.card("38 payments"), after=20)
        async with worker(stage):
            sleeper.freeze()
            await stage.said(asked, "That is all.", TAKEN_OVER)
            ended = await events(stage, "call.executed")
            stage.provider.release()
            sleeper.thaw()
            sleeper.ask_to_end()
            assert await sleeper.ended(DEADLINE_SECONDS) == 0
            assert await events(stage, "call.executed") == ended
        refunds = [event for event in ended if event.approval_id is not None]
        attempts = [e for e in await events(stage, "attempt.started") if e.approval_id is not None]
        assert (len(refunds), [e.data["attempt"] for e in attempts]) == (1, [1, 2])
        await assert_whole(stage, WHOLE)


# --- with tools that wait ---

SLOW = "tests.acceptance.slow_tools:TOOLS"


def ask_to(tool: str, seconds: float = 0.0) -> Script:
    """Ask for one call of a slow tool."""
    return script(step(call(tool, {"seconds": seconds})), step(say("That is all."), expect=expect_results(1)))


@asynccontextmanager
async def slow_stage(
    database: Database, monkeypatch: pytest.MonkeyPatch, folder: Path, asks: Script
) -> AsyncIterator[Stage]:
    """A stage whose processes have the slow tools; they wait and write in `folder`."""
    monkeypatch.setenv("SLOW_TOOLS", str(folder))
    policy = changed_policy(folder, {"[tools.refund_payments]": "[tools.block]"})
    async with web_apart(database, monkeypatch, asks, tools=SLOW, policy=policy) as stage:
        yield stage


def lines(folder: Path) -> list[str]:
    """The keys under which the effect happened."""
    done = folder / "done"
    return [line.split()[0] for line in done.read_text().splitlines()] if done.exists() else []


async def test_a_worker_that_wakes_up_before_its_effect_has_none(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with (
        slow_stage(database, monkeypatch, tmp_path, ask_to("look_first")) as stage,
        worker(stage) as sleeper,
    ):
        asked = await stage.ask("please wait")
        card = await stage.card("look_first")
        (tmp_path / "hold").touch()
        (tmp_path / f"looks-{sleeper.pid}").unlink()
        await stage.marta.click(card, "Approve")
        await eventually(lambda: there(tmp_path / f"looks-{sleeper.pid}"))
        sleeper.freeze()
        (tmp_path / "hold").unlink()
        async with worker(stage):
            await stage.said(asked, "That is all.", TAKEN_OVER)
        approval = await stage.approval()
        assert lines(tmp_path) == [approval.id]
        before = await events(stage)
        sleeper.thaw()
        sleeper.ask_to_end()
        assert await sleeper.ended(DEADLINE_SECONDS) == 0
        assert (lines(tmp_path), await events(stage)) == ([approval.id], before)


async def there(path: Path) -> bool:
    return path.exists()  # noqa: ASYNC240


@pytest.mark.parametrize("tool", ["block", "block_loop"])
async def test_a_tool_that_blocks_delays_no_answer_and_no_renewal(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str
) -> None:
    owner = {"DATABASE_OWNER_URL": database.owner_url}
    async with (
        slow_stage(database, monkeypatch, tmp_path, ask_to(tool, 2 * LEASE)) as stage,
        child(stage, "dev", *LEASES, **owner) as both,
    ):
        stage.sandbox.connect(both.url)
        asked = await stage.ask("please wait")
        card = (await stage.card(tool)).snapshot()
        await stage.marta.click(card, "Approve")
        await eventually(lambda: events(stage, "attempt.started"))
        before = len(stage.sandbox.deliveries)
        while not lines(tmp_path):
            await stage.marta.click(card, "Approve")
            await asyncio.sleep(0.3)
        slowest = max(delivery.elapsed for delivery in stage.sandbox.deliveries[before:])
        assert slowest < 1.0 + BUSY
        await stage.said(asked, "That is all.", TAKEN_OVER)
        assert len(lines(tmp_path)) == len(await events(stage, "attempt.started")) == 1
        assert (
            await events(stage, "call.released") == []
        )  # its own sweep, too, gives back what is not renewed


# --- asked to end ---


async def test_a_worker_that_is_asked_to_end_finishes_its_call_and_takes_nothing_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds(LATER)) as stage, worker(stage) as only:
        await stage.ask()
        await stage.approve_and_hold(await stage.card("38 payments"), after=20)
        only.ask_to_end()
        await stage.ask("and once more")
        await asyncio.sleep(LEASE + 1)
        assert only.code is None
        stage.provider.release()
        assert await only.ended(DEADLINE_SECONDS) == 0
        assert (await stage.approval()).status is ApprovalStatus.EXECUTED
        assert len(stage.provider.refunds) == stage.provider.requests == 38
        assert (await stage.run()).status is RunStatus.QUEUED


async def test_a_call_that_does_not_end_in_ten_seconds_is_left_to_its_lease_and_repeated_with_its_key(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_apart(database, monkeypatch, ask_for_refunds()) as stage:
        async with worker(stage) as first:
            asked = await stage.ask()
            await stage.approve_and_hold(await stage.card("38 payments"), after=20)
            told = time.monotonic()
            first.ask_to_end()
            assert await first.ended(DEADLINE_SECONDS) == 0
            assert 9.0 < time.monotonic() - told < 13.0 + BUSY
        assert (await stage.approval()).status is ApprovalStatus.EXECUTING
        assert await events(stage, "call.released") == []
        async with worker(stage):
            await stage.said(asked, "That is all.", TAKEN_OVER)
        [released] = await events(stage, "call.released")
        assert released.data["why"] == "The worker that executed it is gone."
        await assert_whole(stage, WHOLE)


# --- side by side ---


async def test_four_workers_share_a_database_and_never_a_row(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with (
        slow_stage(database, monkeypatch, tmp_path, ask_to("block", 0.1)) as stage,
        AsyncExitStack() as stack,
    ):
        for _ in range(4):
            await stack.enter_async_context(worker(stage))
        asked = [await stage.ask(f"please wait {number}") for number in range(12)]
        await stage.sandbox.until(lambda: len(stage.cards) == len(asked), timeout=DEADLINE_SECONDS)
        for card in stage.cards:
            await stage.marta.click(card, "Approve")
        for message in asked:
            await stage.said(message, "That is all.", TAKEN_OVER)
        counted = await stage.db.query("SELECT kind, count(*) AS n FROM audit_events GROUP BY kind")
        kinds = {row["kind"]: row["n"] for row in counted}
        assert kinds["call.claimed"] == kinds["attempt.started"] == kinds["call.executed"] == 12
        assert kinds["run.claimed"] == 12  # the end of its call keeps a run with the same worker
        assert len(stage.model.requests) == 24
        assert len(lines(tmp_path)) == len(set(lines(tmp_path))) == 12
