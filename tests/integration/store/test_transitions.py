"""The database accepts exactly the moves of store.transitions, and never forgets an attempt."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import product
from typing import Any

import psycopg
import pytest

from store import transitions as t
from store.engine import Database
from store.errors import ForbiddenMove
from tests import databases
from tests.integration.store.rows import a_claimed_run, a_pending_approval, an_attempted_call

pytestmark = pytest.mark.store

Moves = Mapping[Any, frozenset[Any]]
TABLES: dict[str, tuple[type[StrEnum], Moves, frozenset[Any]]] = {
    "runs": (t.RunStatus, t.RUN_MOVES, t.RUN_BIRTHS),
    "calls": (t.CallStatus, t.CALL_MOVES, t.CALL_BIRTHS),
    "approvals": (t.ApprovalStatus, t.APPROVAL_MOVES, t.APPROVAL_BIRTHS),
}
ALL = [(table, old, new) for table, (s, _, _) in TABLES.items() for old, new in product(s, s) if old != new]


@pytest.fixture
async def only_moves(db: Database, database: databases.Database) -> psycopg.Connection[Any]:
    """The owner's connection to a database with one row of each, and no CHECK but that of the status."""
    await a_pending_approval(db)
    connection = psycopg.connect(database.owner_url, autocommit=True)
    found = connection.execute(
        "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'c'"
        " AND conrelid IN ('runs'::regclass, 'calls'::regclass, 'approvals'::regclass)"
        " AND conname NOT LIKE '%_status'"
    ).fetchall()
    for table, name in found:
        connection.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'.encode())
    return connection


def refused_state(connection: psycopg.Connection[Any], *statements: str) -> str | None:
    """The SQLSTATE with which the last statement is refused; None: it is accepted. Nothing of it stays."""
    with connection.transaction(force_rollback=True):
        try:
            for statement in statements:
                connection.execute(statement.encode())
        except psycopg.Error as error:
            return error.sqlstate
    return None


def test_a_row_moves_exactly_as_the_table_of_transitions_says(
    only_moves: psycopg.Connection[Any],
) -> None:
    wrong = []
    for table, old, new in ALL:
        states = TABLES[table][1]
        state = refused_state(
            only_moves,
            f"ALTER TABLE {table} DISABLE TRIGGER {table}_moves",
            f"UPDATE {table} SET status = '{old}'",
            f"ALTER TABLE {table} ENABLE TRIGGER {table}_moves",
            f"UPDATE {table} SET status = '{new}'",
        )
        if state != (None if new in states.get(old, ()) else "VB001"):
            wrong.append((table, old, new, state))
    only_moves.close()
    assert wrong == []


def _copies() -> Iterator[tuple[str, StrEnum, str]]:
    columns = {
        "runs": ("conversation_id, agent, task, state_version", "seq + 1, id || 'x'", "seq, source_key"),
        "calls": ("run_id, turn, provider_id, tool, input", "position + 1", "position"),
        "approvals": (
            "run_id, conversation_id, tool, effect, agent, rule, expires_at",
            "(SELECT id FROM other)",
            "call_id",
        ),
    }
    for table, (statuses, _, _) in TABLES.items():
        same, made, names = columns[table]
        other = "WITH other AS (SELECT id FROM calls WHERE position = 9)"
        for status in statuses:
            yield (
                table,
                status,
                f"{other} INSERT INTO {table} (id, status, {same}, {names})"
                f" SELECT id || 'x', '{status}', {same}, {made} FROM {table} LIMIT 1",
            )


def test_a_row_is_born_only_as_the_table_of_transitions_says(
    only_moves: psycopg.Connection[Any],
) -> None:
    only_moves.execute(
        "INSERT INTO calls (id, status, run_id, turn, position, provider_id, tool, input)"
        " SELECT 'other', 'proposed', run_id, turn, 9, provider_id, tool, input FROM calls LIMIT 1"
    )
    wrong = []
    for table, status, statement in _copies():
        expected = None if status in TABLES[table][2] else "VB001"
        if refused_state(only_moves, statement) != expected:
            wrong.append((table, status))
    only_moves.close()
    assert wrong == []


async def test_a_forbidden_move_is_an_error_of_its_own(db: Database) -> None:
    approval = await a_pending_approval(db)
    with pytest.raises(ForbiddenMove, match="cannot go from pending to executed"):
        await db.query("UPDATE approvals SET status = 'executed' WHERE id = %s", [approval.id])


# --- what may have happened is never recorded as never run ---


@pytest.fixture
async def no_moves(db: Database, database: databases.Database) -> psycopg.Connection[Any]:
    """The owner's connection to a database whose triggers on moves are off, so that only CHECKs speak."""
    connection = psycopg.connect(database.owner_url, autocommit=True)
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_moves".encode())
    return connection


