CREATE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()'
;;
CREATE TYPE run_status AS ENUM ('queued', 'running', 'awaiting_approval', 'completed', 'exhausted', 'failed', 'cancelled')
;;
CREATE TYPE call_status AS ENUM ('proposed', 'allowed', 'asked', 'deferred', 'forbidden', 'vetoed', 'invalid', 'executing', 'done', 'failed', 'rejected', 'expired', 'superseded', 'cancelled', 'unknown')
;;
CREATE TYPE approval_status AS ENUM ('pending', 'approved', 'executing', 'executed', 'failed', 'rejected', 'expired', 'superseded', 'cancelled', 'unknown')
;;
CREATE TABLE conversations (
	id TEXT NOT NULL, 
	team_id TEXT NOT NULL, 
	channel_id TEXT NOT NULL, 
	thread_ts TEXT, 
	next_seq INTEGER DEFAULT 1 NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_conversations PRIMARY KEY (id), 
	CONSTRAINT uq_conversations_team_id_channel_id_thread_ts UNIQUE (team_id, channel_id, thread_ts)
)
;;
CREATE TABLE directory_users (
	team_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_bot BOOLEAN DEFAULT false NOT NULL, 
	deleted BOOLEAN DEFAULT false NOT NULL, 
	restricted BOOLEAN DEFAULT false NOT NULL, 
	stranger BOOLEAN DEFAULT false NOT NULL, 
	unconfirmed BOOLEAN DEFAULT false NOT NULL, 
	event_at TIMESTAMP WITH TIME ZONE, 
	refreshed_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_directory_users PRIMARY KEY (team_id, user_id)
)
;;
CREATE TABLE directory_groups (
	team_id TEXT NOT NULL, 
	group_id TEXT NOT NULL, 
	handle TEXT NOT NULL, 
	refreshed_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_directory_groups PRIMARY KEY (team_id, group_id)
)
;;
CREATE TABLE answered_clicks (
	key TEXT NOT NULL, 
	at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_answered_clicks PRIMARY KEY (key)
)
;;
CREATE INDEX ix_answered_clicks_at ON answered_clicks (at)
;;
CREATE TABLE audit_events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	at TIMESTAMP WITH TIME ZONE NOT NULL, 
	kind TEXT NOT NULL, 
	approval_id TEXT, 
	call_id TEXT, 
	actor JSONB, 
	data JSONB, 
	salt BYTEA, 
	payload_hash BYTEA NOT NULL, 
	hash BYTEA NOT NULL, 
	CONSTRAINT pk_audit_events PRIMARY KEY (run_id, seq)
)
;;
CREATE TABLE audit_heads (
	run_id TEXT NOT NULL, 
	seq INTEGER DEFAULT 0 NOT NULL, 
	hash BYTEA DEFAULT '' NOT NULL, 
	CONSTRAINT pk_audit_heads PRIMARY KEY (run_id)
)
;;
INSERT INTO audit_heads (run_id) VALUES ('house')
;;
CREATE TABLE runs (
	id TEXT NOT NULL, 
	conversation_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	status run_status NOT NULL, 
	agent TEXT NOT NULL, 
	task TEXT NOT NULL, 
	requester_team TEXT, 
	requester_user TEXT, 
	requester_name TEXT DEFAULT '' NOT NULL, 
	source_key TEXT NOT NULL, 
	state_version INTEGER NOT NULL, 
	steps INTEGER DEFAULT 0 NOT NULL, 
	input_tokens INTEGER DEFAULT 0 NOT NULL, 
	output_tokens INTEGER DEFAULT 0 NOT NULL, 
	turn INTEGER DEFAULT 0 NOT NULL, 
	open_calls INTEGER DEFAULT 0 NOT NULL, 
	faults INTEGER DEFAULT 0 NOT NULL, 
	token TEXT, 
	worker TEXT, 
	lease_until TIMESTAMP WITH TIME ZONE, 
	not_before TIMESTAMP WITH TIME ZONE, 
	queued_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	started_at TIMESTAMP WITH TIME ZONE, 
	ended_at TIMESTAMP WITH TIME ZONE, 
	error TEXT, 
	answer TEXT, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT uq_runs_conversation_id_seq UNIQUE (conversation_id, seq), 
	CONSTRAINT uq_runs_source_key UNIQUE (source_key), 
	CONSTRAINT ck_runs_lease CHECK ((status = 'running') = (token IS NOT NULL AND lease_until IS NOT NULL)), 
	CONSTRAINT ck_runs_open_calls CHECK (open_calls >= 0), 
	CONSTRAINT ck_runs_awaits_something CHECK (status <> 'awaiting_approval' OR open_calls > 0), 
	CONSTRAINT ck_runs_started CHECK (started_at IS NOT NULL OR status = ANY ('{cancelled,queued}'::run_status[])), 
	CONSTRAINT ck_runs_requester CHECK ((requester_team IS NULL) = (requester_user IS NULL)), 
	CONSTRAINT fk_runs_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversations (id)
)
;;
CREATE INDEX ix_runs_queue ON runs (queued_at) WHERE status = 'queued'
;;
CREATE INDEX ix_runs_running ON runs (id) WHERE status = 'running'
;;
CREATE UNIQUE INDEX uq_runs_one_started ON runs (conversation_id) WHERE started_at IS NOT NULL AND status NOT IN ('cancelled', 'completed', 'exhausted', 'failed')
;;
CREATE TABLE notices (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	dedupe_key TEXT NOT NULL, 
	conversation_id TEXT, 
	team_id TEXT, 
	user_id TEXT, 
	kind TEXT NOT NULL, 
	data JSONB NOT NULL, 
	token TEXT, 
	worker TEXT, 
	lease_until TIMESTAMP WITH TIME ZONE, 
	not_before TIMESTAMP WITH TIME ZONE, 
	again_at TIMESTAMP WITH TIME ZONE, 
	failures INTEGER DEFAULT 0 NOT NULL, 
	last_error TEXT, 
	ts TEXT, 
	version INTEGER DEFAULT 0 NOT NULL, 
	shown TEXT, 
	posted_at TIMESTAMP WITH TIME ZONE, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_notices PRIMARY KEY (id), 
	CONSTRAINT uq_notices_dedupe_key UNIQUE (dedupe_key), 
	CONSTRAINT ck_notices_one_place CHECK ((conversation_id IS NULL) <> (user_id IS NULL)), 
	CONSTRAINT fk_notices_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversations (id)
)
;;
CREATE INDEX ix_notices_unposted ON notices (id) WHERE posted_at IS NULL OR again_at IS NOT NULL
;;
CREATE TABLE directory_members (
	team_id TEXT NOT NULL, 
	group_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	CONSTRAINT pk_directory_members PRIMARY KEY (team_id, group_id, user_id), 
	CONSTRAINT fk_directory_members_team_id FOREIGN KEY(team_id, group_id) REFERENCES directory_groups (team_id, group_id) ON DELETE CASCADE
)
;;
CREATE TABLE messages (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	body JSON NOT NULL, 
	state_version INTEGER NOT NULL, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_messages PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_messages_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
)
;;
CREATE TABLE calls (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	turn INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	provider_id TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	effect TEXT, 
	input JSONB NOT NULL, 
	rationale TEXT, 
	status call_status NOT NULL, 
	result JSONB, 
	measured JSONB, 
	items TEXT[] DEFAULT '{}' NOT NULL, 
	not_before TIMESTAMP WITH TIME ZONE, 
	attempts INTEGER DEFAULT 0 NOT NULL, 
	first_attempt_at TIMESTAMP WITH TIME ZONE, 
	key TEXT, 
	repeatable BOOLEAN DEFAULT false NOT NULL, 
	only_reads BOOLEAN DEFAULT false NOT NULL, 
	token TEXT, 
	worker TEXT, 
	lease_until TIMESTAMP WITH TIME ZONE, 
	output JSONB, 
	done_items TEXT[], 
	ended_at TIMESTAMP WITH TIME ZONE, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id), 
	CONSTRAINT uq_calls_run_id_turn_position UNIQUE (run_id, turn, position), 
	CONSTRAINT ck_calls_lease CHECK ((status = 'executing') = (token IS NOT NULL AND lease_until IS NOT NULL)), 
	CONSTRAINT ck_calls_attempted_is_not_forgotten CHECK (attempts = 0 OR NOT status = ANY ('{cancelled,deferred,expired,forbidden,invalid,proposed,rejected,superseded,vetoed}'::call_status[])), 
	CONSTRAINT ck_calls_attempted CHECK (attempts > 0 OR NOT status = ANY ('{done,unknown}'::call_status[])), 
	CONSTRAINT ck_calls_first_attempt CHECK ((attempts > 0) = (first_attempt_at IS NOT NULL)), 
	CONSTRAINT ck_calls_key CHECK ((attempts > 0) = (key IS NOT NULL)), 
	CONSTRAINT ck_calls_closed_with_a_result CHECK (status = 'unknown' OR (result IS NULL) = (status = ANY ('{allowed,asked,executing,proposed}'::call_status[]))), 
	CONSTRAINT fk_calls_run_id FOREIGN KEY(run_id) REFERENCES runs (id)
)
;;
CREATE INDEX ix_calls_allowed ON calls (run_id) WHERE status = 'allowed'
;;
CREATE UNIQUE INDEX uq_calls_one_executing ON calls (run_id) WHERE status = 'executing'
;;
CREATE TABLE approvals (
	id TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	conversation_id TEXT NOT NULL, 
	status approval_status NOT NULL, 
	revision INTEGER DEFAULT 1 NOT NULL, 
	version INTEGER DEFAULT 1 NOT NULL, 
	tool TEXT NOT NULL, 
	effect TEXT NOT NULL, 
	agent TEXT NOT NULL, 
	requester_team TEXT, 
	requester_user TEXT, 
	rule JSONB NOT NULL, 
	votes JSONB DEFAULT '[]' NOT NULL, 
	attempted BOOLEAN DEFAULT false NOT NULL, 
	replaces TEXT, 
	supersessions INTEGER DEFAULT 0 NOT NULL, 
	expires_at TIMESTAMP WITH TIME ZONE NOT NULL, 
	escalate_at TIMESTAMP WITH TIME ZONE, 
	escalated_at TIMESTAMP WITH TIME ZONE, 
	claim_by TIMESTAMP WITH TIME ZONE, 
	decided_at TIMESTAMP WITH TIME ZONE, 
	decided_by JSONB, 
	reason TEXT, 
	outcome JSONB, 
	ended_at TIMESTAMP WITH TIME ZONE, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_approvals PRIMARY KEY (id), 
	CONSTRAINT uq_approvals_call_id UNIQUE (call_id), 
	CONSTRAINT ck_approvals_attempted_is_not_forgotten CHECK (NOT (attempted AND status = ANY ('{cancelled,expired,pending,rejected,superseded}'::approval_status[]))), 
	CONSTRAINT ck_approvals_attempted CHECK (attempted OR NOT status = ANY ('{executed,failed,unknown}'::approval_status[])), 
	CONSTRAINT ck_approvals_seven_days CHECK (expires_at <= created_at + interval '168 hours'), 
	CONSTRAINT ck_approvals_claim_by CHECK (num_nulls(decided_at, claim_by) = 0 OR NOT status = ANY ('{approved,executing}'::approval_status[])), 
	CONSTRAINT ck_approvals_claimed_within_a_day CHECK (claim_by <= decided_at + interval '24 hours'), 
	CONSTRAINT fk_approvals_call_id FOREIGN KEY(call_id) REFERENCES calls (id), 
	CONSTRAINT fk_approvals_run_id FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_approvals_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversations (id), 
	CONSTRAINT fk_approvals_replaces FOREIGN KEY(replaces) REFERENCES approvals (id)
)
;;
CREATE INDEX ix_approvals_escalation ON approvals (escalate_at) WHERE status = 'pending' AND escalated_at IS NULL
;;
CREATE INDEX ix_approvals_conversation_id ON approvals (conversation_id, created_at)
;;
CREATE INDEX ix_approvals_deadline ON approvals (expires_at) WHERE status = 'pending'
;;
CREATE INDEX ix_approvals_replaces ON approvals (replaces) WHERE replaces IS NOT NULL
;;
CREATE INDEX ix_approvals_open ON approvals (created_at) WHERE status IN ('approved', 'executing', 'pending', 'unknown')
;;
CREATE INDEX ix_approvals_ready ON approvals (decided_at) WHERE status = 'approved'
;;
CREATE INDEX ix_approvals_run_id ON approvals (run_id)
;;
CREATE TABLE held_items (
	effect TEXT NOT NULL, 
	item TEXT NOT NULL, 
	call_id TEXT NOT NULL, 
	CONSTRAINT pk_held_items PRIMARY KEY (effect, item), 
	CONSTRAINT fk_held_items_call_id FOREIGN KEY(call_id) REFERENCES calls (id)
)
;;
CREATE INDEX ix_held_items_call_id ON held_items (call_id)
;;
CREATE TABLE revisions (
	approval_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	input JSONB NOT NULL, 
	input_hash TEXT NOT NULL, 
	facts JSONB NOT NULL, 
	items TEXT[] DEFAULT '{}' NOT NULL, 
	items_digest TEXT NOT NULL, 
	precondition JSONB NOT NULL, 
	preview JSONB NOT NULL, 
	preview_hash TEXT NOT NULL, 
	schema_hash TEXT NOT NULL, 
	author JSONB, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_revisions PRIMARY KEY (approval_id, revision), 
	CONSTRAINT fk_revisions_approval_id FOREIGN KEY(approval_id) REFERENCES approvals (id)
)
;;
CREATE TABLE drafts (
	id TEXT NOT NULL, 
	approval_id TEXT NOT NULL, 
	base_revision INTEGER NOT NULL, 
	author JSONB NOT NULL, 
	input JSONB NOT NULL, 
	input_hash TEXT NOT NULL, 
	facts JSONB NOT NULL, 
	items TEXT[] DEFAULT '{}' NOT NULL, 
	items_digest TEXT NOT NULL, 
	precondition JSONB NOT NULL, 
	preview JSONB NOT NULL, 
	preview_hash TEXT NOT NULL, 
	schema_hash TEXT NOT NULL, 
	confirmed_as INTEGER, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_drafts PRIMARY KEY (id), 
	CONSTRAINT fk_drafts_approval_id FOREIGN KEY(approval_id) REFERENCES approvals (id)
)
;;
CREATE INDEX ix_drafts_approval_id ON drafts (approval_id)
;;
CREATE TABLE decisions (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	approval_id TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	verdict TEXT NOT NULL, 
	team_id TEXT NOT NULL, 
	user_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	role TEXT, 
	reason TEXT, 
	at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT ck_decisions_verdict CHECK (verdict IN ('approve', 'edit', 'reject')), 
	CONSTRAINT uq_decisions_approval_id_revision_team_id_user_id_verdict UNIQUE (approval_id, revision, team_id, user_id, verdict), 
	CONSTRAINT fk_decisions_approval_id FOREIGN KEY(approval_id) REFERENCES approvals (id)
)
;;
CREATE TABLE cards (
	id TEXT NOT NULL, 
	approval_id TEXT NOT NULL, 
	team_id TEXT NOT NULL, 
	channel_id TEXT, 
	user_id TEXT, 
	ts TEXT, 
	lost_ts TEXT[] DEFAULT '{}' NOT NULL, 
	shown_version INTEGER DEFAULT 0 NOT NULL, 
	wanted_version INTEGER DEFAULT 1 NOT NULL, 
	told_revision INTEGER DEFAULT 0 NOT NULL, 
	token TEXT, 
	worker TEXT, 
	lease_until TIMESTAMP WITH TIME ZONE, 
	not_before TIMESTAMP WITH TIME ZONE, 
	again_at TIMESTAMP WITH TIME ZONE, 
	failures INTEGER DEFAULT 0 NOT NULL, 
	last_error TEXT, 
	posted_at TIMESTAMP WITH TIME ZONE, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	CONSTRAINT pk_cards PRIMARY KEY (id), 
	CONSTRAINT uq_cards_team_id_channel_id_ts UNIQUE (team_id, channel_id, ts), 
	CONSTRAINT ck_cards_somewhere CHECK (channel_id IS NOT NULL OR user_id IS NOT NULL), 
	CONSTRAINT fk_cards_approval_id FOREIGN KEY(approval_id) REFERENCES approvals (id)
)
;;
CREATE INDEX ix_cards_approval_id ON cards (approval_id)
;;
CREATE INDEX ix_cards_behind ON cards (created_at) WHERE shown_version < wanted_version OR again_at IS NOT NULL
;;
CREATE TABLE vetoes (
	id BIGINT GENERATED ALWAYS AS IDENTITY, 
	conversation_id TEXT NOT NULL, 
	effect TEXT NOT NULL, 
	approval_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	denied_by JSONB, 
	reason TEXT, 
	created_at TIMESTAMP WITH TIME ZONE DEFAULT house_now() NOT NULL, 
	lifted_at TIMESTAMP WITH TIME ZONE, 
	lifted_by_run TEXT, 
	CONSTRAINT pk_vetoes PRIMARY KEY (id), 
	CONSTRAINT ck_vetoes_kind CHECK (kind IN ('rejected', 'expired')), 
	CONSTRAINT fk_vetoes_conversation_id FOREIGN KEY(conversation_id) REFERENCES conversations (id), 
	CONSTRAINT fk_vetoes_approval_id FOREIGN KEY(approval_id) REFERENCES approvals (id)
)
;;
CREATE UNIQUE INDEX uq_vetoes_standing ON vetoes (conversation_id, effect) WHERE lifted_at IS NULL
;;
CREATE FUNCTION audit_payload_hash(salt bytea, actor jsonb, data jsonb) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(salt || convert_to(concat(E'\n', actor, E'\n', data), 'UTF8'))
$$
;;
CREATE FUNCTION audit_event_hash(
  previous bytea, run_id text, seq int, at timestamptz, kind text, approval_id text, call_id text,
  payload_hash bytea) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(previous || payload_hash || convert_to(concat_ws(E'\n', run_id, seq,
    extract(epoch FROM at), kind, quote_nullable(approval_id), quote_nullable(call_id)), 'UTF8'))
