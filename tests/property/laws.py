"""What must be so after every step, as far as it can be said over rows: one query that finds what is not.

Triggers of the test's own note every move of a status and every event, each with its transaction.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg

from store import transitions as t
from tests.databases import Database

LEASE = 15.0  # seconds; nobody renews in this test
MOVES = {
    "runs": (t.RUN_BIRTHS, t.RUN_MOVES),
    "calls": (t.CALL_BIRTHS, t.CALL_MOVES),
    "approvals": (t.APPROVAL_BIRTHS, t.APPROVAL_MOVES),
}

_NOTES = """
CREATE TABLE may_move (kind text, old text, new text);
CREATE TABLE moved (id bigserial, kind text, row_id text, run_id text, old text, new text, tx xid8);
CREATE TABLE noted (run_id text, tx xid8);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE run text;
BEGIN
  IF TG_TABLE_NAME = 'runs' THEN run := NEW.id; ELSE run := to_jsonb(NEW)->>'run_id'; END IF;
  INSERT INTO moved (kind, row_id, run_id, old, new, tx)
  VALUES (TG_TABLE_NAME, NEW.id, run, CASE WHEN TG_OP = 'UPDATE' THEN OLD.status::text END, NEW.status::text,
          pg_current_xact_id());
  RETURN NULL;
END $$;
CREATE FUNCTION note_event() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO noted VALUES (NEW.run_id, pg_current_xact_id());
  RETURN NULL;
END $$;
CREATE TRIGGER note_event AFTER INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION note_event();
"""

_TRIGGERS = """
CREATE TRIGGER note_birth AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION note_move();
CREATE TRIGGER note_move AFTER UPDATE ON {table} FOR EACH ROW
  WHEN ({changed}) EXECUTE FUNCTION note_move();
