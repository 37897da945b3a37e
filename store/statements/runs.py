"""A run: queued, claimed, its turns, its proposals and its ends."""

from store.statements.fragments import (
    ASKED,
    CANCELLED_RESULT,
    CARDS_FOLLOW,
    LATER_ON_DISK,
    LEASE_UNTIL,
    NOTIFY,
    event,
    first_shown,
    is_let_finish,
    line_follows,
    nobody_knows,
    record,
)

_IN_THREAD = """conversation AS (
  INSERT INTO conversations AS c (id, team_id, channel_id, thread_ts, next_seq)
  SELECT %(conversation)s, %(team)s, %(channel)s, %(thread)s, 2
   WHERE NOT EXISTS (SELECT FROM runs WHERE source_key = %(source_key)s)
  ON CONFLICT (team_id, channel_id, thread_ts) DO UPDATE SET next_seq = c.next_seq + 1
  RETURNING c.id, c.next_seq - 1 AS seq)"""

# Without a thread nothing but the run's key says that it is the same conversation, so the run is first.
_WITHOUT_THREAD = """conversation AS (
  INSERT INTO conversations (id, team_id, channel_id, next_seq)
  SELECT run.conversation_id, %(team)s, %(channel)s, 2 FROM run)"""


def _queued(conversation: str, seq: str, source: str) -> str:
    return f"""run AS (
  INSERT INTO runs (id, conversation_id, seq, status, agent, task, requester_team, requester_user,
                    requester_name, source_key, state_version)
  SELECT %(run)s, {conversation}, {seq}, 'queued', %(agent)s, %(task)s, %(requester_team)s,
         %(requester_user)s, %(requester_name)s, %(source_key)s, %(state_version)s {source}
  ON CONFLICT (source_key) DO NOTHING
  RETURNING id, conversation_id)"""


def _start_run(*steps: str) -> str:
    """Once for each source key: the run, its conversation if it is new, and the notice that it came."""
    return f"""
WITH {", ".join(steps)},
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT 'received:' || id, conversation_id, 'run_received', jsonb_build_object('run_id', id) FROM run)
SELECT run.id,
       {record("run.id", event("'run.queued'", "jsonb_build_object('task', %(task)s::text)"))},
       {NOTIFY}
  FROM run"""


START_IN_THREAD = _start_run(_IN_THREAD, _queued("conversation.id", "conversation.seq", "FROM conversation"))
START_WITHOUT_THREAD = _start_run(_queued("%(conversation)s", "1", ""), _WITHOUT_THREAD)

# The oldest queued run whose conversation is free; what waits for an earlier run of it is passed over, also
# for one that was stopped, until what it still executes has ended and can be told.
CLAIM_RUN = f"""
WITH pick AS (
  SELECT r.id, r.started_at IS NULL AS first
    FROM runs r
   WHERE r.status = 'queued' AND (r.not_before IS NULL OR r.not_before <= house_now())
     AND (r.started_at IS NOT NULL OR NOT EXISTS (
       SELECT FROM runs o
        WHERE o.conversation_id = r.conversation_id AND o.id <> r.id
          AND (o.status IN ('running', 'awaiting_approval')
               OR (o.status = 'queued' AND (o.started_at IS NOT NULL OR o.seq < r.seq))
               OR {is_let_finish("o")})))
   ORDER BY r.queued_at LIMIT 1 FOR NO KEY UPDATE OF r SKIP LOCKED),
run AS (
  UPDATE runs r SET status = 'running', token = %(token)s, worker = %(worker)s, lease_until = {LEASE_UNTIL},
         started_at = coalesce(r.started_at, house_now()), not_before = NULL
    FROM pick WHERE r.id = pick.id
  RETURNING r.id, r.conversation_id, pick.first),
lifted AS (
  UPDATE vetoes v SET lifted_at = house_now(), lifted_by_run = (SELECT id FROM run)
   WHERE v.conversation_id = (SELECT conversation_id FROM run WHERE first) AND v.lifted_at IS NULL)
SELECT run.id,
       {record("run.id", event("'run.claimed'", "jsonb_build_object('worker', %(worker)s::text)"))},
       {LATER_ON_DISK}
  FROM run"""

