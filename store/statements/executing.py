"""A call on its way to its effect: claimed, attempted, finished, released, unknown."""

from store import rows
from store.statements.fragments import (
    APPROVAL_IS_LOCKED,
    ASKED,
    CARDS_FOLLOW,
    LAST_REPEAT,
    LATER_ON_DISK,
    LEASE_UNTIL,
    LOCK_APPROVAL,
    NOTIFY,
    RELEASE_ITEMS,
    STOPPED,
    close_in_run,
    event,
    first_shown,
    line_follows,
    nobody_knows,
    record,
)


def _free(items: str, call: str = "c") -> str:
    """No other call holds an item; the primary key of held_items decides the races."""
    return f"""NOT EXISTS (
       SELECT FROM held_items h JOIN unnest({items}) AS i(item) ON h.item = i.item
        WHERE h.effect = {call}.effect AND h.call_id <> {call}.id)"""


_HOLD = """held AS (
  INSERT INTO held_items (effect, item, call_id)
  SELECT DISTINCT call.effect, i.item, call.id FROM call, unnest(call.acted_on) AS i(item)
   WHERE NOT EXISTS (SELECT FROM held_items h WHERE h.call_id = call.id)
   ORDER BY i.item)"""

_CLAIM = f"status = 'executing', token = %(token)s, worker = %(worker)s, lease_until = {LEASE_UNTIL}"
_CLAIM_DATA = "jsonb_build_object('worker', %(worker)s::text, 'attempts', c.attempts)"

# The oldest approved call that may execute now: one at a time per run, in the order of the decisions; but one
# that waits for an item of another run does not hold up those after it, because their time runs out, too; nor
# does one that cannot be checked again, once half of their time is over.
CLAIM_CALL = f"""
WITH pick AS (
  SELECT a.id AS approval_id, c.id AS call_id, v.items
    FROM calls c JOIN approvals a ON a.call_id = c.id
         JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision
   WHERE a.status = 'approved' AND c.status = 'asked'
     AND (c.not_before IS NULL OR c.not_before <= house_now())
     AND (c.attempts > 0 OR a.claim_by > house_now())
     AND NOT {STOPPED}
     AND (c.first_attempt_at IS NULL OR c.first_attempt_at > house_now() - {LAST_REPEAT})
     AND NOT EXISTS (SELECT FROM calls e LEFT JOIN approvals b ON b.call_id = e.id
                        LEFT JOIN revisions w ON w.approval_id = b.id AND w.revision = b.revision
                      WHERE e.run_id = c.run_id AND e.id <> c.id
                        AND (e.status = 'executing'
                             OR (b.status = 'approved' AND {_free("w.items", "e")}
                                 AND (e.attempts > 0 OR e.not_before IS NULL OR e.not_before <= house_now()
                                      OR house_now() < a.decided_at + (a.claim_by - a.decided_at) / 2)
                                 AND (b.decided_at, e.position) < (a.decided_at, c.position))))
     AND {_free("v.items")}
   ORDER BY a.decided_at LIMIT 1 FOR NO KEY UPDATE OF a, c SKIP LOCKED),
approval AS (
  UPDATE approvals a SET status = 'executing', version = a.version + 1
    FROM pick WHERE a.id = pick.approval_id
  RETURNING {rows.CHANGED_APPROVAL}, pick.items AS acted_on),
call AS (
  UPDATE calls c SET {_CLAIM} FROM approval WHERE c.id = approval.call_id
  RETURNING {rows.CHANGED_CALL}, approval.acted_on),
{_HOLD},
{CARDS_FOLLOW}
SELECT {rows.CLAIMED}, {record("c.run_id", event("'call.claimed'", _CLAIM_DATA, "a.id", "c.id"))},
       {LATER_ON_DISK}
  FROM {rows.claimed_from("approval")}"""

# An allowed call, by the worker that holds its run.
CLAIM_ALLOWED_CALL = f"""
WITH call AS (
  UPDATE calls c SET {_CLAIM}
   WHERE c.id = %(call)s AND c.status = 'allowed'
     AND (c.not_before IS NULL OR c.not_before <= house_now())
     AND EXISTS (SELECT FROM runs r
                  WHERE r.id = c.run_id AND r.status = 'running' AND r.token = %(run_token)s)
     AND NOT EXISTS (SELECT FROM calls e WHERE e.run_id = c.run_id AND e.status = 'executing')
     AND {_free("c.items")}
  RETURNING {rows.CHANGED_CALL}, c.items AS acted_on),
{_HOLD}
SELECT {rows.CLAIMED_UNASKED}, {record("c.run_id", event("'call.claimed'", _CLAIM_DATA, call="c.id"))},
       {LATER_ON_DISK}
  FROM {rows.claimed_from()}"""

