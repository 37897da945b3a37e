"""The connection to the database: every fault is one sentence that says what to do and what is recorded."""

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from store.engine import CHANNEL, Database, Listener, libpq_url, migrate
from store.errors import (
    DatabaseUnavailable,
    StatementRefused,
    Unconfirmed,
    UnfitServer,
    refuse_old_server,
    without_secrets,
)
from store.values import dump, text
from tests import databases
from tests.databases import with_login
from tests.integration.store.rows import execute

pytestmark = pytest.mark.store


@asynccontextmanager
async def opened(
    url: str, *, pool_size: int = 5, statement_timeout: float = 30.0, wait: float = 10.0
) -> AsyncIterator[Database]:
    db = Database.open(url, pool_size=pool_size, statement_timeout=statement_timeout, wait=wait)
    try:
        yield db
    finally:
        await db.close()


async def refusal(url: str) -> str:
    """The sentence with which a database that cannot be had is refused."""
    with pytest.raises(DatabaseUnavailable) as refused:
        async with opened(url, wait=2.0) as db:
            await db.query("SELECT 1")
    said = str(refused.value)
    assert "\n" not in said
    assert said.endswith(".")
    return said


# --- no connection can be had ---


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = await refusal(f"postgresql://app:s3cret@127.0.0.1:{port}/shop")
    assert said.startswith("PostgreSQL at 127.0.0.1 (database shop) cannot be reached")
    assert "s3cret" not in said


async def test_a_refused_login_does_not_repeat_its_password(database: databases.Database) -> None:
    role = f"guarded_{database.name}"
    execute(database.admin_url, f"CREATE ROLE {role} NOLOGIN PASSWORD 'right'")
    said = await refusal(with_login(database.admin_url, role, "wr0ng", database.name))
    execute(database.admin_url, f"DROP ROLE {role}")
    assert "wr0ng" not in said
    assert "Check DATABASE_URL" in said


async def test_a_database_that_does_not_exist_is_named(database: databases.Database) -> None:
    assert "nowhere" in await refusal(with_login(database.admin_url, "postgres", "", "nowhere"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://u:s3cret@h/d", "begins with mysql://"),
        ("sqlite:///file", "begins with sqlite://"),
        ("not a url", "is not a URL"),
        ("", "is not a URL"),
        ("postgresql://u:s3cret@h:port/d", "is not a URL"),
        ("postgresql://u:s3cret@127.0.0.1:1/d?colour=red", "cannot be reached"),
    ],
)
async def test_a_url_that_is_none_of_postgresql_says_how_to_write_it(url: str, said: str) -> None:
    whole = await refusal(url)
    assert said in whole
    assert "s3cret" not in whole


async def test_migrating_says_the_same(database: databases.Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="nowhere"):
        await migrate(with_login(database.admin_url, "postgres", "", "nowhere"))


def test_both_names_of_the_scheme_and_a_password_with_signs_are_taken() -> None:
    assert libpq_url("postgres://u:p%40ss@h/d") == "postgresql://u:p%40ss@h/d"


@pytest.mark.parametrize(
    "message", ["cannot connect to postgresql://app:s3cret@h/d", "a://u:s3cret@h\nmore", "x://:s3cret@h"]
)
def test_a_password_in_a_message_is_taken_out(message: str) -> None:
    assert "s3cret" not in without_secrets(message)


def test_an_old_server_is_refused() -> None:
    refuse_old_server(14)
    with pytest.raises(UnfitServer, match="PostgreSQL 13, and vistobueno needs 14"):
        refuse_old_server(13)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_does_not_hold_all_characters_is_refused(
    server: databases.Server, encoding: str
) -> None:
    name = f"test_{encoding.lower()}_{uuid4().hex[:8]}"
    made = "CREATE DATABASE {} ENCODING {} LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    server.admin.execute(sql.SQL(made).format(sql.Identifier(name), encoding))
    url = with_login(server.admin_url, "postgres", "", name)
    said = f"encoding is {encoding}, and vistobueno needs UTF8: create another"
    try:
        with pytest.raises(UnfitServer, match=said):
            await migrate(url)
        async with opened(url) as db:
            with pytest.raises(UnfitServer, match=said):
                await db.check()
    finally:
        server.admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


