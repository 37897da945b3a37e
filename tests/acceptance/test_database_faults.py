"""The database dies, hangs, is cut off, full or of another version: no click is lost, nobody is misled."""

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from agent.scripted import say, step
from agent.tools.shop.provider import Fault
from bot.app import BACKGROUND_POOL, CLICK_POOL, build
from store import embedded
from store.engine import Database as Store
from store.engine import migrate
from store.errors import NotMigrated
from store.migrate import HEAD
from store.transitions import ApprovalStatus
from tests.acceptance.children import assert_whole
from tests.acceptance.scripts import NOTHING, ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import DEADLINE_SECONDS, Stage, eventually, staged
from tests.acceptance.test_http import get
from tests.acceptance.test_sigkill import WHOLE, no_buttons
from tests.databases import Database, one
from tests.integration.store.rows import execute, shift_clock
from tests.standins.server import DEBIAN, OwnServer, own_server
from tests.standins.wire import Wire, wire_before, wire_to

LEASE = 2.0


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and publishers of the stage have short leases."""
    monkeypatch.setattr("bot.publish.LEASE_SECONDS", float(LEASE))
    monkeypatch.setattr("tests.acceptance.stage.build", partial(build, lease=LEASE))


def as_database(server: Any, url: str | None = None) -> Database:
    """The server's database, as the stage takes one."""
    return Database("vistobueno", url or server.url, server.owner_url, server.admin_url)


async def last_told(stage: Stage, click: Any) -> str:
    """Click, and what Marta is told of it."""
    before = len(stage.marta.ephemerals)
    delivery = await click
    assert delivery.acked, delivery
    return (await stage.told(stage.marta, before + 1))[before]


# --- killed ---


class EmbeddedServer:
    """The embedded server, which any command of vistobueno starts again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[embedded.Embedded] = []

    async def start(self) -> None:
        """As a command does."""
        self.started.append(await embedded.start(self.folder))
        self.url, self.owner_url = self.started[0].url, self.started[0].owner_url
        self.admin_url = embedded.admin_url(self.started[0], embedded.DATABASE)
        assert self.started[-1].url == self.url

    async def kill(self) -> None:
        """Kill the postmaster; its processes end when they notice."""
        os.kill(int(one(self.admin_url, "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)")), 9)


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncIterator[EmbeddedServer]:
    """One in that folder."""
    server = EmbeddedServer(folder)
    await server.start()
    try:
        yield server
    finally:
        for started in server.started:
            await embedded.stop(started)


SERVERS = {
    "embedded": embedded_server,
    "its own": lambda folder: own_server(),
    "Debian's": lambda folder: own_server(debian=True),
}
debians = pytest.mark.debian(programs=[str(DEBIAN / "bin" / "postgres")])


@pytest.mark.parametrize("which", ["embedded", "its own", pytest.param("Debian's", marks=debians)])
async def test_a_server_killed_in_the_middle_costs_no_click_and_no_refund(
    monkeypatch: pytest.MonkeyPatch, short_leases: None, server_folder: Path, which: str
) -> None:
    async with SERVERS[which](server_folder) as server:
        await migrate(server.owner_url)
        async with staged(as_database(server), monkeypatch, ask_for_refunds()) as stage:
            asked = await stage.ask()
            card = (await stage.card("38 payments")).snapshot()
            await server.kill()
            told = await last_told(stage, stage.marta.click(card, "Approve"))
            # a connection that seemed to be open may have taken the statement
            assert "nothing was recorded" in told or "not confirmed" in told
            await server.start()
            assert (await stage.approval()).status is ApprovalStatus.PENDING
            stage.provider.plan(*[None] * 20, Fault.HELD_ANSWER)
            assert "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))
            await asyncio.wait_for(stage.provider.holding.wait(), DEADLINE_SECONDS)
            await server.kill()
            stage.provider.release()
            await server.start()
            await stage.said(asked, "That is all.")
            await no_buttons(stage)
            await assert_whole(stage, WHOLE)


# --- cut off ---


@asynccontextmanager
async def wired_stage(
    monkeypatch: pytest.MonkeyPatch, *scripts: Any
) -> AsyncIterator[tuple[Stage, Wire, OwnServer]]:
    """A stage whose database is behind a wire; the test itself looks past it."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(own_server(fsync="off"))
        await migrate(server.owner_url)
        wire = await stack.enter_async_context(wire_to("127.0.0.1", server.port))
        url = server.url.replace(f":{server.port}/", f":{wire.listens_on}/")
        stage = await stack.enter_async_context(staged(as_database(server, url), monkeypatch, *scripts))
        yield stage, wire, server