# Committed before the tool is called: from here on nobody may say that nothing happened.
START_ATTEMPT = f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c SET attempts = c.attempts + 1, first_attempt_at = coalesce(c.first_attempt_at, house_now()),
         key = coalesce(c.key, %(key)s), repeatable = %(repeatable)s,
         only_reads = %(only_reads)s AND (c.attempts = 0 OR c.only_reads), lease_until = {LEASE_UNTIL}
   WHERE c.id = %(call)s AND c.status = 'executing' AND c.token = %(token)s AND c.lease_until > house_now()
     AND (c.first_attempt_at IS NULL OR c.first_attempt_at > house_now() - {LAST_REPEAT})
     AND {APPROVAL_IS_LOCKED}
  RETURNING c.id, c.run_id, c.attempts, c.key),
approval AS (
  UPDATE approvals a SET attempted = true FROM call WHERE a.call_id = call.id RETURNING a.id)
SELECT call.key, {
    record(
        "call.run_id",
        event(
            "'attempt.started'",
            "jsonb_build_object('attempt', call.attempts, 'key', call.key)",
            "approval.id",
            "call.id",
        ),
    )
}
  FROM call LEFT JOIN approval ON true"""

_HELD_BY_TOKEN = f"""c.id = %(call)s AND c.status = 'executing' AND c.token = %(token)s
     AND {APPROVAL_IS_LOCKED}"""
_LET_GO = "token = NULL, worker = NULL, lease_until = NULL"


def _end_call(call_status: str, approval_status: str, guard: str, kind: str) -> str:
    """The call has its result: recorded under the claim's token, and the run goes on with this worker.

    What a repeat with the same key would bring again need not wait for the disk.
    %(history)s: with all that it goes on from, as it was before; what changed is in the run and the call.
    """
    return f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c SET status = '{call_status}', result = %(result)s::jsonb, output = %(output)s::jsonb,
         done_items = %(done_items)s::text[], ended_at = house_now(), {_LET_GO}
   WHERE {_HELD_BY_TOKEN} AND {guard}
  RETURNING {rows.CHANGED_CALL}),
approval AS (
  UPDATE approvals a SET status = '{approval_status}', version = a.version + 1, outcome = %(outcome)s::jsonb,
         ended_at = house_now()
    FROM call WHERE a.call_id = call.id RETURNING a.id, a.version),
{CARDS_FOLLOW},
{RELEASE_ITEMS},
{close_in_run(keep=True)},
{line_follows("run r")},
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT n.dedupe_key, run.conversation_id, n.kind, n.data
    FROM run, jsonb_to_recordset(%(notices)s::jsonb) AS n(dedupe_key text, kind text, data jsonb)
  ON CONFLICT (dedupe_key) DO NOTHING)
SELECT r.whole AS run, r.kept, n.team_id, n.channel_id, n.thread_ts, call.whole AS ended,
       CASE WHEN r.kept AND %(history)s THEN {rows.HISTORY} END AS history,
       {record("call.run_id", event(f"'{kind}'", "%(outcome)s::jsonb", "approval.id", "call.id"))},
       {NOTIFY}, CASE WHEN call.repeatable THEN {LATER_ON_DISK} END
  FROM call JOIN run r ON r.id = call.run_id JOIN conversations n ON n.id = r.conversation_id
       LEFT JOIN approval ON true"""


FINISH_DONE = _end_call("done", "executed", "c.attempts > 0", "call.executed")
FINISH_FAILED = _end_call("failed", "failed", "c.attempts > 0", "call.failed")
SUPERSEDE = _end_call("superseded", "superseded", "c.attempts = 0", "call.superseded")

# To be tried again: nothing was attempted, or the same key makes a repeat harmless, for as long as providers
# remember it and nobody stopped the run. `lapsed`: by the sweep, only when the lease is over.
RELEASE_CALL = f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c
     SET status = CASE WHEN EXISTS (SELECT FROM locked) THEN 'asked'::call_status ELSE 'allowed' END,
         not_before = house_now() + make_interval(secs => %(seconds)s), {_LET_GO}
   WHERE {_HELD_BY_TOKEN}
     AND (c.attempts = 0 OR (c.repeatable AND NOT {STOPPED}
                             AND c.first_attempt_at > house_now() - {LAST_REPEAT}))
     AND (NOT %(lapsed)s OR c.lease_until < house_now())
  RETURNING c.id, c.run_id, c.attempts),
