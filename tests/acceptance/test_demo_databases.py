"""The demo's database: empty at each start, of its own, gone afterwards, open to whoever wants to look."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from bot.demo.command import lines
from bot.demo.errors import DemoFailed
from bot.demo.world import World, open_world
from bot.settings import Settings
from store import embedded, runs
from store.engine import Database
from store.locks import FileLock
from store.records import Actor
from tests.acceptance.commands import ROOT, SECONDS, clean
from tests.acceptance.stage import eventually
from tests.databases import Database as OwnDatabase

EMBEDDED = Settings.read({})


@pytest.fixture(autouse=True)
def own_folder(server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.embedded.default_folder", lambda: server_folder)


async def ask_in(world: World) -> list[str]:
    """Begin a run in this world's database; the ids of all that are there."""
    db = Database.open(world.urls.app)
    try:
        leo = Actor("person", "T0SHOP", "U0LEO", "Leo")
        place = {"team_id": "T0SHOP", "channel_id": "C0SUPPORT", "thread_ts": None}
        await runs.start(db, **place, agent="a", task="refund", requester=leo, source_key="one")
        return [run.id for run in await runs.listed(db, unfinished_only=False, limit=9)]
    finally:
        await db.close()


async def test_two_demos_of_one_user_do_not_meet_and_leave_nothing() -> None:
    async with open_world(EMBEDDED, port=0) as one, open_world(EMBEDDED, port=0) as other:
        [first], [second] = await ask_in(one), await ask_in(other)
        assert first != second
    async with open_world(EMBEDDED, port=0) as third:
        assert len(await ask_in(third)) == 1
        with psycopg.connect(third.urls.owner) as connection:
            found = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'scratch%'")
            assert len(found.fetchall()) == 1


async def test_a_demo_that_waits_for_another_one_says_so_and_ends_at_once(
    server_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(server_folder / "start.lock"):
        opened = open_world(EMBEDDED, port=0)
        opening = asyncio.create_task(opened.__aenter__())
        await eventually(lambda: _has_said(capsys, "Waiting for another vistobueno of yours"))
        opening.cancel()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([opening])
        assert opening.cancelled()


async def _has_said(capsys: pytest.CaptureFixture[str], words: str) -> bool:
    return words in capsys.readouterr().err


async def test_what_the_terminal_says_lets_another_one_look() -> None:
    async with open_world(EMBEDDED, port=0) as world:
        [command] = [line for line in lines(world, EMBEDDED) if "DATABASE_URL=" in line]
        here = clean({"PYTHONPATH": str(ROOT)})  # not where the command was installed from, which may differ
        process = await asyncio.create_subprocess_shell(
            command, cwd=ROOT, env=here, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, out.decode()) == (0, "Nothing waits; --all shows what has ended.\n")


async def test_who_may_not_make_the_shop_is_told_to_let_the_demo_have_a_database_of_its_own(
    database: OwnDatabase, empty_database: OwnDatabase
) -> None:
    owner = Settings.read({"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url})
    async with open_world(owner, port=0):  # a running demo, and its URL as it prints it
        for url in (database.url, empty_database.url):
            with pytest.raises(DemoFailed) as failed:
                async with open_world(Settings.read({"DATABASE_URL": url}), port=0):
                    pass
            assert str(failed.value).endswith("unset DATABASE_URL, and this demo has a database of its own.")
        with psycopg.connect(database.url) as connection:
            counted = connection.execute("SELECT count(*) FROM shop.payments").fetchone()
    assert counted == (400,)


async def test_a_named_database_is_taken_as_it_is_and_that_is_said(database: OwnDatabase) -> None:
    settings = Settings.read({"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url})
    async with open_world(settings, port=0) as world:
        assert (world.urls.app, world.urls.owner) == (database.url, database.owner_url)
        await ask_in(world)
    async with open_world(settings, port=0) as world:
        assert len(await ask_in(world)) == 1, "the run of before is still there"
        said = "\n".join(lines(world, settings))
    assert "the database that DATABASE_URL names" in said
    assert database.url not in said, "it may have a password in it"
    assert not embedded.exists()
