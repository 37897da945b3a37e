"""The migrations build exactly the tables, once, whoever runs them and however often."""

import asyncio
import re
import sys
from collections.abc import Iterator

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import create_engine

from store import ddl
from store import migrate as migrations
from store.embedded import default_folder
from store.engine import Database, migrate, sqlalchemy_url
from store.errors import NoRight, NotMigrated, StatementRefused
from store.tables import metadata
from tests import schema
from tests.databases import PASSWORD, Server, one, with_login
from tests.databases import Database as Clone
from tests.integration.store.rows import execute

pytestmark = pytest.mark.store

CATALOG = {
    "columns": """SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        a.attidentity, pg_get_expr(d.adbin, d.adrelid)
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0""",
    "constraints": """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace""",
    "indexes": """SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = 'public'::regnamespace""",
    "functions": """SELECT proname, pg_get_functiondef(oid) FROM pg_proc
     WHERE pronamespace = 'public'::regnamespace""",
    "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
}


def catalog(url: str, part: str) -> set[tuple[object, ...]]:
    rows = execute(url, CATALOG[part])
    return {row for row in rows if "alembic_version" not in str(row)}


@pytest.fixture
def from_tables(empty_database: Clone) -> Clone:
    """A database made from today's tables, without any migration."""
    with psycopg.connect(empty_database.owner_url) as connection:
        for statement in schema.statements():
            connection.execute(statement.encode())
    return empty_database


@pytest.mark.parametrize("part", CATALOG)
def test_a_migrated_database_is_the_one_that_the_tables_describe(
    database: Clone, from_tables: Clone, part: str
) -> None:
    migrated = catalog(database.owner_url, part)
    assert migrated == catalog(from_tables.owner_url, part)
    assert migrated