approval AS (
  UPDATE approvals a SET status = 'approved', version = a.version + 1
    FROM call WHERE a.call_id = call.id RETURNING a.id, a.version),
{CARDS_FOLLOW},
free AS (DELETE FROM held_items h USING call WHERE h.call_id = call.id AND call.attempts = 0)
SELECT call.id, {
    record(
        "call.run_id",
        event(
            "'call.released'",
            "jsonb_build_object('why', %(why)s::text, 'attempts', call.attempts)",
            "approval.id",
            "call.id",
        ),
    )
}, {NOTIFY}
  FROM call LEFT JOIN approval ON true"""

_UNKNOWN_DATA = "jsonb_build_object('why', %(why)s::text)"
_OF_CALL = nobody_knows("call", "%(why)s::text")


def _tell_unknown(approval: str, source: str) -> str:
    """The thread hears, once for each attempt, that nobody knows what became of a call."""
    return f"""notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT 'unknown:' || {approval} || ':' || call.attempts, r.conversation_id, 'unknown_outcome',
         jsonb_build_object('approval_id', {approval})
    FROM {source} JOIN runs r ON r.id = call.run_id
  ON CONFLICT (dedupe_key) DO NOTHING)"""


# Nobody knows whether it happened: open until a person settles it, its items held. Also an allowed call that
# was to be tried again when its run was stopped.
MARK_UNKNOWN = f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c SET status = 'unknown', {_LET_GO}
   WHERE c.id = %(call)s AND {APPROVAL_IS_LOCKED} AND c.attempts > 0
     AND ((c.status = 'executing' AND c.token = %(token)s
           AND (NOT %(lapsed)s OR c.lease_until < house_now()))
          OR (c.status = 'allowed' AND {STOPPED}))
  RETURNING c.id, c.run_id, c.effect, c.tool, c.attempts, c.key, c.first_attempt_at),
approval AS (
  UPDATE approvals a SET status = 'unknown', version = a.version + 1, outcome = {_OF_CALL}
    FROM call WHERE a.call_id = call.id RETURNING a.id, a.version),
{ASKED},
born AS (
  INSERT INTO approvals (id, call_id, run_id, conversation_id, status, tool, effect, agent, requester_team,
                         requester_user, rule, attempted, outcome, expires_at)
  SELECT n.id, call.id, r.id, r.conversation_id, 'unknown', call.tool, call.effect, r.agent, r.requester_team,
         r.requester_user, n.rule, true, {_OF_CALL}, house_now() + interval '24 hours'
    FROM call JOIN runs r ON r.id = call.run_id, asked n
   WHERE (SELECT count(*) FROM locked) = 0
  RETURNING id),
{first_shown("born", card="new_card")},
{_tell_unknown("coalesce(approval.id, born.id)", "call LEFT JOIN approval ON true LEFT JOIN born ON true")},
{CARDS_FOLLOW}
SELECT call.id, {
    record(
        "call.run_id",
        event("'call.unknown'", _UNKNOWN_DATA, "coalesce(approval.id, born.id)", "call.id"),
    )
}, {NOTIFY}
  FROM call LEFT JOIN approval ON true LEFT JOIN born ON true"""

# A call that only reads, and is tried no more: by the sweep, where its worker is gone or its run was stopped.
FAIL_LAPSED = f"""
WITH call AS (
  UPDATE calls c SET status = 'failed', result = %(result)s::jsonb, ended_at = house_now(), {_LET_GO}
   WHERE c.id = %(call)s AND c.attempts > 0
     AND ((c.status = 'executing' AND c.token = %(token)s AND c.lease_until < house_now())
          OR (c.status = 'allowed' AND {STOPPED}))
  RETURNING c.id, c.run_id),
{RELEASE_ITEMS},
{close_in_run()}
SELECT call.id, {record("call.run_id", event("'call.failed'", _UNKNOWN_DATA, call="call.id"))}, {NOTIFY}
  FROM call JOIN run ON run.id = call.run_id"""

# An allowed call that waited too long for its items, by the worker that holds its run: it never ran.
GIVE_UP_WAITING = f"""
WITH call AS (
  UPDATE calls c SET status = 'cancelled', result = %(result)s::jsonb, ended_at = house_now()
   WHERE c.id = %(call)s AND c.status = 'allowed' AND c.attempts = 0
     AND EXISTS (SELECT FROM runs r
                  WHERE r.id = c.run_id AND r.status = 'running' AND r.token = %(run_token)s)
  RETURNING c.id, c.run_id),
{close_in_run()}
SELECT call.id, {record("call.run_id", event("'call.gave_up'", call="call.id"))}
  FROM call JOIN run ON run.id = call.run_id"""

# Approved and attempted, but its repeats are used up or its key is too old.
GIVE_UP_REPEATS = f"""
WITH locked AS (
  SELECT a.id, c.attempts, c.key, c.first_attempt_at FROM approvals a JOIN calls c ON c.id = a.call_id
   WHERE a.status = 'approved' AND a.attempted AND c.status = 'asked'
     AND c.first_attempt_at <= house_now() - {LAST_REPEAT}
   ORDER BY a.id FOR NO KEY UPDATE OF a SKIP LOCKED),
approval AS (
  UPDATE approvals a SET status = 'unknown', version = a.version + 1,
         outcome = {nobody_knows("locked", "%(why)s::text")}
    FROM locked WHERE a.id = locked.id RETURNING a.id, a.call_id, a.run_id, a.version),
call AS (
  UPDATE calls c SET status = 'unknown'
    FROM approval WHERE c.id = approval.call_id RETURNING c.id, c.run_id, c.attempts),
{_tell_unknown("approval.id", "approval JOIN call ON call.id = approval.call_id")},
{CARDS_FOLLOW}
SELECT approval.id, {
    record("approval.run_id", event("'call.unknown'", _UNKNOWN_DATA, "approval.id", "approval.call_id"))
}, {NOTIFY}
  FROM approval JOIN call ON call.id = approval.call_id ORDER BY approval.run_id"""
