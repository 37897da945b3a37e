"""What is in a database: to see that something changed nothing."""

import psycopg
from psycopg import sql

from tests.databases import Database

KEPT_ASIDE = ("directory_%", "answered_clicks")
"""What is known of Slack's people, and which click was answered: neither is what anybody asked for."""


def contents(database: Database, *, but: str = "") -> dict[str, str]:
    """Each table's rows, as a number and a hash; all tables but those kept aside and one pattern."""
    aside = [*KEPT_ASIDE, but or KEPT_ASIDE[0]]
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            " AND NOT relname LIKE ANY (%s) ORDER BY 1",
            [aside],
        ).fetchall()
        return {name: _rows(connection, name) for (name,) in names}


def _rows(connection: psycopg.Connection[tuple[str, ...]], table: str) -> str:
    statement = sql.SQL(
        "SELECT count(*) || ' ' || md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) FROM {} AS t"
    )
    row = connection.execute(statement.format(sql.Identifier(table))).fetchone()
    assert row is not None
    return row[0]