# The model's answer and all its calls, before anything is done about them.
SAVE_TURN = f"""
WITH run AS (
  UPDATE runs r SET turn = r.turn + 1, steps = r.steps + 1, faults = 0, open_calls = %(open_calls)s,
         input_tokens = r.input_tokens + %(input_tokens)s, output_tokens = r.output_tokens + %(output_tokens)s
   WHERE r.id = %(run)s AND r.status = 'running' AND r.token = %(token)s AND r.turn = %(turn)s
     AND r.open_calls = 0
  RETURNING r.id, r.turn),
message AS (
  INSERT INTO messages (run_id, seq, body, state_version)
  SELECT id, turn, %(body)s::json, %(state_version)s FROM run),
call AS (
  INSERT INTO calls (id, run_id, turn, position, provider_id, tool, effect, input, rationale, status)
  SELECT c.id, run.id, run.turn, c.position, c.provider_id, c.tool, c.effect, c.input, c.rationale, 'proposed'
    FROM run, jsonb_to_recordset(%(calls)s::jsonb) AS c(
      id text, position int, provider_id text, tool text, effect text, input jsonb, rationale text)
  RETURNING position, to_json(calls) AS whole),
event AS (
  SELECT {
    record(
        "run.id",
        event("'turn.saved'", "jsonb_build_object('turn', run.turn, 'calls', %(open_calls)s::int)"),
    )
} FROM run)
SELECT c.whole AS call, {LATER_ON_DISK} FROM event LEFT JOIN call c ON true ORDER BY c.position"""

# The verdicts of calls of the turn. With approvals, the run ends here: nothing waits but rows.
PROPOSE = f"""
WITH outcome AS (
  SELECT * FROM jsonb_to_recordset(%(outcomes)s::jsonb) AS o(
    id text, status call_status, result jsonb, effect text, measured jsonb, items text[])),
locked AS (
  SELECT c.id FROM calls c WHERE c.run_id = %(run)s AND c.id IN (SELECT id FROM outcome)
     AND c.status = 'proposed' ORDER BY c.id FOR NO KEY UPDATE),
run AS (
  UPDATE runs r SET open_calls = r.open_calls - %(closed)s,
         status = CASE WHEN %(pause)s THEN 'awaiting_approval' ELSE r.status END,
         token = CASE WHEN %(pause)s THEN NULL ELSE r.token END,
         lease_until = CASE WHEN %(pause)s THEN NULL ELSE r.lease_until END
   WHERE r.id = %(run)s AND r.status = 'running' AND r.token = %(token)s
     AND (SELECT count(*) FROM locked) = (SELECT count(*) FROM outcome)
  RETURNING r.id, r.conversation_id, r.agent, r.requester_team, r.requester_user),
call AS (
  UPDATE calls c SET status = o.status, result = o.result, effect = coalesce(o.effect, c.effect),
         measured = o.measured, items = coalesce(o.items, '{{}}'),
         ended_at = CASE WHEN o.result IS NULL THEN NULL ELSE house_now() END
    FROM run, outcome o WHERE c.run_id = %(run)s AND c.id = o.id),
{ASKED},
approval AS (
  INSERT INTO approvals (id, call_id, run_id, conversation_id, status, tool, effect, agent, requester_team,
                         requester_user, rule, replaces, supersessions, expires_at, escalate_at)
  SELECT n.id, n.call_id, run.id, run.conversation_id, 'pending', n.tool, n.effect, run.agent,
         run.requester_team, run.requester_user, n.rule, n.replaces, n.supersessions,
         house_now() + make_interval(secs => (n.rule->>'expires_after')::float),
         house_now() + make_interval(secs => (n.rule->>'escalate_after')::float)
    FROM run, asked n),
{first_shown("run")},
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT n.dedupe_key, run.conversation_id, n.kind, n.data
    FROM run, jsonb_to_recordset(%(notices)s::jsonb) AS n(dedupe_key text, kind text, data jsonb))
SELECT run.id, {NOTIFY}, {LATER_ON_DISK},
       (SELECT count(audit_append(run.id, e->>'kind', e->'actor', e->>'approval', e->>'call', e->'data'))
          FROM jsonb_array_elements(%(events)s::jsonb) AS e)
  FROM run"""