def once(*markers: bytes) -> Callable[[bytes], bool]:
    """Yes to the first statement with each of these words."""
    left = set(markers)

    def loses(sent: bytes) -> bool:
        found = {marker for marker in left if marker in sent}
        left.difference_update(found)
        return bool(found)

    return loses


async def test_a_click_whose_answer_is_lost_is_not_confirmed_though_it_counts_and_pressing_again_is_safe(
    monkeypatch: pytest.MonkeyPatch, short_leases: None
) -> None:
    async with wired_stage(monkeypatch, ask_for_refunds()) as (stage, wire, _):
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        wire.loses = once(b"'approval.approved'")
        said = await last_told(stage, stage.marta.click(card, "Approve"))
        assert wire.lost == 1
        assert "not confirmed" in said
        assert "pressing again is safe" in said
        assert "already approved" in await last_told(stage, stage.marta.click(card, "Approve"))
        await stage.said(asked, "That is all.")
        await no_buttons(stage)
        await assert_whole(stage, WHOLE)


STEPS = (b"'run.claimed'", b"'turn.saved'", b"'call.claimed'", b"'attempt.started'", b"'call.executed'")


async def test_a_worker_that_hears_no_answer_to_any_step_does_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, short_leases: None
) -> None:
    async with wired_stage(monkeypatch, ask_for_refunds()) as (stage, wire, _):
        wire.loses = once(*STEPS, b"'run.paused'")
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        await no_buttons(stage)
        assert wire.lost >= len(STEPS)
        await assert_whole(stage, WHOLE)


async def test_connections_that_are_cut_again_and_again_stop_nothing(
    monkeypatch: pytest.MonkeyPatch, short_leases: None
) -> None:
    async def cut_often(wire: Wire) -> None:
        pause = 0.7
        while True:
            await asyncio.sleep(pause)
            wire.cut()
            pause *= 1.1  # on a busy machine no step may end within the first ones

    async with wired_stage(monkeypatch, ask_for_refunds()) as (stage, wire, _):
        cutting = asyncio.create_task(cut_often(wire))
        try:
            asked = await stage.ask()
            card = await stage.card("38 payments")
            while "Approve" in stage.marta.buttons(card.ts):
                await stage.marta.click(card, "Approve")
                await asyncio.sleep(0.5)
            await stage.said(asked, "That is all.")
        finally:
            cutting.cancel()
        await no_buttons(stage)
        await assert_whole(stage, WHOLE)


# --- forgotten ---


@asynccontextmanager
async def forgetful_stage(
    database: Database, monkeypatch: pytest.MonkeyPatch, *scripts: Any, seconds: float, work: bool = True
) -> AsyncIterator[tuple[Stage, Wire]]:
    """A stage behind a wire that can forget connections; the test itself looks past it.

    `seconds` is what the server may take for a statement that is not of a click.
    """
    limited = SimpleNamespace(open=partial(Store.open, statement_timeout=seconds))
    monkeypatch.setattr("bot.app.Database", limited)
    monkeypatch.setattr("bot.house.Database", limited)
    async with AsyncExitStack() as stack:
        wire, url = await stack.enter_async_context(wire_before(database.url))
        behind = replace(database, url=url)
        stage = await stack.enter_async_context(staged(behind, monkeypatch, *scripts, work=work))
        stage.db = Store.open(database.url)
        stack.push_async_callback(stage.db.close)
        yield stage, wire


async def all_connected(db: Store, size: int) -> None:
    """Have all connections of a pool made."""
    await asyncio.gather(*(db.query("SELECT pg_sleep(0.05)") for _ in range(size)))


