"""Everything is on the record, which nobody changes unseen."""

import asyncio

import psycopg
import pytest

from store import audit
from store.engine import Database
from store.errors import NoRight
from store.records import SYSTEM, AuditEvent
from tests import databases
from tests.integration.store.changes import CHANGES
from tests.integration.store.rows import (
    ANA,
    MARTA,
    a_pending_approval,
    a_run,
    approve,
    cancel,
    execute,
    reject,
    tampering,
)

pytestmark = pytest.mark.store


# --- each change and its event are one statement ---


async def everything(db: Database) -> list[AuditEvent]:
    found = await db.query("SELECT DISTINCT run_id FROM audit_events")
    return [event for row in found for event in await audit.of(db, row["run_id"])]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_and_its_event_are_one_statement(
    db: Database, database: databases.Database, change: str
) -> None:
    kinds, prepare = CHANGES[change]
    step = await prepare(db, database)
    before = {(e.run_id, e.seq) for e in await everything(db)}
    assert await step()
    added = [e for e in await everything(db) if (e.run_id, e.seq) not in before]
    assert [e.kind for e in added] == kinds
    assert all(e.actor is not None and e.run_id.startswith("run_") for e in added)
    assert (await audit.verify(db)).broken == ()


async def test_a_change_that_is_refused_leaves_no_event(db: Database) -> None:
    approval = await a_pending_approval(db)
    await approve(db, approval)
    before = len(await everything(db))
    assert not await reject(db, approval)
    assert not await cancel(db, "run_unknown")
    assert len(await everything(db)) == before


async def test_an_event_says_who_what_and_on_what(db: Database) -> None:
    approval = await a_pending_approval(db)
    await reject(db, approval)
    last = (await audit.of(db, approval.id))[-1]
    assert (last.kind, last.actor, last.approval_id, last.call_id) == (
        "approval.rejected",
        MARTA,
        approval.id,
        approval.call_id,
    )
    assert last.data["revision"] == 1
    assert last.data["reason"] == "Not today."
    assert last.data["input_hash"] == approval.shown.input_hash


async def test_a_refused_click_without_a_run_is_in_the_houses_chain(db: Database) -> None:
    await audit.append(db, kind="click.refused", actor=ANA, approval_id="made-up", data={"why": "unknown"})
    (event,) = await audit.of(db, audit.HOUSE)
    assert (event.kind, event.actor, event.approval_id) == ("click.refused", ANA, "made-up")
    assert (await audit.verify(db)).chains == 1


# --- nobody changes it ---

WRITES = {
    "INSERT": "INSERT INTO {} SELECT * FROM {}",
    "UPDATE": "UPDATE {} SET hash = ''",
    "DELETE": "DELETE FROM {}",
    "TRUNCATE": "TRUNCATE {}",
}


@pytest.mark.parametrize("table", ["audit_events", "audit_heads"])
@pytest.mark.parametrize("write", WRITES)
async def test_the_app_may_not_write_the_record(db: Database, table: str, write: str) -> None:
    assert await db.role() == "vistobueno_app"
    await a_run(db)
    with pytest.raises(NoRight, match="permission denied"):
        await db.query(WRITES[write].format(table, table))


@pytest.mark.parametrize("table", ["audit_events", "audit_heads"])
@pytest.mark.parametrize("write", ["UPDATE", "DELETE", "TRUNCATE"])
async def test_the_owner_may_not_change_the_record(
    db: Database, database: databases.Database, table: str, write: str
) -> None:
    await a_run(db)
    with pytest.raises(psycopg.Error) as refused:
        execute(database.owner_url, WRITES[write].format(table, table))
    assert refused.value.sqlstate == "VB002"


async def test_the_app_may_not_take_words_out(db: Database) -> None:
    run = await a_run(db)
    with pytest.raises(NoRight, match="permission denied"):
        await audit.redact(db, run.id, 1, ANA, "asked for")


BLANK = "UPDATE audit_events SET actor = NULL, data = NULL, salt = NULL"