def test_alembic_finds_nothing_to_migrate(database: Clone) -> None:
    engine = create_engine(sqlalchemy_url(database.owner_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_newest_version_is_the_one_that_the_code_asks_for() -> None:
    assert ScriptDirectory.from_config(migrations.config()).get_current_head() == migrations.HEAD


async def test_migrating_twice_changes_nothing(empty_database: Clone) -> None:
    await migrate(empty_database.owner_url)
    await migrate(empty_database.owner_url)
    assert one(empty_database.url, "SELECT count(*) FROM alembic_version") == 1


async def test_many_migrations_at_once_wait_for_each_other(empty_database: Clone) -> None:
    await asyncio.gather(*(migrate(empty_database.owner_url) for _ in range(6)))
    assert one(empty_database.url, "SELECT version_num FROM alembic_version") == migrations.HEAD


async def test_migrations_of_two_databases_of_a_server_at_once_work(
    server: Server, empty_database: Clone
) -> None:
    with server.database() as other:
        await asyncio.gather(migrate(empty_database.owner_url), migrate(other.owner_url))
        assert one(other.url, "SELECT count(*) FROM runs") == 0


async def checked(url: str) -> None:
    db = Database.open(url)
    try:
        await db.check()
    finally:
        await db.close()


async def test_a_migrated_database_passes_the_check(database: Clone) -> None:
    await checked(database.url)


async def test_a_database_without_tables_says_what_to_run(empty_database: Clone) -> None:
    with pytest.raises(NotMigrated, match=r"version none .* needs \d+: run `vistobueno migrate`\.$"):
        await checked(empty_database.url)


async def test_a_database_of_another_version_says_what_to_run(database: Clone) -> None:
    execute(database.owner_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NotMigrated, match=r"version 9999 .*: install a newer one\.$"):
        await checked(database.url)


async def test_a_database_that_is_too_old_to_be_migrated_says_so(database: Clone) -> None:
    execute(database.owner_url, "UPDATE alembic_version SET version_num = '0001'")
    folder = re.escape(str(default_folder()))
    for refused in (checked(database.url), migrate(database.owner_url)):
        with pytest.raises(
            NotMigrated,
            match=rf"version 0001 .*: it is from before the first release; use an empty one .* {folder}\)\.$",
        ):
            await refused


async def test_a_statement_on_a_database_without_tables_says_what_to_run(
    empty_database: Clone,
) -> None:
    db = Database.open(empty_database.url)
    with pytest.raises(NotMigrated, match="run `vistobueno migrate`"):
        await db.query("SELECT * FROM runs")
    await db.close()


MIGRATE = "import asyncio, sys; from store.engine import migrate; asyncio.run(migrate(sys.argv[1]))"


async def test_migrations_in_processes_of_their_own_at_once_work(
    server: Server, empty_database: Clone
) -> None:
    with server.database() as other:
        urls = [empty_database.owner_url, empty_database.owner_url, other.owner_url]
        started = [await asyncio.create_subprocess_exec(sys.executable, "-c", MIGRATE, url) for url in urls]
        assert await asyncio.gather(*(process.wait() for process in started)) == [0, 0, 0]


async def test_a_migration_that_fails_says_why_and_leaves_nothing(empty_database: Clone) -> None:
    execute(empty_database.owner_url, "CREATE TABLE runs (id int)")
    with pytest.raises(StatementRefused, match='"runs" already exists'):
        await migrate(empty_database.owner_url)
    assert one(empty_database.owner_url, "SELECT to_regclass('approvals')") is None


@pytest.mark.parametrize(
    "versions", ["('ab12cd34ef56')", "('0004')", "('0001'), ('0002')", "('0004'), ('x')"]
)
async def test_the_database_of_another_application_is_left_alone(
    empty_database: Clone, versions: str
) -> None:
    execute(empty_database.owner_url, "CREATE TABLE alembic_version (version_num text PRIMARY KEY)")
    execute(empty_database.owner_url, f"INSERT INTO alembic_version VALUES {versions}")
    for refused in (migrate(empty_database.owner_url), checked(empty_database.owner_url)):
        with pytest.raises(
            NotMigrated, match=r"another application, .*: give vistobueno a database of its own"
        ):
            await refused
    assert one(empty_database.owner_url, "SELECT to_regclass('approvals')") is None


async def test_migrations_of_others_beside_ours_are_said(database: Clone) -> None:
    execute(database.owner_url, "INSERT INTO alembic_version VALUES ('ab12cd34ef56')")
    for refused in (migrate(database.owner_url), checked(database.url)):
        with pytest.raises(NotMigrated, match="belongs to another application"):
            await refused


# --- who migrates ---


async def test_whoever_may_not_make_tables_reads_who_can(server: Server, empty_database: Clone) -> None:
    url = with_login(server.admin_url, "vistobueno_app", PASSWORD, empty_database.name)
    # as it is from PostgreSQL 15 on
    execute(empty_database.admin_url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(NoRight, match=r": connect as the owner of the database, in DATABASE_OWNER_URL\.$"):
        await migrate(url)


@pytest.fixture
def plain_owner(server: Server, empty_database: Clone) -> Iterator[Clone]:
    """A hosted database: its owner may neither make roles nor take the app's."""
    name = sql.Identifier(f"plain_{empty_database.name}")
    database = sql.Identifier(empty_database.name)
    server.admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(PASSWORD)))
    server.admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, name))
    with psycopg.connect(empty_database.admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(name))
    url = with_login(server.admin_url, f"plain_{empty_database.name}", PASSWORD, empty_database.name)
    yield Clone(empty_database.name, url, url, empty_database.admin_url)
    with psycopg.connect(empty_database.admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
    server.admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO vistobueno").format(database))
    server.admin.execute(sql.SQL("DROP ROLE {}").format(name))


async def test_an_owner_who_may_not_make_roles_migrates_and_works_as_himself(
    plain_owner: Clone,
) -> None:
    await migrate(plain_owner.owner_url)
    db = Database.open(plain_owner.url)
    await db.check()
    assert await db.role() == f"plain_{plain_owner.name}"
    await db.close()


async def test_tables_of_others_in_the_schema_are_left_alone(empty_database: Clone) -> None:
    execute(empty_database.admin_url, "CREATE TABLE public.of_others (id int)")
    await migrate(empty_database.owner_url)
    allowed = "SELECT has_table_privilege('vistobueno_app', 'of_others', 'SELECT')"
    assert one(empty_database.admin_url, allowed) is False


def test_every_table_says_what_the_app_may_do(database: Clone) -> None:
    named = ddl.READ_BY_APP | ddl.ADDED_TO_BY_APP | ddl.EMPTIED_BY_APP
    assert named <= {*metadata.tables, "alembic_version"}
