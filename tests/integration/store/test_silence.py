"""A network that swallows what is sent and says nothing: each wait ends, and what is dead is thrown away."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from store.engine import CHANNEL, Database, migrate
from store.errors import DatabaseUnavailable, StatementRefused, Unconfirmed
from store.session import NETWORK
from tests import databases
from tests.standins.wire import Wire, wire_before

pytestmark = pytest.mark.store

TIMEOUT = 0.2  # of a statement, on the server
PLENTY = 20.0  # far more than any of this takes
SIZE = 5


@asynccontextmanager
async def wired(
    database: databases.Database, *, statement_timeout: float = TIMEOUT
) -> AsyncIterator[tuple[Database, Wire]]:
    """The store behind a wire, with all its connections made and idle."""
    async with wire_before(database.url) as (wire, url):
        db = Database.open(url, pool_size=SIZE, statement_timeout=statement_timeout, wait=5.0)
        try:
            await asyncio.gather(*(db.query("SELECT pg_sleep(0.05)") for _ in range(SIZE)))
            assert len(db.pool.idle) == SIZE
            yield db, wire
        finally:
            await db.close()


async def works(db: Database) -> bool:
    """Whether the database answers `SELECT 1` now."""
    async with asyncio.timeout(PLENTY):
        return await db.query("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize("together", [False, True])
async def test_a_statement_into_silence_is_unconfirmed_and_the_next_one_has_a_new_connection(
    database: databases.Database, together: bool
) -> None:
    async with wired(database) as (db, wire):
        wire.forget()
        with pytest.raises(Unconfirmed, match=r"^The database did not answer: no answer within 1\.2 s"):
            async with asyncio.timeout(PLENTY):
                await (
                    db.together(("SELECT 1", None), ("SELECT 2", None)) if together else db.query("SELECT 1")
                )
        assert db.pool.idle == [], "those beside it are of its age"
        assert await works(db)
        assert (wire.made, db.pool.lent) == (SIZE + 1, 0)


async def test_statements_on_every_connection_come_back_and_leave_the_pool_whole(
    database: databases.Database,
) -> None:
    async with wired(database) as (db, wire):
        wire.forget()
        async with asyncio.timeout(PLENTY):
            lost = await asyncio.gather(*(db.query("SELECT 1") for _ in range(SIZE)), return_exceptions=True)
        assert [type(each) for each in lost] == [Unconfirmed] * SIZE
        found = await asyncio.gather(*(works(db) for _ in range(4 * SIZE)))
        assert (all(found), db.pool.lent) == (True, 0)


@pytest.mark.parametrize("together", [False, True])
async def test_who_is_cancelled_in_silence_ends_and_leaves_the_pool_whole(
    database: databases.Database, together: bool
) -> None:
    async with wired(database) as (db, wire):
        wire.forget()
        work = db.together(("SELECT 1", None), ("SELECT 2", None)) if together else db.query("SELECT 1")
        asking = [asyncio.ensure_future(work), *(asyncio.create_task(db.query("SELECT 1")) for _ in range(4))]
        await asyncio.sleep(0.05)
        for task in asking:
            task.cancel()
        async with asyncio.timeout(PLENTY):
            ended = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(each) for each in ended] == [asyncio.CancelledError] * SIZE
        assert all([await works(db) for _ in range(2 * SIZE)])
        assert db.pool.lent == 0


async def test_a_part_of_the_work_may_be_less_patient(database: databases.Database) -> None:
    async with wired(database, statement_timeout=300) as (db, wire):
        wire.forget()
        with pytest.raises(Unconfirmed, match=r"no answer within 0\.1 s"):
            async with asyncio.timeout(PLENTY):
                await db.within(0.1).query("SELECT 1")
        assert await works(db)


async def test_the_server_is_heard_before_patience_ends(database: databases.Database) -> None:
    async with wired(database) as (db, wire):
        with pytest.raises(StatementRefused):
            await db.query("SELECT pg_sleep(60)")
        assert await works(db)
        assert wire.made == SIZE


async def test_a_server_that_takes_connections_and_says_nothing_is_unavailable(
    database: databases.Database,
) -> None:
    async with wire_before(database.url) as (wire, url):
        wire.loses = lambda sent: b"statement_timeout" in sent and wire.forget() is None and False
        db = Database.open(url, pool_size=1, wait=0.5)
        with pytest.raises(DatabaseUnavailable, match="cannot be reached: no answer within 2 s"):
            async with asyncio.timeout(PLENTY):
                await db.query("SELECT 1")
        wire.loses = lambda sent: False
        assert await works(db)
        await db.close()


async def notify(database: databases.Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.owner_url, autocommit=True) as connection:
        await connection.execute(f"NOTIFY {CHANNEL}")


async def test_a_listener_in_silence_connects_again_and_hears(database: databases.Database) -> None:
    async with wired(database) as (db, wire), db.listener() as listener, asyncio.timeout(2 * PLENTY):
        await listener.wait(PLENTY)
        before = wire.made
        wire.forget()
        await notify(database)
        while not await listener.wait(0.1):
            pass
        assert wire.made == before + 1
        await notify(database)
        assert await listener.wait(PLENTY)


async def test_a_listener_whose_connection_answers_keeps_it(database: databases.Database) -> None:
    async with wired(database) as (db, wire), db.listener() as listener:
        await listener.wait(PLENTY)
        before = wire.made
        for _ in range(5):
            assert not await listener.wait(0.01)
        assert wire.made == before
        await notify(database)
        assert await listener.wait(PLENTY)


# --- what the system is told ---

OPTIONS = ("SO_KEEPALIVE", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")


async def options(url: str) -> list[int]:
    """The options of a connection's socket."""
    db = Database.open(url)
    async with db.connection() as connection:
        with socket.socket(fileno=os.dup(connection.pgconn.socket)) as same:
            level = {"SO_KEEPALIVE": socket.SOL_SOCKET}
            found = [
                same.getsockopt(level.get(name, socket.IPPROTO_TCP), getattr(socket, name))
                for name in OPTIONS
            ]
    await db.close()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="other platform: names these options otherwise")
async def test_the_system_looks_after_connections_over_a_network_unless_the_url_says_otherwise(
    database: databases.Database,
) -> None:
    async with wire_before(database.url) as (_, url):
        assert await options(url) == [1, 30, 5, 3, 10_000]
        own = f"{url}{'&' if '?' in url else '?'}keepalives_idle=77&tcp_user_timeout=0"
        assert await options(own) == [1, 77, 5, 3, 0]


async def test_migrating_tells_the_system_the_same(
    database: databases.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr("store.engine.upgrade", lambda *said: told.append(said))
    await migrate(f"{database.owner_url}{'&' if '?' in database.owner_url else '?'}keepalives_count=9")
    assert told[0][1] == {name: value for name, value in NETWORK.items() if name != "keepalives_count"}