async def test_a_firewall_that_forgets_all_connections_stops_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forgetful_stage(database, monkeypatch, ask_for_refunds(), seconds=3.0) as (stage, wire):
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        await all_connected(stage.processes[0].app.bot.clicks.db, CLICK_POOL)
        wire.forget()
        assert "not confirmed" in await last_told(stage, stage.marta.click(card, "Approve"))
        assert (await stage.approval()).status is ApprovalStatus.PENDING

        async def approved() -> bool:
            return "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))

        await eventually(approved)
        await stage.said(asked, "That is all.")
        await no_buttons(stage)
        await assert_whole(stage, WHOLE)


async def test_while_nothing_gets_through_readiness_and_the_numbers_are_answered_all_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forgetful_stage(database, monkeypatch, NOTHING, seconds=300, work=False) as (stage, wire):
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert (await get(stage, "/readyz"))[0] == 200
            wire.forget()
            status, body = await get(stage, "/readyz")
            database_check = json.loads(body)["checks"]["database"]
            assert (status, "did not answer" in database_check["error"]) == (503, True)
            assert (await get(stage, "/readyz"))[0] == 200
            wire.forget()
            status, text = await get(stage, "/metrics")
            assert (status, "vistobueno_cards_behind" in text) == (200, False)
            assert "vistobueno_cards_behind" in (await get(stage, "/metrics"))[1]


async def test_a_private_answer_does_not_wait_for_a_database_that_says_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forgetful_stage(database, monkeypatch, ONLY_ASK, seconds=300) as (stage, wire):
        await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        await all_connected(stage.processes[0].app.bot.house.db, BACKGROUND_POOL)
        wire.forget()
        assert "not confirmed" in await last_told(stage, stage.marta.click(card, "Approve"))


# --- slow, and busy ---


async def hold_for(database: Database, seconds: float, held: asyncio.Event) -> None:
    """Let every statement on approvals and runs take so long."""
    async with await psycopg.AsyncConnection.connect(database.owner_url) as connection:
        await connection.execute("LOCK TABLE approvals, runs IN ACCESS EXCLUSIVE MODE")
        held.set()
        await asyncio.sleep(seconds)