def _told(status: str, why: str = "NULL::jsonb") -> str:
    """The end of a statement that ends a `run`: its thread hears of it, and it is on the record.

    `why` is an expression for what `error` says in English.
    """
    return f"""notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT '{status}:' || id || ':' || extract(epoch FROM house_now()), conversation_id, 'run_{status}',
         jsonb_build_object('run_id', id, 'text', answer, 'error', error, 'why', {why})
    FROM run ON CONFLICT (dedupe_key) DO NOTHING)
SELECT run.id,
       {record("run.id", event(f"'run.{status}'", "jsonb_build_object('error', error)"))},
       {NOTIFY}, {LATER_ON_DISK}
  FROM run"""


_ENDED = "token = NULL, lease_until = NULL, ended_at = house_now()"
_HELD_BY_TOKEN = "r.id = %(run)s AND r.status = 'running' AND r.token = %(token)s"


def _answer_run(status: str) -> str:
    """The run ends with the model's last words, of which there are none while a call is open."""
    return f"""
WITH run AS (
  UPDATE runs r SET status = '{status}', {_ENDED}, turn = r.turn + 1, steps = r.steps + 1,
         input_tokens = r.input_tokens + %(input_tokens)s,
         output_tokens = r.output_tokens + %(output_tokens)s, answer = %(answer)s
   WHERE {_HELD_BY_TOKEN} AND r.open_calls = 0
  RETURNING r.id, r.conversation_id, r.turn, r.answer, r.error),
message AS (
  INSERT INTO messages (run_id, seq, body, state_version)
  SELECT id, turn, %(body)s::json, %(state_version)s FROM run),
{_told(status)}"""


COMPLETE_RUN, EXHAUST_RUN = _answer_run("completed"), _answer_run("exhausted")

# The run ends without an answer, and what it leaves undone is cancelled.
FAIL_RUN = f"""
WITH left_over AS (
  SELECT c.id FROM calls c
   WHERE c.run_id = %(run)s AND c.status IN ('proposed', 'allowed') AND c.attempts = 0
   ORDER BY c.id FOR NO KEY UPDATE),
run AS (
  UPDATE runs r SET status = 'failed', {_ENDED},
         open_calls = r.open_calls - (SELECT count(*) FROM left_over), error = %(error)s
   WHERE {_HELD_BY_TOKEN}
  RETURNING r.id, r.conversation_id, r.answer, r.error),
call AS (
  UPDATE calls c SET status = 'cancelled', result = {CANCELLED_RESULT}, ended_at = house_now()
    FROM run, left_over WHERE c.id = left_over.id),
{_told("failed", "%(why_json)s::jsonb")}"""

# Back in the queue, with a time: a transient fault, or an item that another call holds.
REQUEUE_RUN = f"""
WITH run AS (
  UPDATE runs r SET status = 'queued', token = NULL, lease_until = NULL, queued_at = house_now(),
         not_before = house_now() + make_interval(secs => %(seconds)s), faults = r.faults + %(faults)s
   WHERE r.id = %(run)s AND r.status = 'running' AND r.token = %(token)s
  RETURNING r.id)
SELECT run.id, {
    record(
        "run.id",
        event(
            "'run.requeued'",
            "jsonb_build_object('why', %(why)s::text, 'seconds', %(seconds)s::float)",
        ),
    )
} FROM run"""

# The loop came to the end of a turn in which something is still open.
PAUSE_RUN = f"""
WITH run AS (
  UPDATE runs r SET status = 'awaiting_approval', token = NULL, lease_until = NULL
   WHERE r.id = %(run)s AND r.status = 'running' AND r.token = %(token)s AND r.open_calls > 0
  RETURNING r.id)
SELECT run.id, {record("run.id", event("'run.paused'"))} FROM run"""

