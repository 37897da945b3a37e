"""Leases: renewed, and recovered from workers that are gone."""

from store.statements.fragments import (
    LEASE_UNTIL,
    NOTIFY,
    event,
    record,
)

RENEW = f"""
WITH executing AS (
  SELECT id FROM calls WHERE status = 'executing' AND token = ANY(%(tokens)s)
   ORDER BY id FOR NO KEY UPDATE),
call AS (
  UPDATE calls c SET lease_until = {LEASE_UNTIL} FROM executing e WHERE c.id = e.id RETURNING c.token),
running AS (
  SELECT id FROM runs WHERE status = 'running' AND token = ANY(%(tokens)s)
     AND (SELECT count(*) FROM call) >= 0
   ORDER BY id FOR NO KEY UPDATE),
run AS (
  UPDATE runs r SET lease_until = {LEASE_UNTIL} FROM running g WHERE r.id = g.id RETURNING r.token)
SELECT token FROM call UNION ALL SELECT token FROM run"""

# Counted as a fault: what ends the worker may be the run itself, and would end the next one, too.
RECOVER_RUNS = f"""
WITH pick AS (
  SELECT id FROM runs WHERE status = 'running' AND lease_until < house_now()
   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
run AS (
  UPDATE runs r SET status = 'queued', token = NULL, lease_until = NULL, queued_at = house_now(),
         faults = r.faults + 1
    FROM pick WHERE r.id = pick.id RETURNING r.id, r.worker)
SELECT run.id, {record("run.id", event("'run.lease_lost'", "jsonb_build_object('worker', run.worker)"))}, {
    NOTIFY
} FROM run ORDER BY run.id"""
