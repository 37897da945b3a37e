"""What the tables themselves must refuse, and the record's chain must show, where no other test looks."""

import psycopg
import pytest

from store import audit
from store.engine import Database
from tests import databases
from tests.integration.store.rows import (
    ANA,
    a_claimed_call,
    a_pending_approval,
    approve,
    execute,
    tampering,
)

pytestmark = pytest.mark.store


async def test_the_database_refuses_a_second_holder_of_an_item(
    db: Database, database: databases.Database
) -> None:
    await a_claimed_call(db, ["b1"])
    other = await a_pending_approval(db, ["b1"])
    with pytest.raises(psycopg.errors.UniqueViolation):
        execute(database.owner_url, "INSERT INTO held_items VALUES ('payment', 'b1', %s)", other.call_id)


async def test_equal_payloads_have_different_hashes_so_that_a_redacted_one_cannot_be_guessed(
    db: Database,
) -> None:
    for _ in range(2):
        await audit.append(db, kind="click.refused", actor=ANA, data={"why": "unknown"})
    found = await db.query("SELECT DISTINCT payload_hash FROM audit_events")
    assert len(found) == 2


async def test_an_event_rewritten_with_all_its_hashes_is_found_by_the_next_one(
    db: Database, database: databases.Database
) -> None:
    approval = await a_pending_approval(db)
    await approve(db, approval)
    with tampering(database) as connection:
        connection.execute(
            """UPDATE audit_events e SET kind = 'forged', hash = audit_event_hash(
                 p.hash, e.run_id, e.seq, e.at, 'forged', e.approval_id, e.call_id, e.payload_hash)
                 FROM audit_events p WHERE e.seq = 2 AND p.run_id = e.run_id AND p.seq = 1"""
        )
    assert (await audit.verify(db)).broken == (f"event 3 of {approval.run_id}: it was changed",)