$$
;;
CREATE FUNCTION audit_append(
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
END $$
;;
CREATE FUNCTION audit_redact(p_run text, p_seq int, p_actor jsonb, p_reason text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE audit_events SET actor = NULL, data = NULL, salt = NULL
   WHERE run_id = p_run AND seq = p_seq AND salt IS NOT NULL AND kind <> 'audit.redacted';
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM audit_append(p_run, 'audit.redacted', p_actor, NULL, NULL,
                       jsonb_build_object('seq', p_seq, 'reason', p_reason));
  RETURN true;
END $$
;;
CREATE FUNCTION audit_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_stack text;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    GET DIAGNOSTICS v_stack = PG_CONTEXT;
    IF v_stack ~ '(^|[^[:alnum:]_.$"])audit_redact\(text,integer,jsonb,text\)'
       AND (NEW.actor, NEW.data, NEW.salt) IS NOT DISTINCT FROM (NULL::jsonb, NULL::jsonb, NULL::bytea)
       AND (NEW.run_id, NEW.seq, NEW.at, NEW.kind, NEW.approval_id, NEW.call_id, NEW.payload_hash, NEW.hash)
           IS NOT DISTINCT FROM
           (OLD.run_id, OLD.seq, OLD.at, OLD.kind, OLD.approval_id, OLD.call_id, OLD.payload_hash, OLD.hash)
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'audit events are append-only: % is refused', TG_OP USING ERRCODE = 'VB002';
END $$
;;
CREATE FUNCTION audit_heads_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_stack text;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    GET DIAGNOSTICS v_stack = PG_CONTEXT;
    IF strpos(v_stack, 'audit_append(text,text,jsonb,text,text,jsonb)') > 0
       AND NEW.run_id = OLD.run_id AND NEW.seq >= OLD.seq
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION 'audit heads only advance: % is refused', TG_OP USING ERRCODE = 'VB002';
END $$
;;
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% are append-only: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'VB002';
END $$
;;
CREATE FUNCTION runs_refuse_forbidden_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status NOT IN ('queued') THEN
      RAISE EXCEPTION 'runs: % cannot be created as %', NEW.id, NEW.status USING ERRCODE = 'VB001';
    END IF;
  ELSIF NEW.status <> OLD.status AND OLD.status || '>' || NEW.status <> ALL ('{awaiting_approval>cancelled,awaiting_approval>queued,awaiting_approval>running,failed>queued,queued>cancelled,queued>running,running>awaiting_approval,running>cancelled,running>completed,running>exhausted,running>failed,running>queued}') THEN
    RAISE EXCEPTION 'runs: % cannot go from % to %', NEW.id, OLD.status, NEW.status
      USING ERRCODE = 'VB001';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER runs_moves BEFORE INSERT OR UPDATE OF status ON runs
  FOR EACH ROW EXECUTE FUNCTION runs_refuse_forbidden_moves()
;;
CREATE FUNCTION calls_refuse_forbidden_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status NOT IN ('proposed') THEN
      RAISE EXCEPTION 'calls: % cannot be created as %', NEW.id, NEW.status USING ERRCODE = 'VB001';
    END IF;
  ELSIF NEW.status <> OLD.status AND OLD.status || '>' || NEW.status <> ALL ('{allowed>cancelled,allowed>executing,allowed>failed,allowed>unknown,asked>cancelled,asked>executing,asked>expired,asked>rejected,asked>superseded,asked>unknown,executing>allowed,executing>asked,executing>done,executing>failed,executing>superseded,executing>unknown,proposed>allowed,proposed>asked,proposed>cancelled,proposed>deferred,proposed>failed,proposed>forbidden,proposed>invalid,proposed>vetoed,unknown>allowed,unknown>asked,unknown>done,unknown>failed}') THEN
    RAISE EXCEPTION 'calls: % cannot go from % to %', NEW.id, OLD.status, NEW.status
      USING ERRCODE = 'VB001';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER calls_moves BEFORE INSERT OR UPDATE OF status ON calls
  FOR EACH ROW EXECUTE FUNCTION calls_refuse_forbidden_moves()
;;
CREATE FUNCTION approvals_refuse_forbidden_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status NOT IN ('pending', 'unknown') THEN
      RAISE EXCEPTION 'approvals: % cannot be created as %', NEW.id, NEW.status USING ERRCODE = 'VB001';
    END IF;
  ELSIF NEW.status <> OLD.status AND OLD.status || '>' || NEW.status <> ALL ('{approved>cancelled,approved>executing,approved>expired,approved>superseded,approved>unknown,executing>approved,executing>executed,executing>failed,executing>superseded,executing>unknown,pending>approved,pending>cancelled,pending>expired,pending>rejected,pending>superseded,unknown>approved,unknown>executed,unknown>failed}') THEN
    RAISE EXCEPTION 'approvals: % cannot go from % to %', NEW.id, OLD.status, NEW.status
      USING ERRCODE = 'VB001';
  END IF;
  RETURN NEW;
END $$
;;
CREATE TRIGGER approvals_moves BEFORE INSERT OR UPDATE OF status ON approvals
  FOR EACH ROW EXECUTE FUNCTION approvals_refuse_forbidden_moves()
;;
CREATE TRIGGER audit_events_rows BEFORE UPDATE OR DELETE ON audit_events FOR EACH ROW EXECUTE FUNCTION audit_events_refuse_change()
;;
CREATE TRIGGER audit_events_all BEFORE TRUNCATE ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse_change()
;;
CREATE TRIGGER audit_heads_rows BEFORE UPDATE OR DELETE ON audit_heads FOR EACH ROW EXECUTE FUNCTION audit_heads_refuse_change()
;;
CREATE TRIGGER audit_heads_all BEFORE TRUNCATE ON audit_heads FOR EACH STATEMENT EXECUTE FUNCTION audit_heads_refuse_change()
;;
CREATE TRIGGER revisions_rows BEFORE UPDATE OR DELETE ON revisions FOR EACH ROW EXECUTE FUNCTION refuse_change()
;;
CREATE TRIGGER revisions_all BEFORE TRUNCATE ON revisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
;;
CREATE TRIGGER decisions_rows BEFORE UPDATE OR DELETE ON decisions FOR EACH ROW EXECUTE FUNCTION refuse_change()
;;
CREATE TRIGGER decisions_all BEFORE TRUNCATE ON decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