"""

_CHANGED = {
    "runs": "OLD.status <> NEW.status",
    "calls": "OLD.status <> NEW.status OR OLD.attempts <> NEW.attempts"
    " OR OLD.result IS DISTINCT FROM NEW.result",
    # a new version of what is otherwise as it was only lets its cards be drawn anew
    "approvals": "to_jsonb(OLD) - 'version' <> to_jsonb(NEW) - 'version'",
}

_LIVE_ITEMS = """
  SELECT DISTINCT c.effect, i.item, c.id
    FROM calls c LEFT JOIN approvals a ON a.call_id = c.id
         LEFT JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision,
         unnest(coalesce(v.items, c.items)) AS i(item)
   WHERE c.status = 'executing' OR (c.attempts > 0 AND c.status IN ('asked', 'allowed', 'unknown'))"""

_STEPS = """
  SELECT e.call_id, e.kind, e.at, e.data, lag(e.kind) OVER w AS before, lag(e.at) OVER w AS since
    FROM audit_events e
   WHERE e.kind IN ('call.claimed', 'attempt.started', 'call.executed', 'call.failed', 'call.superseded',
                    'call.released', 'call.unknown')
     AND NOT e.data ? 'turn'  -- a proposal that failed, which nobody claims
  WINDOW w AS (PARTITION BY e.call_id ORDER BY e.seq)"""

LAWS = {
    "a status moved as the table does not say": """
  SELECT kind || ' ' || row_id || ': ' || coalesce(old, 'born') || ' > ' || new FROM moved m
   WHERE old IS DISTINCT FROM new AND NOT EXISTS (
     SELECT FROM may_move y WHERE y.kind = m.kind AND y.old = coalesce(m.old, '') AND y.new = m.new)""",
    "a change without an event": """
  SELECT m.kind || ' ' || m.row_id || ': ' || coalesce(m.old, 'born') || ' > ' || m.new FROM moved m
   WHERE NOT EXISTS (SELECT FROM noted n WHERE n.tx = m.tx AND n.run_id = m.run_id)""",
    "held by no live claim": f"""
  SELECT call_id || ' ' || item FROM (
    SELECT effect, item, call_id FROM held_items EXCEPT ({_LIVE_ITEMS})) AS x""",
    "a live claim that does not hold its item": f"""
  SELECT id || ' ' || item FROM (
    ({_LIVE_ITEMS}) EXCEPT SELECT effect, item, call_id FROM held_items) AS x""",
    "votes that are not those of the current revision": """
  SELECT a.id FROM approvals a
   WHERE ARRAY(SELECT vote->'person'->>'user' FROM jsonb_array_elements(a.votes) AS vote ORDER BY 1)
      <> ARRAY(SELECT user_id FROM decisions d WHERE d.approval_id = a.id AND d.revision = a.revision
                  AND d.verdict <> 'reject' ORDER BY 1)""",
    "approved without a quorum, or pending with one": """
  SELECT a.id || ' ' || a.status FROM approvals a
   WHERE (a.status = 'pending' OR (a.decided_at IS NOT NULL AND a.status <> 'rejected'))
     AND (a.status = 'pending') = (jsonb_array_length(a.votes) >= (a.rule->>'quorum')::int)""",
    "a decision of who may not": """
  SELECT a.id || ' ' || d.user_id FROM decisions d JOIN approvals a ON a.id = d.approval_id
   WHERE d.user_id = a.requester_user OR d.user_id = 'U0ZOE'
      OR (d.user_id = 'U0ANA' AND (a.escalated_at IS NULL OR d.at < a.escalated_at))""",
    "a decision after the deadline": """
  SELECT a.id || ' ' || d.verdict FROM decisions d JOIN approvals a ON a.id = d.approval_id
   WHERE d.at >= a.expires_at""",
    "claimed for the first time after claim_by": """
  SELECT a.id FROM audit_events e JOIN approvals a ON a.id = e.approval_id
   WHERE e.kind = 'call.claimed' AND (e.data->>'attempts')::int = 0 AND e.at >= a.claim_by""",
    "an attempt without its claim, or after its lease": f"""
  SELECT call_id FROM ({_STEPS}) AS s
   WHERE kind = 'attempt.started'
     AND (before IS DISTINCT FROM 'call.claimed' OR at >= since + interval '{LEASE} seconds')""",
    "an attempt later than a day after the first": """
  SELECT e.call_id FROM audit_events e JOIN calls c ON c.id = e.call_id
   WHERE e.kind = 'attempt.started' AND e.at >= c.first_attempt_at + interval '24 hours'""",
    "a claim or an end out of its turn": f"""
  SELECT call_id || ' ' || kind || ' after ' || coalesce(before, 'nothing') FROM ({_STEPS}) AS s
   WHERE kind NOT IN ('attempt.started', 'call.unknown')
     AND (kind = 'call.claimed') = (coalesce(before, '') IN ('call.claimed', 'attempt.started'))""",
    "a key that is neither the approval nor the call": """
  SELECT c.id || ' ' || c.key FROM calls c
    LEFT JOIN audit_events e ON e.call_id = c.id AND e.kind = 'approval.requested'
   WHERE c.key <> coalesce(e.approval_id, c.id)""",
    "open calls miscounted": """
  SELECT r.id || ' ' || r.open_calls FROM runs r
   WHERE r.open_calls <> (SELECT count(*) FROM calls c
                           WHERE c.run_id = r.id AND c.turn = r.turn AND c.result IS NULL)""",
    "a call of an earlier turn without a result": """
  SELECT c.id FROM calls c JOIN runs r ON r.id = c.run_id WHERE c.result IS NULL AND c.turn < r.turn""",
    "two results of one call": """
  SELECT b->>'tool_use_id' FROM messages m, json_array_elements(m.body) AS said,
         json_array_elements(said->'content') AS b
   WHERE b->>'type' = 'tool_result' GROUP BY 1 HAVING count(*) > 1""",
    "a call in the history that has no row": """
  SELECT b->>'id' FROM messages m, json_array_elements(m.body) AS said,
         json_array_elements(said->'content') AS b
   WHERE b->>'type' = 'tool_use' EXCEPT SELECT provider_id FROM calls""",
    "a card that is ahead of its row, or does not follow it": """
  SELECT k.id FROM cards k JOIN approvals a ON a.id = k.approval_id
   WHERE k.wanted_version <> a.version OR k.shown_version > a.version""",
    "asked again in spite of a refusal": """
  SELECT a.id FROM approvals a JOIN vetoes v USING (conversation_id, effect)
   WHERE a.id <> v.approval_id AND a.created_at > v.created_at
     AND (v.lifted_at IS NULL OR a.created_at < v.lifted_at)
     AND EXISTS (SELECT FROM audit_events e WHERE e.approval_id = a.id AND e.kind = 'approval.requested')""",
}

_CHECK = "\nUNION ALL\n".join(
    f"SELECT '{law}' AS law, found FROM ({query}) AS broken(found)" for law, query in LAWS.items()
)


class Laws:
    """The laws over one database, through a connection of its superuser's."""

    def __init__(self, connection: psycopg.Connection[tuple[str, str]]) -> None:
        self._connection = connection
        connection.execute(_NOTES)
        for table, changed in _CHANGED.items():
            connection.execute(_TRIGGERS.format(table=table, changed=changed))
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO may_move VALUES (%s, %s, %s)", list(_allowed()))
        found = connection.execute(
            "SELECT string_agg(format('DELETE FROM %I', tablename), '; '), '' FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename NOT IN ('alembic_version', 'may_move')"
        ).fetchone()
        assert found is not None
        # no trigger and no foreign key looks on
        self._empty = (
            f"SET session_replication_role = replica; {found[0]}; SET session_replication_role = origin;"
            " INSERT INTO audit_heads (run_id) VALUES ('house')"
        )

    def empty(self) -> None:
        """Take everything out of the database."""
        self._connection.execute(self._empty)

    def broken(self) -> list[str]:
        """A sentence for each thing that is not as it must be."""
        return [f"{law}: {found}" for law, found in self._connection.execute(_CHECK)]

    def is_claimed(self, token: str | None) -> bool:
        """Whether a call is claimed with this token, and the lease is not over."""
        query = "SELECT '', '' FROM calls WHERE token = %s AND lease_until > house_now()"
        return self._connection.execute(query, [token]).fetchone() is not None

    def shift_clock(self, seconds: float) -> None:
        """Let the house's clock be ahead by so much."""
        self._connection.execute(
            "CREATE OR REPLACE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE"
            f" AS $$SELECT now() + interval '{seconds} seconds'$$"
        )


def _allowed() -> Iterable[tuple[str, str, str]]:
    for kind, (births, moves) in MOVES.items():
        yield from ((kind, "", birth.value) for birth in births)
        yield from ((kind, old.value, new.value) for old, after in moves.items() for new in after)


@contextmanager
def laws_of(database: Database) -> Iterator[Laws]:
    """The laws over a fresh database."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        yield Laws(connection)
