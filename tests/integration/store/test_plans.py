"""The statements that workers and people repeat find their rows by an index, however many rows there are."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from types import ModuleType
from typing import Any

import psycopg
import pytest

from store import approvals, calls, cards, notices, runs
from store.engine import SESSION, Database, Params, Row
from store.statements import decisions, executing, leases
from store.statements import runs as running
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    LEASE,
    TEAM,
    a_claimed_call,
    a_pending_approval,
    an_approved_one,
)

pytestmark = pytest.mark.store


class Explaining(Database):
    """A store that asks for the plan of each statement first."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.plans: list[str] = []

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """Plan it, then run it."""
        (row,) = await self.inner.query(f"EXPLAIN (FORMAT JSON) {sql}", params)
        self.plans.append(json.dumps(row["QUERY PLAN"]))
        return await self.inner.query(sql, params)

    async def together(self, *statements: tuple[str, Params]) -> list[list[Row]]:
        """One after another, each planned."""
        return [await self.query(*statement) for statement in statements]


Ask = Callable[[Database], Awaitable[Any]]
# with few open approvals, each of the indexes that have nothing else is as good
OPEN = "ix_approvals_open|ix_approvals_deadline|ix_approvals_escalation|ix_approvals_ready"
USES: dict[str, tuple[str, Ask]] = {
    "runs.claim": ("ix_runs_queue", lambda db: runs.claim(db, token="t", worker="w", lease=LEASE)),
    "runs.recover": ("ix_runs_running", lambda db: runs.recover(db)),
    "calls.claim": ("ix_approvals_ready", lambda db: calls.claim(db, token="t", worker="w", lease=LEASE)),
    "calls.lapsed": ("uq_calls_one_executing", lambda db: calls.lapsed(db)),
    "calls.lapsed of stopped runs": ("ix_calls_allowed", lambda db: calls.lapsed(db)),
    "calls.stop_released": ("ix_calls_allowed", lambda db: calls.stop_released(db, CANCELLED)),
    "approvals.due": (OPEN, lambda db: approvals.due(db)),
    "approvals.to_escalate": (OPEN, lambda db: approvals.to_escalate(db)),
    "approvals.give_up_repeats": (
        "ix_approvals_ready",
        lambda db: approvals.give_up_repeats(db, "Too old."),
    ),
    "approvals.waiting_all": (OPEN, lambda db: approvals.waiting_all(db, limit=9)),
    "calls.unsettled": (OPEN, lambda db: calls.unsettled(db)),
    "calls.remind": (OPEN, lambda db: calls.remind(db, [3600.0])),
    "approvals.pending_all": (OPEN, lambda db: approvals.pending_all(db, limit=9)),
    "approvals.waiting_for": (
        OPEN,
        lambda db: approvals.waiting_for(db, team_id=TEAM, user_id="U", roles=["support_lead"], limit=9),
    ),
    "cards.claim_behind": (
        "ix_cards_behind",
        lambda db: cards.claim_behind(db, token="t", worker="w", lease=LEASE),
    ),
    "notices.claim": (
        "ix_notices_unposted",
        lambda db: notices.claim(db, token="t", worker="w", lease=LEASE),
    ),
}

