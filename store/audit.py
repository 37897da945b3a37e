"""The record: appended to by every statement, read and verified here."""

from typing import Any

from store import rows
from store.engine import Database
from store.records import Actor, AuditEvent, Json, Verified
from store.values import dump, text

HOUSE = "house"  # the chain of events without a run

_EVENT = "run_id, seq, at, kind, approval_id, call_id, actor, data, encode(hash, 'hex') AS hash"

_VERIFY = """
WITH linked AS (
  SELECT e.*, coalesce(lag(hash) OVER chain, '') AS previous, lag(seq, 1, 0) OVER chain AS before
    FROM audit_events e WINDOW chain AS (PARTITION BY run_id ORDER BY seq))
SELECT run_id, seq, 'event' AS what,
       seq <> before + 1 AS gap, changed
  FROM linked, LATERAL (SELECT CASE
         WHEN salt IS NOT NULL THEN payload_hash <> audit_payload_hash(salt, actor, data)
         ELSE actor IS NOT NULL OR data IS NOT NULL OR NOT EXISTS (
           SELECT FROM audit_events r WHERE r.run_id = linked.run_id AND r.kind = 'audit.redacted'
              AND r.data->>'seq' = linked.seq::text) END AS changed) AS payload
 WHERE seq <> before + 1 OR changed
    OR hash <> audit_event_hash(previous, run_id, seq, at, kind, approval_id, call_id, payload_hash)
UNION ALL
SELECT h.run_id, h.seq, 'head', true, false
  FROM audit_heads h LEFT JOIN audit_events e ON e.run_id = h.run_id AND e.seq = h.seq
 WHERE h.seq > 0 AND e.hash IS DISTINCT FROM h.hash
UNION ALL
SELECT e.run_id, max(e.seq), 'end', true, false
  FROM audit_events e LEFT JOIN audit_heads h ON h.run_id = e.run_id
 GROUP BY e.run_id, h.seq HAVING max(e.seq) IS DISTINCT FROM h.seq
UNION ALL
SELECT r.id, 0, 'gone', true, false
  FROM runs r LEFT JOIN audit_heads h ON h.run_id = r.id WHERE h.run_id IS NULL OR h.seq = 0
UNION ALL
SELECT %(house)s, 0, 'gone', true, false  -- its head is there from the first migration on
 WHERE NOT EXISTS (SELECT FROM audit_heads WHERE run_id = %(house)s)
ORDER BY 1, 2"""


async def append(
    db: Database,
    *,
    kind: str,
    actor: Actor,
    run_id: str = HOUSE,
    approval_id: str | None = None,
    call_id: str | None = None,
    data: Json = None,
) -> None:
    """Record something that changed nothing, such as a refused click."""
    await db.query(
        "SELECT audit_append(%s, %s, %s::jsonb, %s, %s, %s::jsonb)",
        [
            text(run_id),
            text(kind),
            dump(actor.to_json()),
            None if approval_id is None else text(approval_id),
            None if call_id is None else text(call_id),
            dump(data or {}),
        ],
    )


async def of(db: Database, subject: str) -> list[AuditEvent]:
    """The events of a run, or of one approval, in order."""
    found = await db.query(
        f"""SELECT {_EVENT} FROM audit_events WHERE run_id = %(id)s
UNION ALL
SELECT {_EVENT} FROM audit_events  -- a click with a made-up id has no run
 WHERE run_id IN (%(house)s, (SELECT run_id FROM approvals WHERE id = %(id)s)) AND approval_id = %(id)s
 ORDER BY run_id, seq""",
        {"id": text(subject), "house": HOUSE},
    )
    return [_event(row) for row in found]


def _event(row: dict[str, Any]) -> AuditEvent:
    return AuditEvent(**{**row, "actor": rows.actor(row["actor"])})


async def verify(db: Database) -> Verified:
    """Recompute every chain; `broken` has a sentence for each event or head that does not fit."""
    counted = await db.one("SELECT count(*) AS events, count(DISTINCT run_id) AS chains FROM audit_events")
    assert counted is not None
    faults = await db.query(_VERIFY, {"house": HOUSE})
    return Verified(int(counted["events"]), int(counted["chains"]), tuple(_fault(row) for row in faults))


def _fault(row: dict[str, Any]) -> str:
    if row["what"] == "gone":
        if row["run_id"] == HOUSE:
            return "the events without a run: their chain is missing"
        return f"run {row['run_id']}: its chain is missing"
    where = f"event {row['seq']} of {row['run_id']}"
    if row["what"] != "event":
        return f"{where}: the chain ends elsewhere than its head says"
    if row["gap"]:
        return f"{where}: an event before it is missing"
    return f"{where}: its payload was changed" if row["changed"] else f"{where}: it was changed"


async def redact(db: Database, run_id: str, seq: int, actor: Actor, reason: str) -> bool:
    """Take the words out of an event and keep its hash; owners only. False: it has none any more."""
    row = await db.one(
        "SELECT audit_redact(%s, %s, %s::jsonb, %s) AS done",
        [run_id, seq, dump(actor.to_json()), text(reason)],
    )
    return bool(row and row["done"])