# Not after a later run has read on: the history would have two continuations.
RETRY_RUN = f"""
WITH run AS (
  UPDATE runs r SET status = 'queued', queued_at = house_now(), not_before = NULL, faults = 0, error = NULL,
         ended_at = NULL
   WHERE r.id = %(run)s AND r.status = 'failed'
     AND NOT EXISTS (SELECT FROM runs l WHERE l.conversation_id = r.conversation_id AND l.seq > r.seq
                       AND l.started_at IS NOT NULL)
  RETURNING r.id)
SELECT run.id, {record("run.id", event("'run.retried'"))}, {NOTIFY} FROM run"""


def _cancel(guard: str, kind: str) -> str:
    """What waits is cancelled; what may have happened is unknown; what is executing is let finish.

    Of what is unknown already only the card changes, because it can be tried again no more. An allowed call
    to be tried again is left: the sweep makes it unknown, with an approval to settle it by; it also comes
    back to what somebody let be tried again at this moment.
    """
    return f"""
WITH locked AS (
  SELECT a.id, a.call_id FROM approvals a
   WHERE a.run_id = %(run)s AND a.status IN ('pending', 'approved', 'unknown')
   ORDER BY a.id FOR NO KEY UPDATE),
held AS (
  SELECT c.id, c.attempts, c.key, c.first_attempt_at
    FROM calls c WHERE c.run_id = %(run)s AND (SELECT count(*) FROM locked) >= 0
     AND c.status IN ('proposed', 'allowed', 'asked') AND (c.status = 'asked' OR c.attempts = 0)
   ORDER BY c.id FOR NO KEY UPDATE),
run AS (
  UPDATE runs r SET status = 'cancelled', token = NULL, lease_until = NULL,
         ended_at = coalesce(r.ended_at, house_now()),
         open_calls = r.open_calls - (SELECT count(*) FROM held WHERE held.attempts = 0)
   WHERE r.id = %(run)s AND (SELECT count(*) FROM held) >= 0 AND {guard}
  RETURNING r.id, r.conversation_id, r.ended_at),
call AS (
  UPDATE calls c SET status = CASE WHEN c.attempts = 0 THEN 'cancelled'::call_status ELSE 'unknown' END,
         result = CASE WHEN c.attempts = 0 THEN {CANCELLED_RESULT} ELSE c.result END,
         ended_at = CASE WHEN c.attempts = 0 THEN house_now() ELSE c.ended_at END
    FROM run, held WHERE c.id = held.id RETURNING c.id),
approval AS (
  UPDATE approvals a SET status = CASE WHEN held.id IS NULL THEN a.status
                                       WHEN a.attempted THEN 'unknown' ELSE 'cancelled' END,
         version = a.version + 1, ended_at = CASE WHEN a.attempted THEN NULL ELSE house_now() END,
         outcome = CASE WHEN held.id IS NULL THEN a.outcome
                        WHEN a.attempted THEN {nobody_knows("held", "%(stopped)s::text")}
                        ELSE jsonb_build_object('kind', 'cancelled', 'text', NULL, 'by', %(actor)s::jsonb) END
    FROM run, locked LEFT JOIN held ON held.id = locked.call_id
   WHERE a.id = locked.id RETURNING a.id, a.version),
{CARDS_FOLLOW},
{line_follows("run r")},
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT 'cancelled:' || id, conversation_id, 'run_cancelled',
         jsonb_build_object('run_id', id, 'by', %(actor)s::jsonb) FROM run
  ON CONFLICT (dedupe_key) DO NOTHING)
SELECT run.id,
       {
        record(
            "run.id",
            event(
                f"'{kind}'",
                "jsonb_build_object('approvals', (SELECT jsonb_agg(id) FROM approval),"
                " 'calls', (SELECT jsonb_agg(id) FROM call))",
            ),
        )
    }, {NOTIFY}
  FROM run"""


CANCEL_RUN = _cancel("r.status IN ('queued', 'running', 'awaiting_approval')", "run.cancelled")

# What was executing when its run was stopped and was given back before anything was attempted.
CANCEL_LEFT = _cancel("r.status = 'cancelled' AND (SELECT count(*) FROM held) > 0", "calls.cancelled")
