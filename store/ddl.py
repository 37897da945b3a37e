"""What tables cannot say: functions, triggers, and the grants of the role that the app works under."""

from collections.abc import Iterable

import sqlalchemy as sa

from store import transitions as t
from store.tables import metadata

APP_ROLE = "vistobueno_app"

# The one clock. Tests shift it by replacing this function.
CLOCK = "CREATE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()'"

# An event's payload (actor, data) enters the chain only through a salted hash, so that it can be redacted.
# What is hashed is one line for each part, and no part has a line break: one that got one would add a line,
# and a longer salt or hash cannot take the place of what follows it.
# STABLE, as what it calls is: only then does PostgreSQL put its body in the place of a call.
PAYLOAD_HASH = """CREATE FUNCTION audit_payload_hash(salt bytea, actor jsonb, data jsonb) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(salt || convert_to(concat(E'\\n', actor, E'\\n', data), 'UTF8'))
$$"""

# The time is hashed as an epoch: a timestamptz is printed in the session's time zone.
EVENT_HASH = """CREATE FUNCTION audit_event_hash(
  previous bytea, run_id text, seq int, at timestamptz, kind text, approval_id text, call_id text,
  payload_hash bytea) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(previous || payload_hash || convert_to(concat_ws(E'\\n', run_id, seq,
    extract(epoch FROM at), kind, quote_nullable(approval_id), quote_nullable(call_id)), 'UTF8'))
$$"""

# Locks the head: events of a run come one by one.
# Temporary tables are looked at last, or their maker could have the events written there.
APPEND = """CREATE FUNCTION audit_append(
  p_run text, p_kind text, p_actor jsonb, p_approval text, p_call text, p_data jsonb) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  v_salt bytea := uuid_send(gen_random_uuid());
  v_payload bytea := audit_payload_hash(v_salt, p_actor, p_data);
  v_seq int;
  v_hash bytea;
BEGIN
  LOOP
    UPDATE audit_heads h SET seq = h.seq + 1, hash = audit_event_hash(
        h.hash, p_run, h.seq + 1, house_now(), p_kind, p_approval, p_call, v_payload)
     WHERE h.run_id = p_run RETURNING h.seq, h.hash INTO v_seq, v_hash;
    EXIT WHEN FOUND;
    INSERT INTO audit_heads (run_id) VALUES (p_run) ON CONFLICT DO NOTHING;
  END LOOP;
  INSERT INTO audit_events
    (run_id, seq, at, kind, approval_id, call_id, actor, data, salt, payload_hash, hash)
  VALUES (p_run, v_seq, house_now(), p_kind, p_approval, p_call, p_actor, p_data, v_salt, v_payload, v_hash);
  RETURN v_seq;
END $$"""

# The words of a payload go, its hash and the fact stay; and that it was redacted is itself an event.
REDACT = """CREATE FUNCTION audit_redact(p_run text, p_seq int, p_actor jsonb, p_reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE audit_events SET actor = NULL, data = NULL, salt = NULL
   WHERE run_id = p_run AND seq = p_seq AND salt IS NOT NULL AND kind <> 'audit.redacted';
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM audit_append(p_run, 'audit.redacted', p_actor, NULL, NULL,
                       jsonb_build_object('seq', p_seq, 'reason', p_reason));
  RETURN true;
END $$"""

# The call stack tells who changes a row. Only the signature is the same in every language of the server.
_STACK = '(^|[^[:alnum:]_.$"])'

PROTECT_EVENTS = f"""CREATE FUNCTION audit_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_stack text;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    GET DIAGNOSTICS v_stack = PG_CONTEXT;
    IF v_stack ~ '{_STACK}audit_redact\\(text,integer,jsonb,text\\)'
       AND (NEW.actor, NEW.data, NEW.salt) IS NOT DISTINCT FROM (NULL::jsonb, NULL::jsonb, NULL::bytea)
       AND (NEW.run_id, NEW.seq, NEW.at, NEW.kind, NEW.approval_id, NEW.call_id, NEW.payload_hash, NEW.hash)
           IS NOT DISTINCT FROM
           (OLD.run_id, OLD.seq, OLD.at, OLD.kind, OLD.approval_id, OLD.call_id, OLD.payload_hash, OLD.hash)
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'audit events are append-only: % is refused', TG_OP USING ERRCODE = 'VB002';
END $$"""