CLOSED = "token = NULL, lease_until = NULL, result = coalesce(result, '{}')"


@pytest.mark.parametrize("status", sorted(t.NEVER_ATTEMPTED_APPROVALS))
async def test_an_attempted_approval_cannot_be_recorded_as_never_run(
    db: Database, no_moves: psycopg.Connection[Any], status: str
) -> None:
    await an_attempted_call(db)
    with no_moves, pytest.raises(psycopg.errors.CheckViolation, match="attempted_is_not_forgotten"):
        no_moves.execute("UPDATE approvals SET status = %s", [status])


@pytest.mark.parametrize("status", sorted(t.ATTEMPTED_APPROVALS))
async def test_an_approval_never_attempted_cannot_be_recorded_as_run(
    db: Database, no_moves: psycopg.Connection[Any], status: str
) -> None:
    await a_pending_approval(db)
    with no_moves, pytest.raises(psycopg.errors.CheckViolation, match="ck_approvals_attempted"):
        no_moves.execute("UPDATE approvals SET status = %s", [status])


@pytest.mark.parametrize("status", sorted(t.NEVER_ATTEMPTED_CALLS))
async def test_an_attempted_call_cannot_be_recorded_as_never_run(
    db: Database, no_moves: psycopg.Connection[Any], status: str
) -> None:
    await an_attempted_call(db)
    closed = CLOSED if status != "proposed" else CLOSED.replace("coalesce(result, '{}')", "NULL")
    with no_moves, pytest.raises(psycopg.errors.CheckViolation, match="attempted_is_not_forgotten"):
        no_moves.execute(f"UPDATE calls SET {closed}, status = %s".encode(), [status])


@pytest.mark.parametrize("status", sorted(t.ATTEMPTED_CALLS))
async def test_a_call_never_attempted_cannot_be_recorded_as_run(
    db: Database, no_moves: psycopg.Connection[Any], status: str
) -> None:
    await a_pending_approval(db)
    with no_moves, pytest.raises(psycopg.errors.CheckViolation, match="ck_calls_attempted"):
        no_moves.execute(f"UPDATE calls SET {CLOSED}, status = %s".encode(), [status])


BROKEN = {
    "a key without an attempt": ("UPDATE calls SET key = 'k'", "ck_calls_key"),
    "a first attempt without an attempt": (
        "UPDATE calls SET first_attempt_at = now()",
        "ck_calls_first_attempt",
    ),
    "an attempt without a key": (
        "UPDATE calls SET attempts = 1, first_attempt_at = now()",
        "ck_calls_key",
    ),
    "an open call with a result": ("UPDATE calls SET result = '{}'", "closed_with_a_result"),
    "a closed call without a result": ("UPDATE calls SET status = 'rejected'", "closed_with_a_result"),
    "a call executing without a lease": ("UPDATE calls SET status = 'executing'", "ck_calls_lease"),
    "a run running without a lease": ("UPDATE runs SET status = 'running'", "ck_runs_lease"),
    "a run waiting for nothing": ("UPDATE runs SET open_calls = 0", "awaits_something"),
    "fewer than no open calls": (
        "UPDATE runs SET status = 'completed', open_calls = -1",
        "ck_runs_open_calls",
    ),
    "an approval that waits for more than a week": (
        "UPDATE approvals SET expires_at = created_at + interval '7 days 1 second'",
        "seven_days",
    ),
    "an approved one without a time to be claimed by": (
        "UPDATE approvals SET status = 'approved'",
        "ck_approvals_claim_by",
    ),
    "one that may be claimed for more than a day": (
        "UPDATE approvals SET decided_at = now(), claim_by = now() + interval '24 hours 1 second'",
        "claimed_within_a_day",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
async def test_the_database_refuses(db: Database, no_moves: psycopg.Connection[Any], fault: str) -> None:
    statement, constraint = BROKEN[fault]
    await a_pending_approval(db)
    with no_moves, pytest.raises(psycopg.errors.CheckViolation, match=constraint):
        no_moves.execute(statement.encode())


async def test_a_conversation_cannot_have_two_started_runs(
    db: Database, no_moves: psycopg.Connection[Any]
) -> None:
    await a_claimed_run(db)
    with no_moves, pytest.raises(psycopg.errors.UniqueViolation, match="uq_runs_one_started"):
        no_moves.execute(
            "INSERT INTO runs (id, conversation_id, seq, status, agent, task, source_key, state_version,"
            " started_at) SELECT 'r', conversation_id, 2, 'queued', agent, task, 'k', 1, now() FROM runs"
        )