async def test_what_a_database_its_role_or_the_environment_has_set_otherwise_changes_nothing(
    empty_database: databases.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGOPTIONS", "-c search_path=elsewhere")
    name = empty_database.name
    for setting in ("timezone = 'Europe/Madrid'", "client_encoding = 'latin1'", "datestyle = 'German'"):
        execute(empty_database.admin_url, f"ALTER DATABASE {name} SET {setting}")
    execute(empty_database.admin_url, "CREATE SCHEMA vistobueno AUTHORIZATION vistobueno")
    await migrate(empty_database.owner_url)
    async with opened(empty_database.url) as db:
        await db.check()
        assert await db.one("SELECT '… €' AS said, count(*) FROM public.calls") == {"said": "… €", "count": 0}
        assert (await db.now()).utcoffset() == timedelta(0)


async def test_when_all_connections_are_busy_the_caller_hears_it_at_once(
    database: databases.Database,
) -> None:
    async with opened(database.url, pool_size=1, wait=0.05) as db, db.connection():
        with pytest.raises(DatabaseUnavailable, match="connections to PostgreSQL are busy"):
            await db.query("SELECT 1")


async def test_a_connection_that_was_lent_comes_back(database: databases.Database) -> None:
    async with opened(database.url, pool_size=1, wait=0.05) as db:
        for _ in range(3):
            with pytest.raises(StatementRefused):
                await db.query("SELECT 1 / 0")
        assert await db.query("SELECT 1 AS one") == [{"one": 1}]


# --- a connection that is lost ---


def kill(database: databases.Database) -> int:
    """End every connection of the app to the database, and say how many there were."""
    ended = execute(
        database.admin_url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return len(ended)


async def test_idle_connections_that_the_server_closed_are_replaced_unseen(
    db: Database, database: databases.Database
) -> None:
    await asyncio.gather(*(db.query("SELECT pg_sleep(0.05)") for _ in range(5)))
    assert kill(database) == 5
    found = await asyncio.gather(*(db.query("SELECT 1 AS one") for _ in range(20)))
    assert found == [[{"one": 1}]] * 20


async def until_it_runs(database: databases.Database, words: str) -> None:
    """Wait until a statement with these words is being executed."""
    query = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"
    deadline = time.monotonic() + 20
    while not execute(database.owner_url, query, f"%{words}%"):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_statement_whose_connection_is_lost_is_unconfirmed(
    db: Database, database: databases.Database
) -> None:
    asleep = asyncio.create_task(db.query("SELECT pg_sleep(60), 'lost'"))
    await until_it_runs(database, "'lost'")
    kill(database)
    with pytest.raises(Unconfirmed, match=r"^The database did not answer: "):
        await asleep
    assert await db.query("SELECT 1 AS one") == [{"one": 1}]


async def test_a_transaction_that_was_left_open_is_nobody_elses(database: databases.Database) -> None:
    async with opened(database.url, pool_size=1, wait=5.0) as db:
        async with db.connection() as connection:
            await connection.execute("BEGIN")
            await connection.execute("INSERT INTO directory_groups VALUES ('T', 'G', 'h')")
        assert await db.query("SELECT group_id FROM directory_groups") == []


@pytest.mark.parametrize("together", [False, True])
async def test_a_cancelled_caller_leaves_the_pool_whole(database: databases.Database, together: bool) -> None:
    async with opened(database.url, pool_size=1, wait=5.0) as db:
        slow = "SELECT pg_sleep(60), 'given up'"
        work = db.together((slow, None), ("SELECT 1", None)) if together else db.query(slow)
        asleep = asyncio.ensure_future(work)
        await until_it_runs(database, "'given up'")
        asleep.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asleep
        assert await db.query("SELECT 1 AS one") == [{"one": 1}]


async def test_a_file_number_beyond_a_thousand_is_no_obstacle(database: databases.Database) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("other platform: allows fewer than 2,000 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    held = [socket.socket() for _ in range(1100)]
    try:
        async with opened(database.url) as db:
            assert await db.query("SELECT 1 AS one") == [{"one": 1}]
            assert await db.query("SELECT 2 AS two") == [{"two": 2}]
    finally:
        for one in held:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- what the server refuses ---


async def test_a_statement_that_takes_too_long_is_refused_and_nothing_is_recorded(
    database: databases.Database,
) -> None:
    made = "WITH made AS (INSERT INTO directory_groups VALUES ('T', 'G', 'h') RETURNING 1)"
    async with opened(database.url, statement_timeout=0.05) as db:
        with pytest.raises(StatementRefused) as refused:
            await db.query(f"{made} SELECT pg_sleep(60) FROM made")
        assert refused.value.sqlstate == "57014"
        assert await db.query("SELECT FROM directory_groups") == []


async def test_of_statements_sent_together_all_count_or_none(db: Database) -> None:
    made = "INSERT INTO directory_groups VALUES ('T', %s, 'h')"
    with pytest.raises(StatementRefused, match="22012"):
        await db.together((made, ["G1"]), ("SELECT 1 / 0", None), (made, ["G2"]))
    assert await db.query("SELECT FROM directory_groups") == []
    first, found = await db.together((made, ["G3"]), ("SELECT group_id FROM directory_groups", None))
    assert (first, found) == ([], [{"group_id": "G3"}])


async def test_the_first_of_statements_sent_together_is_the_one_that_is_told(db: Database) -> None:
    with pytest.raises(StatementRefused, match="22012"):
        await db.together(("SELECT 1 / 0", None), ("SELECT 1", None))
    assert await db.query("SELECT 1 AS one") == [{"one": 1}]


async def test_the_owner_works_under_the_apps_role(database: databases.Database) -> None:
    async with opened(database.owner_url) as db:
        assert await db.role() == "vistobueno_app"


async def test_settings_of_the_database_that_statements_do_not_bear_are_not_taken(
    database: databases.Database,
) -> None:
    for setting in ("default_transaction_isolation = 'repeatable read'", "datestyle = 'German'"):
        execute(database.admin_url, f'ALTER DATABASE "{database.name}" SET {setting}')
    async with opened(database.url) as db:
        assert await db.query("SHOW transaction_isolation") == [{"transaction_isolation": "read committed"}]
        assert await db.query("SELECT to_timestamp(0) AT TIME ZONE 'UTC' AS at") == [
            {"at": datetime(1970, 1, 1)}  # noqa: DTZ001
        ]


# --- hearing of work ---


async def notify(database: databases.Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.owner_url, autocommit=True) as connection:
        await connection.execute(f"NOTIFY {CHANNEL}")


async def test_a_listener_hears_of_committed_work(db: Database, database: databases.Database) -> None:
    async with db.listener() as listener:
        assert await listener.wait(20)  # connected: there may have been work before
        heard = asyncio.create_task(listener.wait(20))
        await notify(database)
        assert await heard


async def test_a_listener_hears_what_came_while_it_did_not_wait(
    db: Database, database: databases.Database
) -> None:
    async with db.listener() as listener:
        await listener.wait(20)
        await notify(database)
        assert await listener.wait(20)


async def test_a_listener_that_hears_nothing_returns_in_time(db: Database) -> None:
    async with db.listener() as listener:
        await listener.wait(20)
        assert await listener.wait(0.01) is False


async def test_a_listener_whose_connection_is_lost_connects_again(
    db: Database, database: databases.Database
) -> None:
    async with db.listener() as listener:
        await listener.wait(20)
        kill(database)
        assert await listener.wait(0.05) is False
        assert await listener.wait(20)
        await notify(database)
        assert await listener.wait(20)


async def test_a_listener_without_a_server_waits_and_goes_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    listener = Listener(f"postgresql://u@127.0.0.1:{port}/d")
    assert await listener.wait(0.01) is False
    await listener.close()


# --- values ---


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a\x00b", "a\ufffdb"),
        ("half \ud83d", "half ?"),
        ("whole 😀", "whole 😀"),
        ("\\u0000", "\\u0000"),
        ("\\\\u0000", "\\\\u0000"),
        ("\\\x00", "\\\ufffd"),
        ("%s %(x)s :y", "%s %(x)s :y"),
    ],
)
async def test_a_text_is_stored_as_postgresql_can(db: Database, value: str, stored: str) -> None:
    row = await db.one(
        "SELECT %s::text AS plain, %s::jsonb AS json", [text(value), dump({"k" + value: [value]})]
    )
    assert row == {"plain": stored, "json": {"k" + stored: [stored]}}


def test_nothing_is_sqls_null() -> None:
    assert dump(None) is None
    assert dump([None]) == "[null]"
