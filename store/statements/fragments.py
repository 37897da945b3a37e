"""Pieces that the statements share: leases, the follow-up of a closed call, events of the record.

Statuses are literals everywhere: with a bound parameter a generic plan could not use a partial index.
Locks are taken in one order in every statement: approval, call, run, audit head; several of a kind by id,
several heads by their run. A piece that locks names what it depends on, because PostgreSQL runs CTEs in the
order of their dependencies only. Locks are NO KEY ones: a foreign key's check, which comes at a statement's
end and would wait for FOR UPDATE, takes a KEY SHARE lock after the audit head.
"""

from store.engine import CHANNEL

LEASE_UNTIL = "house_now() + make_interval(secs => %(lease)s)"
LAST_REPEAT = "interval '24 hours'"  # providers forget idempotency keys

# Locks the call's approval, if it has one, before the call itself.
LOCK_APPROVAL = "locked AS (SELECT id FROM approvals WHERE call_id = %(call)s FOR NO KEY UPDATE)"
APPROVAL_IS_LOCKED = "(SELECT count(*) FROM locked) >= 0"

STOPPED = "(SELECT s.status FROM runs s WHERE s.id = c.run_id) = 'cancelled'"  # the run of a call `c`


def is_let_finish(run: str) -> str:
    """Whether a run was stopped and something of it has not ended, so that nobody can be told of it yet.

    It executes, or was given back, which the sweep is about to see. It is counted, because for EXISTS the
    planner might read all calls.
    """
    return f"""({run}.status = 'cancelled'
                AND (SELECT count(*) FROM calls e WHERE e.run_id = {run}.id AND e.result IS NULL
                                                    AND e.status IN ('executing', 'asked', 'allowed')) > 0)"""


RELEASE_ITEMS = "free AS (DELETE FROM held_items h USING call WHERE h.call_id = call.id)"

# For so long Slack may still carry out an update that got no answer, also after a newer one: it was given up
# after 8 s at most, and what stands between us and Slack seldom waits for longer than 30 s.
MAY_BE_LATE = "house_now() + make_interval(secs => 30)"

# Who stopped the run with this id, as it was written with the notice of it.
STOPPED_BY = "(SELECT s.data -> 'by' FROM notices s WHERE s.dedupe_key = 'cancelled:' || {run})"


def again_after_a_lapse(row: str) -> str:
    """When to show once more what is claimed: its last publisher is gone if it still has a token."""
    return f"""CASE WHEN {row}.token IS NOT NULL AND {row}.ts IS NOT NULL
              THEN {MAY_BE_LATE} ELSE {row}.again_at END"""


# Copies of a changed approval are behind their row from the same statement on.
CARDS_FOLLOW = """card AS (
  UPDATE cards k SET wanted_version = approval.version, not_before = NULL
    FROM approval WHERE k.approval_id = approval.id)"""


def line_follows(runs: str) -> str:
    """The line of a run `r` that has ended is behind: only a notice would see to it, and none may follow."""
    return f"""line AS (
  UPDATE notices w SET posted_at = NULL, version = w.version + 1, failures = 0, not_before = NULL
    FROM {runs} WHERE r.ended_at IS NOT NULL AND w.dedupe_key = 'received:' || r.id AND w.ts IS NOT NULL)"""


# What people are asked: each approval with the content of its first revision, and where its card goes.
ASKED = """asked AS (
  SELECT * FROM jsonb_to_recordset(%(approvals)s::jsonb) AS n(
    id text, call_id text, tool text, effect text, rule jsonb, replaces text, supersessions int,
    input jsonb, input_hash text, facts jsonb, items text[], items_digest text, precondition jsonb,
    preview jsonb, preview_hash text, schema_hash text, card text, team_id text))"""


def first_shown(source: str, card: str = "card") -> str:
    """The first revision and the card of what is asked; `source` is what there must be a row of."""
    return f"""revision AS (
  INSERT INTO revisions (approval_id, revision, input, input_hash, facts, items, items_digest, precondition,
                         preview, preview_hash, schema_hash)
  SELECT n.id, 1, n.input, n.input_hash, n.facts, n.items, n.items_digest, n.precondition, n.preview,
         n.preview_hash, n.schema_hash
    FROM {source}, asked n),
{card} AS (
  INSERT INTO cards (id, approval_id, team_id, channel_id)
  SELECT n.card, n.id, n.team_id, n.rule->>'channel' FROM {source}, asked n)"""


def nobody_knows(call: str, why: str) -> str:
    """What is known of a call whose outcome nobody knows: the approval's outcome.

    `why` is an expression for the sentence that %(why_json)s says in other words.
    """
    return f"""jsonb_build_object('kind', 'unknown', 'text', {why}, 'why', %(why_json)s::jsonb,
           'attempts', {call}.attempts, 'key', {call}.key, 'first_attempt_at', {call}.first_attempt_at,
           'retry_until', {call}.first_attempt_at + {LAST_REPEAT}, 'since', house_now())"""


# The result of a call `c` of a stopped run, under its own tool's name.
CANCELLED_RESULT = "jsonb_set(%(cancelled)s::jsonb, '{content,toolName}', to_jsonb(c.tool))"

# In a step that reaches nobody before a later one of the same worker is on the disk, which then has this one
# there, too: the commit does not wait for the disk. If the server dies between the two, the step never was.
LATER_ON_DISK = "set_config('synchronous_commit', 'off', true)"

NOTIFY = f"pg_notify('{CHANNEL}', '')"


def event(kind: str, data: str = "'{}'::jsonb", approval: str = "NULL", call: str = "NULL") -> str:
    """One event of the record; `kind`, `data`, `approval` and `call` are SQL expressions."""
    return f"{kind}, %(actor)s::jsonb, {approval}, {call}, {data}"


def record(run: str, *events: str) -> str:
    """Append the events to the chain of `run`: the last thing a statement does, because it locks the head."""
    return ", ".join(f"audit_append({run}, {event})" for event in events)


def close_in_run(call: str = "call", keep: bool = False) -> str:
    """A call of the turn has its result: count it down; when it was the last one, the run goes on.

    keep: with this worker, under %(run_token)s; otherwise it is queued for any worker.
    """
    last = "r.status = 'awaiting_approval' AND r.open_calls = 1"
    if not keep:
        return f"""run AS (
  UPDATE runs r SET open_calls = r.open_calls - 1,
      status = CASE WHEN {last} THEN 'queued' ELSE r.status END,
      queued_at = CASE WHEN {last} THEN house_now() ELSE r.queued_at END
    FROM {call} WHERE r.id = {call}.run_id RETURNING r.id, r.status, r.conversation_id, false AS kept)"""
    return f"""run AS (
  UPDATE runs r SET open_calls = r.open_calls - 1,
      status = CASE WHEN {last} THEN 'running' ELSE r.status END,
      token = CASE WHEN {last} THEN %(run_token)s ELSE r.token END,
      worker = CASE WHEN {last} THEN %(worker)s ELSE r.worker END,
      lease_until = CASE WHEN {last} THEN {LEASE_UNTIL} ELSE r.lease_until END
    FROM {call} WHERE r.id = {call}.run_id
  RETURNING r.id, r.conversation_id, r.seq, r.ended_at, to_json(r) AS whole,
            coalesce(r.token = %(run_token)s, false) AS kept)"""