# Called in every step, so without a pattern; a head that is wrong all the same is found when it is verified.
PROTECT_HEADS = """CREATE FUNCTION audit_heads_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_stack text;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    GET DIAGNOSTICS v_stack = PG_CONTEXT;
    IF strpos(v_stack, 'audit_append(text,text,jsonb,text,text,jsonb)') > 0
       AND NEW.run_id = OLD.run_id AND NEW.seq >= OLD.seq
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'audit heads only advance: % is refused', TG_OP USING ERRCODE = 'VB002';
END $$"""

# What a person saw and what a person said stay as they were.
PROTECT_WORDS = """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are append-only: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'VB002';
END $$"""

FUNCTIONS = (CLOCK, PAYLOAD_HASH, EVENT_HASH, APPEND, REDACT, PROTECT_EVENTS, PROTECT_HEADS, PROTECT_WORDS)


def _protect(table: str, function: str) -> tuple[str, str]:
    return (
        f"CREATE TRIGGER {table}_rows BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}()",
        f"CREATE TRIGGER {table}_all BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
    )


def triggers() -> tuple[str, ...]:
    """The transition triggers (with their functions) and the ones that protect the record, in order."""
    return (
        *t.trigger_sql("runs", t.RUN_BIRTHS, t.RUN_MOVES),
        *t.trigger_sql("calls", t.CALL_BIRTHS, t.CALL_MOVES),
        *t.trigger_sql("approvals", t.APPROVAL_BIRTHS, t.APPROVAL_MOVES),
        *_protect("audit_events", "audit_events_refuse_change"),
        *_protect("audit_heads", "audit_heads_refuse_change"),
        *_protect("revisions", "refuse_change"),
        *_protect("decisions", "refuse_change"),
    )


# Tables that the app may do less than read, add to and change; and those that it may take rows out of.
READ_BY_APP = frozenset({"audit_events", "audit_heads", "alembic_version"})
ADDED_TO_BY_APP = frozenset({"revisions", "decisions"})
EMPTIED_BY_APP = frozenset({"held_items", "directory_groups", "directory_members", "answered_clicks"})


_APPEND = "audit_append(text, text, jsonb, text, text, jsonb)"


def grants(tables: Iterable[str]) -> tuple[str, ...]:
    """What the app's role may do with our tables: the record is written by `audit_append` only."""
    return (
        f"GRANT USAGE ON SCHEMA public TO {APP_ROLE}",
        *(f"GRANT {_rights(table)} ON {table} TO {APP_ROLE}" for table in sorted(tables)),
        "REVOKE EXECUTE ON FUNCTION audit_redact(text, int, jsonb, text) FROM PUBLIC",
        f"REVOKE EXECUTE ON FUNCTION {_APPEND} FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION {_APPEND} TO {APP_ROLE}",
    )


def _rights(table: str) -> str:
    if table in READ_BY_APP:
        return "SELECT"
    if table in ADDED_TO_BY_APP:
        return "SELECT, INSERT"
    return "SELECT, INSERT, UPDATE" + (", DELETE" if table in EMPTIED_BY_APP else "")


CREATE_APP_ROLE = f"""DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{APP_ROLE}') THEN
    CREATE ROLE {APP_ROLE} NOLOGIN;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;  -- another migration was quicker
  WHEN insufficient_privilege THEN NULL;  -- then only the trigger protects the record, and readiness says so
END $$"""

# So that the owner may work under it: from PostgreSQL 16 on, who creates a role cannot yet take it.
TAKE_APP_ROLE = f"""DO $$ BEGIN
  IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
     AND NOT EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
                     JOIN pg_roles o ON o.oid = m.member
                     WHERE r.rolname = '{APP_ROLE}' AND o.rolname = current_user AND NOT m.admin_option) THEN
    EXECUTE format('GRANT {APP_ROLE} TO %I', current_user);
  END IF;
EXCEPTION
  WHEN insufficient_privilege THEN NULL;
  WHEN internal_error THEN NULL;  -- the migration of another database granted it at this moment
END $$"""


def run(connection: sa.Connection, statement: str) -> None:
    """Run a statement as it is written: neither % nor : means anything in it."""
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(statement)


def grant_app_role(connection: sa.Connection) -> None:
    """Make the app's role and its grants, as far as the connection's role may."""
    run(connection, CREATE_APP_ROLE)
    there = sa.text("SELECT FROM pg_roles WHERE rolname = :role")
    if connection.execute(there, {"role": APP_ROLE}).first() is None:
        return
    ours = {*metadata.tables, "alembic_version"}  # the schema may have tables of others
    for statement in (TAKE_APP_ROLE, *grants(ours & set(sa.inspect(connection).get_table_names()))):
        run(connection, statement)
