"""The doctor on the database: unreachable, too old, not migrated, unprotected, on another clock."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from store import embedded
from store.engine import migrate
from store.errors import ANOTHER_USER
from tests.databases import PASSWORD, Database, with_login
from tests.integration.doctor.house import House

REST = ("server", "migrations", "record", "database clock")


def execute(url: str, *statements: sql.Composed | sql.SQL) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def shift_clock(database: Database, seconds: int) -> None:
    body = sql.Literal(f"SELECT now() + interval '{seconds} seconds'")
    execute(
        database.owner_url,
        sql.SQL(
            "CREATE OR REPLACE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE AS {}"
        ).format(body),
    )


@pytest.fixture
def outsider(database: Database) -> Iterator[tuple[str, sql.Identifier]]:
    """A user of the server who may not take the app's role: the URL, and the name."""
    name = f"outsider_{database.name}"
    role = sql.Identifier(name)
    execute(
        database.admin_url,
        sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(PASSWORD)),
    )
    yield with_login(database.admin_url, name, PASSWORD, database.name), role
    drop = "DROP OWNED BY {0}", "DROP ROLE {0}"
    execute(database.admin_url, *(sql.SQL(text).format(role) for text in drop))


async def test_a_database_that_cannot_be_reached_explains_why_the_rest_is_skipped(house: House) -> None:
    url = "postgresql://me:pa55word@127.0.0.1:1/shop"
    found = await house.findings(DATABASE_URL=url)
    assert found["database"].status == "failed"
    assert found["database"].do is not None
    assert "PostgreSQL at 127.0.0.1 (database shop) cannot be reached" in found["database"].do
    assert "Check DATABASE_URL and that the server is running." in found["database"].do
    assert {found[check].status for check in REST} == {"skipped"}
    assert found["slack"].status == "ok"


async def test_without_any_database_it_says_how_to_get_one(house: House) -> None:
    finding = await house.finding("database", DATABASE_URL="")
    assert finding.status == "failed"
    assert finding.do is not None
    assert finding.do.startswith("There is no database yet: set DATABASE_URL")


async def test_a_database_that_is_not_migrated_asks_for_migrate(
    house: House, empty_database: Database
) -> None:
    found = await house.findings(DATABASE_URL=empty_database.url)
    assert found["server"].status == "ok"
    assert found["migrations"].status == "failed"
    assert found["migrations"].do is not None
    assert found["migrations"].do.endswith("run `vistobueno migrate`.")
    assert found["record"].says == "the migrations check failed"
    assert found["database clock"].status == "skipped"


async def test_an_old_server_is_to_be_upgraded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.errors.OLDEST_SERVER", 99)
    found = await house.findings()
    assert found["server"].status == "failed"
    assert found["server"].do is not None
    assert found["server"].do.endswith("vistobueno needs 99 or newer: upgrade it.")
    assert found["migrations"].status == "skipped"


async def test_who_may_not_take_the_apps_role_is_told_that_only_the_trigger_protects_the_record(
    house: House, outsider: tuple[str, sql.Identifier]
) -> None:
    url, role = outsider
    grant = sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(role)
    execute(house.database.owner_url, grant)
    found = await house.findings(DATABASE_URL=url)
    assert found["migrations"].status == "ok"
    assert found["record"].status == "warning"
    assert "only its trigger protects it, for the app works as outsider_" in found["record"].says
    assert "GRANT vistobueno_app TO …" in (found["record"].do or "")


async def test_who_may_read_nothing_is_told_whom_to_connect_as(
    house: House, outsider: tuple[str, sql.Identifier]
) -> None:
    finding = await house.finding("database", DATABASE_URL=outsider[0])
    assert finding.status == "failed"
    assert finding.do is not None
    assert "permission denied" in finding.do
    assert finding.do.endswith(ANOTHER_USER)


async def test_who_may_only_read_is_told_whom_to_connect_as(
    house: House, outsider: tuple[str, sql.Identifier]
) -> None:
    url, role = outsider
    execute(
        house.database.owner_url, sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(role)
    )
    finding = await house.finding("database", DATABASE_URL=url)
    assert finding.status == "failed"
    assert "may not write the app's tables: connect as vistobueno_app" in (finding.do or "")


@pytest.mark.parametrize(
    ("seconds", "status", "words"),
    [(20, "ok", "from the database's"), (90, "warning", "behind"), (-400, "failed", "ahead of")],
)
async def test_the_databases_clock_is_compared_with_this_machines(
    house: House, seconds: int, status: str, words: str
) -> None:
    shift_clock(house.database, seconds)
    finding = await house.finding("database clock")
    assert finding.status == status
    assert words in finding.says
    assert status == "ok" or (finding.do or "").startswith(
        "Set the clock of this machine, or of the database's"
    )


async def test_an_owner_without_the_apps_url_cannot_work(house: House) -> None:
    finding = await house.finding(
        "configuration", DATABASE_URL="", DATABASE_OWNER_URL=house.database.owner_url
    )
    assert finding.status == "failed"
    assert finding.says == "DATABASE_OWNER_URL is set and DATABASE_URL is not"
    assert finding.do is not None
    assert finding.do.startswith("Set DATABASE_URL to the same database")


async def test_an_owner_of_another_database_is_warned_of(house: House, empty_database: Database) -> None:
    assert (await house.finding("configuration", DATABASE_OWNER_URL=house.database.owner_url)).status == "ok"
    finding = await house.finding("configuration", DATABASE_OWNER_URL=empty_database.owner_url)
    assert finding.status == "warning"
    assert finding.says == "DATABASE_URL and DATABASE_OWNER_URL name different databases"


async def test_the_embedded_database_is_looked_at_while_it_runs_and_never_started(
    house: House, server_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.embedded.default_folder", lambda: server_folder)
    server = await embedded.start(server_folder, fast=True)
    try:
        found = await house.findings(DATABASE_URL="")
        assert found["migrations"].do is not None
        assert "run `vistobueno dev` once" in found["migrations"].do
        await migrate(server.owner_url)
        found = await house.findings(DATABASE_URL="")
        assert {found[check].status for check in ("database", *REST)} == {"ok"}
    finally:
        await embedded.stop(server)
    found = await house.findings(DATABASE_URL="")
    assert found["database"].status == "warning"
    assert found["database"].says == "the embedded database is not running"
    assert {found[check].status for check in REST} == {"skipped"}
    assert not (server_folder / "cluster" / "data" / "postmaster.pid").exists()
