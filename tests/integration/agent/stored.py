"""A stored conversation of one release: written to a golden file, and put into a database again."""

import json
from pathlib import Path
from typing import Any

import psycopg

from tests.databases import Database

GOLDEN = Path(__file__).parent / "golden"
# what a run goes on from, and what people and the model are shown of it
TABLES = ("conversations", "runs", "messages", "calls", "approvals", "revisions", "decisions", "cards")


def golden(version: int) -> Path:
    """The file of one version of the state."""
    return GOLDEN / f"state_{version}.json"


def rows_of(owner_url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of the tables, as JSON."""
    with psycopg.connect(owner_url) as connection:
        return {
            table: [
                row
                for (row,) in connection.execute(
                    f"SELECT to_json(t) FROM {table} t ORDER BY to_json(t)::text"
                )
            ]
            for table in TABLES
        }


def write(owner_url: str, version: int) -> None:
    """Make the golden file of a version; for the release that begins it, and never again."""
    golden(version).write_text(json.dumps(rows_of(owner_url), indent=1, ensure_ascii=False) + "\n")


def restore(database: Database, version: int) -> None:
    """Put the stored rows into an empty database, and its clock to a minute after they were written.

    Columns that the file does not know get their defaults, as in a migration.
    """
    stored: dict[str, list[dict[str, Any]]] = json.loads(golden(version).read_text())
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # they were born in other statuses
        for table, rows in stored.items():
            for row in rows:
                names = ", ".join(name for name in row if (table, name) != ("decisions", "id"))
                connection.execute(
                    f"INSERT INTO {table} ({names})"
                    f" SELECT {names} FROM json_populate_record(NULL::{table}, %s)",
                    [json.dumps(row)],
                )
        written = max(row["created_at"] for row in stored["messages"])
        connection.execute(
            "CREATE OR REPLACE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS"
            f" $$SELECT now() - (timestamptz '{_now(connection)}' - timestamptz '{written}')"
            " + interval '1 minute'$$"
        )


def _now(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("SELECT now()::text").fetchone()
    assert row is not None
    return str(row[0])
