"""The tests' own ground: a database per test, and no skip that CI would not see."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.databases import Database, Server, with_login

ROOT = Path(__file__).parents[2]


def who(url: str) -> object:
    """The role and database a URL leads to."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT current_user, current_database()").fetchone()


def tables(url: str) -> set[object]:
    """The names of the tables in the public schema."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


@pytest.mark.store
def test_a_test_gets_a_migrated_database_as_app_owner_and_superuser(database: Database) -> None:
    assert who(database.url) == ("vistobueno_app", database.name)
    assert who(database.owner_url) == ("vistobueno", database.name)
    assert who(database.admin_url) == ("postgres", database.name)
    assert {"approvals", "runs", "audit_events"} <= tables(database.owner_url)


@pytest.mark.store
def test_an_empty_database_has_no_tables(empty_database: Database) -> None:
    assert tables(empty_database.owner_url) == set()


@pytest.mark.store
def test_a_database_goes_even_if_a_test_left_it_open(server: Server, template: Database) -> None:
    with server.database(template) as used:
        left_open = psycopg.connect(used.url)
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    left_open.close()
    there = server.admin.execute("SELECT FROM pg_database WHERE datname = %s", [used.name])
    assert there.rowcount == 0


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://postgres@/postgres?host=%2Ftmp", "postgresql://app:pw@/mine?host=%2Ftmp"),
        ("postgresql://u:p@127.0.0.1:5433/postgres", "postgresql://app:pw@127.0.0.1:5433/mine"),
        ("postgresql://localhost/postgres", "postgresql://app:pw@localhost/mine"),
    ],
)
def test_a_server_is_addressed_for_another_role_and_database(url: str, expected: str) -> None:
    assert with_login(url, "app", "pw", "mine") == expected


SKIPPING = """
import pytest

@pytest.mark.skip(reason={reason!r})
def test_skipped():
    assert False
"""
SKIPPED_FILE = """
import pytest
pytest.skip({reason!r}, allow_module_level=True)
"""


def outcome(folder: Path, source: str, **environment: str) -> tuple[int, str]:
    """How pytest ends with the project's own conftest and one test file; `CI` is only set if given."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (folder / "test_it.py").write_text(source)
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(folder)],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("source", [SKIPPING, SKIPPED_FILE])
def test_in_ci_a_skip_is_a_failure_that_names_the_reason(tmp_path: Path, source: str) -> None:
    code, text = outcome(tmp_path, source.format(reason="needs a moon"), CI="true")
    assert code != 0
    assert "skipped, which CI does not allow: " in text
    assert "needs a moon" in text


@pytest.mark.parametrize("source", [SKIPPING, SKIPPED_FILE])
def test_a_skip_is_allowed_outside_ci_and_for_another_platform(tmp_path: Path, source: str) -> None:
    assert "1 skipped" in outcome(tmp_path, source.format(reason="needs a moon"))[1]
    assert "1 skipped" in outcome(tmp_path, source.format(reason="other platform: macOS"), CI="true")[1]
