"""What becomes of a call of unknown outcome: people are reminded, one settles it, or a day goes by."""

from store.statements.fragments import (
    APPROVAL_IS_LOCKED,
    CARDS_FOLLOW,
    LAST_REPEAT,
    LOCK_APPROVAL,
    NOTIFY,
    RELEASE_ITEMS,
    STOPPED,
    close_in_run,
    event,
    line_follows,
    record,
)
from store.transitions import FINISHED_RUNS, quoted


def _settle(call_status: str, approval_status: str) -> str:
    """A person knows what became of it; the model is told unless its turn was closed before.

    %(attempts)s: after how many attempts the person was asked, so that nobody speaks of a later one. It is
    late if the run has ended: then its thread is told, and so is the next run.
    """
    return f"""
WITH {LOCK_APPROVAL},
was AS (
  SELECT c.id, c.result IS NULL AS open FROM calls c
   WHERE c.id = %(call)s AND {APPROVAL_IS_LOCKED} FOR NO KEY UPDATE),
call AS (
  UPDATE calls c SET status = '{call_status}', result = coalesce(c.result, %(result)s::jsonb),
         ended_at = house_now()
    FROM was WHERE c.id = was.id AND c.status = 'unknown'
     AND c.attempts = coalesce(%(attempts)s::int, c.attempts)
  RETURNING c.id, c.run_id, was.open),
closed AS (SELECT run_id FROM call WHERE open),
{close_in_run("closed")},
told AS (
  SELECT call.id AS call_id, NOT call.open OR run.status IN ({quoted(FINISHED_RUNS)}) AS late
    FROM call LEFT JOIN run ON run.id = call.run_id),
approval AS (
  UPDATE approvals a SET status = '{approval_status}', version = a.version + 1, ended_at = house_now(),
         outcome = coalesce(a.outcome, '{{}}') || %(outcome)s::jsonb || jsonb_build_object('late', told.late)
    FROM told WHERE a.call_id = told.call_id
  RETURNING a.id, a.version, a.conversation_id, told.late),
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT 'settled:' || id, conversation_id, 'outcome_settled', jsonb_build_object('approval_id', id)
    FROM approval WHERE late
  ON CONFLICT (dedupe_key) DO NOTHING),
{CARDS_FOLLOW},
{line_follows("call JOIN runs r ON r.id = call.run_id")},
{RELEASE_ITEMS}
SELECT call.id,
       {record("call.run_id", event("'call.settled'", "%(outcome)s::jsonb", "approval.id", "call.id"))},
       {NOTIFY}
  FROM call LEFT JOIN approval ON true"""


SETTLE_DONE, SETTLE_FAILED = _settle("done", "executed"), _settle("failed", "failed")

# A person lets it be tried again: approved, with the key that it has, for as long as providers remember it.
TRY_AGAIN = f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c SET status = 'asked', not_before = NULL
   WHERE c.id = %(call)s AND c.status = 'unknown' AND c.result IS NULL AND c.attempts = %(attempts)s
     AND c.first_attempt_at > house_now() - {LAST_REPEAT} AND NOT {STOPPED}
     AND (SELECT count(*) FROM locked) = 1
  RETURNING c.id, c.run_id, c.attempts, c.key),
approval AS (
  UPDATE approvals a SET status = 'approved', version = a.version + 1,
         decided_at = coalesce(a.decided_at, house_now()),
         decided_by = coalesce(a.decided_by, %(actor)s::jsonb),
         claim_by = coalesce(a.claim_by,
                             house_now() + make_interval(secs => (a.rule->>'claim_within')::float)),
         outcome = a.outcome || jsonb_build_object('kind', 'tried_again', 'tried_again_by', %(actor)s::jsonb,
                                                   'tried_again_at', house_now())
    FROM call WHERE a.call_id = call.id RETURNING a.id, a.version),
{CARDS_FOLLOW}
SELECT call.id, {
    record(
        "call.run_id",
        event(
            "'call.tried_again'",
            "jsonb_build_object('attempts', call.attempts, 'key', call.key)",
            "approval.id",
            "call.id",
        ),
    )
}, {NOTIFY}
  FROM call LEFT JOIN approval ON true"""

# Nobody settled it for so long that the key is worth nothing: the model is told, the row stays unknown.
CLOSE_UNKNOWN = f"""
WITH {LOCK_APPROVAL},
call AS (
  UPDATE calls c SET result = %(result)s::jsonb
   WHERE c.id = %(call)s AND c.status = 'unknown' AND c.result IS NULL AND {APPROVAL_IS_LOCKED}
     AND c.first_attempt_at <= house_now() - {LAST_REPEAT}
  RETURNING c.id, c.run_id),
approval AS (
  UPDATE approvals a SET version = a.version + 1
    FROM call WHERE a.call_id = call.id RETURNING a.id, a.version),
{CARDS_FOLLOW},
{close_in_run()}
SELECT call.id, {record("call.run_id", event("'call.unsettled'", call="call.id", approval="approval.id"))},
       {NOTIFY}
  FROM call JOIN run ON run.id = call.run_id LEFT JOIN approval ON true"""

# Those who may settle it are reminded so many seconds after nobody knew. The notices are the count, so that
# no other worker and no restart does it again; what was missed meanwhile is not made up for.
REMIND = f"""
WITH due AS (
  SELECT a.id, a.run_id, a.call_id, a.conversation_id, n.number,
         concat_ws(':', 'outcome', a.id, a.outcome->>'attempts', n.number) AS dedupe_key
    FROM approvals a, LATERAL (
           SELECT count(*) AS number FROM unnest(%(after)s::float[]) AS seconds
            WHERE (a.outcome->>'since')::timestamptz + make_interval(secs => seconds) <= house_now()) n
   WHERE a.status = 'unknown' AND n.number > 0),
notice AS (
  INSERT INTO notices (dedupe_key, conversation_id, kind, data)
  SELECT due.dedupe_key, due.conversation_id, 'outcome_reminder',
         jsonb_build_object('approval_ids', jsonb_build_array(due.id), 'number', due.number)
    FROM due WHERE NOT EXISTS (SELECT FROM notices o WHERE o.dedupe_key = due.dedupe_key)
   ORDER BY due.dedupe_key
  ON CONFLICT (dedupe_key) DO NOTHING RETURNING dedupe_key)
SELECT due.id, {
    record(
        "due.run_id",
        event(
            "'approval.reminded'",
            "jsonb_build_object('number', due.number)",
            "due.id",
            "due.call_id",
        ),
    )
}, {NOTIFY}
  FROM due JOIN notice USING (dedupe_key) ORDER BY due.run_id"""