async def test_statements_that_take_five_seconds_lose_no_click_and_no_message(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = step(say("Yes, they are done."))
    async with staged(database, monkeypatch, ask_for_refunds(step(say("That is all.")), then)) as stage:
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        held = asyncio.Event()
        holding = asyncio.create_task(hold_for(database, 5.0, held))
        await held.wait()
        again = asyncio.create_task(stage.leo.mention("C0SUPPORT", "and?", thread_ts=asked.ts))
        said = await last_told(stage, stage.marta.click(card, "Approve"))
        assert "nothing was recorded" in said
        await holding
        assert (await stage.approval()).status is ApprovalStatus.PENDING
        assert "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))
        await again
        await stage.said(asked, "That is all.")
        await stage.said(asked, "Yes, they are done.")
        assert len(stage.provider.refunds) == stage.provider.requests == 38


async def test_with_all_connections_busy_a_click_is_not_recorded_and_the_next_one_is(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        bot = stage.processes[0].app.bot
        async with AsyncExitStack() as busy:
            for _ in range(10):
                await busy.enter_async_context(bot.clicks.db.connection())
            assert "nothing was recorded" in await last_told(stage, stage.marta.click(card, "Approve"))
            assert (await stage.approval()).status is ApprovalStatus.PENDING
        assert "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))
        async with AsyncExitStack() as busy:  # the worker's, while it works
            for _ in range(4):
                await busy.enter_async_context(stage.processes[0].app.worker.house.db.connection())
            await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == stage.provider.requests == 38


# --- a full disk ---

SIZE = "200m"


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A folder on a disk of its own, in memory."""
    folder = Path(tempfile.mkdtemp(prefix="vistobueno-test-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=711", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    try:
        if mounted.returncode:
            pytest.skip("other platform: this container may not mount a file system")
        yield folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def fill(disk: Path) -> Path:
    """A file that takes all that is left."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 65536)
    return ballast


@pytest.mark.debian(root=True, programs=["mount", "umount"])
async def test_a_full_disk_is_told_as_it_is_and_once_there_is_room_everything_goes_on(
    monkeypatch: pytest.MonkeyPatch, short_leases: None
) -> None:
    async with AsyncExitStack() as stack:
        disk = stack.enter_context(small_disk())
        small = {
            "max_wal_size": "32MB",
            "min_wal_size": "32MB",
            "wal_recycle": "off",
            "log_min_messages": "fatal",
        }
        server = await stack.enter_async_context(own_server(folder=disk, **small))
        await migrate(server.owner_url)
        database = as_database(server)
        stage = await stack.enter_async_context(staged(database, monkeypatch, ask_for_refunds()))
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        ballast = fill(disk)
        with contextlib.suppress(psycopg.Error):
            write_until_it_is_full(database)
        said = await last_told(stage, stage.marta.click(card, "Approve"))
        ballast.unlink()
        if not server.runs:
            await server.start()
        approval = await stage.approval()
        recorded = approval.status is not ApprovalStatus.PENDING
        assert ("nothing was recorded" in said) == (not recorded) or "not confirmed" in said, said
        again = await last_told(stage, stage.marta.click(card, "Approve"))
        assert ("already approved" in again) == recorded, again
        await stage.said(asked, "That is all.")
        await no_buttons(stage)
        await assert_whole(stage, WHOLE)


def write_until_it_is_full(database: Database) -> None:
    """Until a statement is refused, or the server has stopped."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE filler (what text)")
        while True:
            connection.execute(
                "INSERT INTO filler SELECT repeat(md5(n::text), 200) FROM generate_series(1, 500) AS n"
            )


# --- two versions at once ---

NEWER = f"{int(HEAD) + 1:04}"


def note_version(database: Database, version: str) -> None:
    """Say that the tables are of this version."""
    execute(database.owner_url, "UPDATE alembic_version SET version_num = %s", version)


async def alter(database: Database, change: str) -> None:
    """Change a table; it waits for what the app is about to commit on this loop."""
    await asyncio.to_thread(execute, database.owner_url, f"ALTER TABLE {change}")


async def test_an_app_from_before_a_migration_goes_on_and_says_that_it_is_old(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = await stage.card("38 payments")
        for table in ("approvals", "runs", "calls", "cards"):
            await alter(database, f"{table} ADD COLUMN of_the_next_release text DEFAULT 'x'")
        note_version(database, NEWER)
        status, body = await get(stage, "/readyz")
        assert (status, f"at version {NEWER}" in body, "install a newer one" in body) == (503, True, True)
        assert "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))
        await stage.said(asked, "That is all.")
        await no_buttons(stage)
        await assert_whole(stage, WHOLE)


async def test_an_app_whose_tables_were_changed_under_it_says_so_and_goes_on_when_they_are_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds()) as stage:
        asked = await stage.ask()
        card = (await stage.card("38 payments")).snapshot()
        await alter(database, "approvals RENAME COLUMN votes TO votes_of_the_next_release")
        said = await last_told(stage, stage.marta.click(card, "Approve"))
        assert "the database is not ready for this version" in said
        await alter(database, "approvals RENAME COLUMN votes_of_the_next_release TO votes")
        shift_clock(database, "1 minute")  # what was to be posted meanwhile is not claimed any more
        assert "You approved" in await last_told(stage, stage.marta.click(card, "Approve"))
        await stage.said(asked, "That is all.")
        await assert_whole(stage, WHOLE)


async def test_a_new_app_refuses_the_old_tables_with_what_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("store.migrate", "store.engine"):
        monkeypatch.setattr(f"{module}.HEAD", NEWER)
    with pytest.raises(NotMigrated) as refused:
        async with staged(database, monkeypatch, NOTHING, work=False):
            pass
    assert str(refused.value) == (
        f"The database is at version {HEAD} and this vistobueno needs {NEWER}: run `vistobueno migrate`."
    )


async def test_an_app_that_runs_on_old_tables_is_not_ready_and_says_why(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, work=False) as stage:
        for module in ("store.migrate", "store.engine"):
            monkeypatch.setattr(f"{module}.HEAD", NEWER)
        status, body = await get(stage, "/readyz")
        assert (status, "run `vistobueno migrate`" in body) == (503, True)