@pytest.mark.parametrize(
    "name", ["my_audit_redact", "audit_redact2", "elsewhere.audit_redact", '"x audit_redact"']
)
async def test_a_function_of_another_name_cannot_take_words_out(
    db: Database, database: databases.Database, name: str
) -> None:
    await a_run(db)
    execute(database.owner_url, "CREATE SCHEMA elsewhere")
    execute(
        database.owner_url,
        f"CREATE FUNCTION {name}(text, integer, jsonb, text) RETURNS void LANGUAGE plpgsql"
        f" AS $$BEGIN {BLANK}; END$$",
    )
    with pytest.raises(psycopg.Error, match="append-only"):
        execute(database.owner_url, f"SELECT {name}('', 0, NULL, '')")


async def test_the_owner_takes_words_out_and_the_chain_still_verifies(
    db: Database, database: databases.Database
) -> None:
    run = await a_run(db)
    execute(
        database.owner_url,
        "SELECT audit_redact(%s, 1, %s::jsonb, 'asked for')",
        run.id,
        '{"kind": "operator", "team": null, "user": null, "name": "op", "role": null}',
    )
    first, second = await audit.of(db, run.id)
    assert (first.actor, first.data, first.kind) == (None, None, "run.queued")
    assert (second.kind, second.data) == ("audit.redacted", {"seq": 1, "reason": "asked for"})
    assert (await audit.verify(db)).broken == ()


async def test_words_are_taken_out_once_and_never_those_that_say_so(
    db: Database, database: databases.Database
) -> None:
    run = await a_run(db)
    redact = "SELECT audit_redact(%s, %s, '{}', '')"
    done = [execute(database.owner_url, redact, run.id, seq)[0][0] for seq in (1, 1, 2, 9)]
    assert done == [True, False, False, False]


async def test_a_temporary_table_does_not_catch_the_events(
    db: Database, database: databases.Database
) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE audit_events (LIKE public.audit_events)")
        connection.execute("CREATE TEMP TABLE audit_heads (LIKE public.audit_heads)")
        connection.execute("SELECT audit_append('house', 'click.refused', NULL, NULL, NULL, NULL)")
    assert [e.kind for e in await audit.of(db, audit.HOUSE)] == ["click.refused"]


# --- a change is found ---

TAMPERING = {
    "another payload": ("UPDATE audit_events SET data = '{}' WHERE seq = 2", "its payload was changed"),
    "another actor": (
        "UPDATE audit_events SET actor = jsonb_set(actor, '{name}', '\"Eve\"') WHERE seq = 2",
        "its payload was changed",
    ),
    "words put where words were taken out": (
        "UPDATE audit_events SET salt = NULL, data = '{\"a\": 1}' WHERE seq = 2",
        "its payload was changed",
    ),
    "words taken out behind the record's back": (f"{BLANK} WHERE seq = 2", "its payload was changed"),
    "another kind": ("UPDATE audit_events SET kind = 'other' WHERE seq = 2", "event 2 .* was changed"),
    "another time": (
        "UPDATE audit_events SET at = at + interval '1 microsecond' WHERE seq = 2",
        "event 2 .* was changed",
    ),
    "an actor taken into the salt": (
        "UPDATE audit_events SET salt = salt || convert_to(actor::text, 'UTF8'), actor = NULL WHERE seq = 2",
        "its payload was changed",
    ),
    "a line taken into the salt": (
        "UPDATE audit_events SET salt = salt || convert_to(E'\\n' || actor::text, 'UTF8'), actor = NULL"
        " WHERE seq = 2",
        "its payload was changed",
    ),
    "a part moved over a line": (
        "UPDATE audit_events SET kind = kind || E'\\n' || quote_nullable(approval_id), approval_id = call_id"
        " WHERE seq = 2",
        "event 2 .* was changed",
    ),
    "an empty approval": (
        "UPDATE audit_events SET approval_id = '' WHERE approval_id IS NULL AND seq = 2",
        "event 2 .* was changed",
    ),
    "another approval": (
        "UPDATE audit_events SET approval_id = 'apr_x' WHERE seq = 2",
        "event 2 .* was changed",
    ),
    "a payload with a hash of its own": (
        "UPDATE audit_events SET data = '{}', payload_hash = audit_payload_hash(salt, actor, '{}')"
        " WHERE seq = 2",
        "event 2 .* was changed",
    ),
    "every event gone, and the head set back": (
        "WITH gone AS (DELETE FROM audit_events) UPDATE audit_heads SET seq = 0, hash = ''",
        "its chain is missing",
    ),
    "an event gone from the middle": ("DELETE FROM audit_events WHERE seq = 2", "before it is missing"),
    "the first event gone": ("DELETE FROM audit_events WHERE seq = 1", "before it is missing"),
    "the last event gone": (
        "DELETE FROM audit_events e WHERE seq = (SELECT max(seq) FROM audit_events WHERE run_id = e.run_id)",
        "the chain ends elsewhere",
    ),
    "the head set back with it": (
        "WITH cut AS (DELETE FROM audit_events WHERE seq > 2)"
        " UPDATE audit_heads h SET seq = 2 FROM audit_events e WHERE e.run_id = h.run_id AND e.seq = 2",
        "the chain ends elsewhere",
    ),
    "another head": ("UPDATE audit_heads SET hash = 'x'", "the chain ends elsewhere"),
    "the head gone": ("DELETE FROM audit_heads", "chain"),
    "the whole chain gone": (
        "WITH cut AS (DELETE FROM audit_events) DELETE FROM audit_heads",
        "its chain is missing",
    ),
}