OLD_ROWS = """
INSERT INTO conversations (id, team_id, channel_id, thread_ts)
  SELECT 'old' || n, 'T', 'C', n::text FROM generate_series(1, 3000) n;
INSERT INTO runs (id, conversation_id, seq, status, agent, task, source_key, state_version, started_at)
  SELECT 'old' || n, 'old' || n, 1, 'completed', 'a', 't', 'old' || n, 1, now()
    FROM generate_series(1, 3000) n;
INSERT INTO calls (id, run_id, turn, position, provider_id, tool, effect, input, status, result)
  SELECT 'old' || n, 'old' || n, 1, 0, 'p', 'pay', 'payment', '{}', 'rejected', '{}'
    FROM generate_series(1, 3000) n;
INSERT INTO approvals (id, call_id, run_id, conversation_id, status, tool, effect, agent, rule, expires_at)
  SELECT 'old' || n, 'old' || n, 'old' || n, 'old' || n, 'rejected', 'pay', 'payment', 'a', '{}', now()
    FROM generate_series(1, 3000) n;
INSERT INTO revisions (approval_id, revision, input, input_hash, facts, items_digest, precondition, preview,
                       preview_hash, schema_hash)
  SELECT 'old' || n, 1, '{}', 'h', '{}', 'd', '{}', '{}', 'h', 's' FROM generate_series(1, 3000) n;
INSERT INTO cards (id, approval_id, team_id, channel_id, shown_version)
  SELECT 'old' || n, 'old' || n, 'T', 'C', 1 FROM generate_series(1, 3000) n;
INSERT INTO notices (dedupe_key, conversation_id, kind, data, posted_at)
  SELECT 'old' || n, 'old' || n, 'k', '{}', now() FROM generate_series(1, 3000) n
"""


@pytest.fixture
async def explaining(db: Database, database: databases.Database) -> Explaining:
    """A store with thousands of ended rows and a few open ones."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(OLD_ROWS.encode())
    await a_claimed_call(db, ["b1"])
    await a_pending_approval(db, ["b2"])
    await an_approved_one(db, ["b3"])
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return Explaining(db)


@pytest.mark.parametrize("use", USES)
async def test_open_rows_are_found_by_their_index_among_thousands_of_ended_ones(
    explaining: Explaining, use: str
) -> None:
    indexes, ask = USES[use]
    await ask(explaining)
    plan = explaining.plans[0]
    assert any(f'"Index Name": "{index}"' in plan for index in indexes.split("|")), plan


async def test_a_claim_reads_no_table_whole(explaining: Explaining) -> None:
    await calls.claim(explaining, token="t", worker="w", lease=LEASE)
    whole = re.findall(r'"Seq Scan"[^{}]*"Relation Name": "(\w+)"', explaining.plans[0])
    assert set(whole) <= {"held_items"}  # as small as what is being executed


# --- the plans that a connection makes at first, and keeps ---

# Indexes of what is open now, which are as small as that, and may be read whole.
OF_WHAT_IS_OPEN = {
    "ix_approvals_escalation",
    "ix_approvals_ready",
    "ix_calls_allowed",
    "ix_runs_queue",
    "ix_runs_running",
    "uq_calls_one_executing",
}


def _statements(*modules: ModuleType) -> dict[str, str]:
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, str) and value.startswith("\nWITH ")
    }


_PARAMETER = re.compile(r"%\((\w+)\)s")
STATEMENTS = _statements(decisions, executing, leases, running)


def _scans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if plan["Node Type"] in {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan"}:
        yield plan
    for inner in plan.get("Plans", ()):
        yield from _scans(inner)


def test_all_the_steps_are_looked_at() -> None:
    assert len(STATEMENTS) > 30
    assert {"PROPOSE", "APPROVE", "CLAIM_CALL", "START_ATTEMPT", "FINISH_DONE", "RENEW"} <= set(STATEMENTS)


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_plan_made_while_the_tables_are_empty_reads_none_whole(
    database: databases.Database, name: str
) -> None:
    parameters = list(dict.fromkeys(_PARAMETER.findall(STATEMENTS[name])))
    sql = _PARAMETER.sub(lambda found: f"${parameters.index(found[1]) + 1}", STATEMENTS[name])
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        connection.execute(f"{SESSION}; SET plan_cache_mode = force_generic_plan".encode())
        connection.execute(f"PREPARE it AS {sql}".encode())
        nulls = ", ".join(["NULL"] * len(parameters))
        ((found,),) = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE it({nulls})".encode()).fetchall()
    whole = {
        scan.get("Index Name", scan.get("Relation Name"))
        for scan in _scans(found[0]["Plan"])
        if "Index Cond" not in scan
    }
    assert whole <= OF_WHAT_IS_OPEN