@pytest.mark.parametrize("fault", TAMPERING)
async def test_verifying_finds(db: Database, database: databases.Database, fault: str) -> None:
    statement, sentence = TAMPERING[fault]
    approval = await a_pending_approval(db)
    await approve(db, approval)
    assert (await audit.verify(db)).broken == ()
    with tampering(database) as connection:
        connection.execute(statement.encode())
    found = await audit.verify(db)
    assert found.broken
    assert any(approval.run_id in sentence_found for sentence_found in found.broken)
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(" | ".join(found.broken))


@pytest.mark.parametrize("events", [0, 1])
async def test_the_chain_of_events_without_a_run_is_missed(
    db: Database, database: databases.Database, events: int
) -> None:
    for _ in range(events):
        await audit.append(db, kind="click.refused", actor=ANA, approval_id="made-up")
    assert (await audit.verify(db)).broken == ()
    with tampering(database) as connection:
        connection.execute("WITH cut AS (DELETE FROM audit_events) DELETE FROM audit_heads")
    assert (await audit.verify(db)).broken == ("the events without a run: their chain is missing",)


# --- under load, and everywhere ---


async def test_steps_at_once_on_one_run_keep_its_chain_whole(db: Database) -> None:
    run = await a_run(db)
    await asyncio.gather(
        *(audit.append(db, kind="click.refused", actor=SYSTEM, run_id=run.id) for _ in range(60))
    )
    assert [e.seq for e in await audit.of(db, run.id)] == list(range(1, 62))
    assert (await audit.verify(db)).broken == ()


async def test_the_first_events_of_a_chain_at_once_keep_it_whole(db: Database) -> None:
    await asyncio.gather(*(audit.append(db, kind="click.refused", actor=SYSTEM) for _ in range(20)))
    verified = await audit.verify(db)
    assert (verified.events, verified.chains, verified.broken) == (20, 1, ())


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "Europe/Madrid"])
async def test_a_record_written_and_read_in_other_time_zones_verifies(
    db: Database, database: databases.Database, zone: str
) -> None:
    await a_run(db)
    execute(database.admin_url, f"ALTER DATABASE {database.name} SET timezone = '{zone}'")
    execute(
        database.admin_url, f"ALTER ROLE vistobueno_app IN DATABASE {database.name} SET datestyle = 'SQL'"
    )
    other = Database.open(database.url)
    run = await a_run(other)
    assert (await audit.verify(other)).broken == ()
    assert (await audit.verify(db)).broken == ()
    (event,) = await audit.of(other, run.id)
    assert event.at == run.created_at
    await other.close()


async def test_hostile_words_are_recorded_and_verify(db: Database) -> None:
    hostile = ("\x00", "\ud800", "'; DROP TABLE runs; --", "%s %(x)s", "\u202e\\u0000", "a\nb", "🙂" * 500)
    for words in hostile:
        await audit.append(
            db, kind="click.refused", actor=ANA, data={words: words}, approval_id=words, call_id=words
        )
    verified = await audit.verify(db)
    assert (verified.events, verified.broken) == (len(hostile), ())
