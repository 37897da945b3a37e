"""The tables: columns, CHECKs, foreign keys and the partial unique indexes that carry rules.

Functions, triggers and grants, which tables cannot say, are in `store.ddl`. The migrations build exactly
this; a test compares the two catalogs.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, ENUM, JSON, JSONB

from store import transitions as t

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _col(name: str, type_: Any, *args: Any, null: bool = False, default: str | None = None) -> sa.Column[Any]:
    server_default = sa.text(default) if default is not None else None
    return sa.Column(name, type_, *args, nullable=null, server_default=server_default)


def _id(name: str = "id") -> sa.Column[Any]:
    return sa.Column(name, sa.Text, primary_key=True)


def _text(name: str, *args: Any, null: bool = False, default: str | None = None) -> sa.Column[Any]:
    return _col(name, sa.Text, *args, null=null, default=default)


def _int(name: str, default: str | None = "0", null: bool = False) -> sa.Column[Any]:
    return _col(name, sa.Integer, null=null, default=default)


def _json(name: str, *, null: bool = False, default: str | None = None) -> sa.Column[Any]:
    return _col(name, JSONB, null=null, default=default)


def _time(name: str, *, null: bool = True) -> sa.Column[Any]:
    return _col(name, sa.TIMESTAMP(timezone=True), null=null)


def _now(name: str) -> sa.Column[Any]:
    return _col(name, sa.TIMESTAMP(timezone=True), default="house_now()")


def _flag(name: str) -> sa.Column[Any]:
    return _col(name, sa.Boolean, default="false")


def _ref(name: str, target: str, *, null: bool = False) -> sa.Column[Any]:
    return _col(name, sa.Text, sa.ForeignKey(target), null=null)


def _lease() -> list[sa.Column[Any]]:
    """The exclusive right to work on a row: whose, and until when."""
    return [_text("token", null=True), _text("worker", null=True), _time("lease_until")]


def _status(kind: str, statuses: type[StrEnum]) -> sa.Column[Any]:
    return _col("status", ENUM(*(status.value for status in statuses), name=f"{kind}_status"))


def _status_in(kind: str, statuses: Iterable[StrEnum]) -> str:
    """For a CHECK: every statement on the table reads it anew, and IN's list is ten times as long there."""
    return f"status = ANY ('{{{','.join(sorted(statuses))}}}'::{kind}_status[])"


def _content() -> list[sa.Column[Any]]:
    """What a revision or a draft shows: the input and everything code made from it, with its hashes."""
    return [
        _json("input"),
        _text("input_hash"),
        _json("facts"),
        _col("items", ARRAY(sa.Text), default="'{}'"),
        _text("items_digest"),
        _json("precondition"),
        _json("preview"),
        _text("preview_hash"),
        _text("schema_hash"),
    ]


conversations = sa.Table(
    "conversations",
    metadata,
    _id(),
    _text("team_id"),
    _text("channel_id"),
    _text("thread_ts", null=True),  # not yet posted: a run started from the command line
    _int("next_seq", default="1"),
    _now("created_at"),
    sa.UniqueConstraint("team_id", "channel_id", "thread_ts"),
)

runs = sa.Table(
    "runs",
    metadata,
    _id(),
    _ref("conversation_id", "conversations.id"),
    _int("seq", default=None),
    _status("run", t.RunStatus),
    _text("agent"),
    _text("task"),
    _text("requester_team", null=True),  # null: the operator, who is no person in Slack
    _text("requester_user", null=True),
    _text("requester_name", default="''"),
    _text("source_key"),  # the event's id, or --key: one run for each
    _int("state_version", default=None),
    _int("steps"),
    _int("input_tokens"),
    _int("output_tokens"),
    _int("turn"),
    _int("open_calls"),  # of the current turn, without a result yet
    _int("faults"),  # transient ones in a row
    *_lease(),
    _time("not_before"),
    _now("queued_at"),
    _time("started_at"),
    _time("ended_at"),
    _text("error", null=True),
    _text("answer", null=True),
    _now("created_at"),
    sa.UniqueConstraint("conversation_id", "seq"),
    sa.UniqueConstraint("source_key"),
    sa.CheckConstraint("(status = 'running') = (token IS NOT NULL AND lease_until IS NOT NULL)", "lease"),
    sa.CheckConstraint("open_calls >= 0", "open_calls"),
    sa.CheckConstraint("status <> 'awaiting_approval' OR open_calls > 0", "awaits_something"),
    sa.CheckConstraint(
        f"started_at IS NOT NULL OR {_status_in('run', (t.R.QUEUED, t.R.CANCELLED))}", "started"
    ),
    sa.CheckConstraint("(requester_team IS NULL) = (requester_user IS NULL)", "requester"),
    sa.Index(
        "uq_runs_one_started",
        "conversation_id",
        unique=True,
        postgresql_where=sa.text(f"started_at IS NOT NULL AND status NOT IN ({t.quoted(t.FINISHED_RUNS)})"),
    ),
    sa.Index("ix_runs_queue", "queued_at", postgresql_where=sa.text("status = 'queued'")),
    # not of the lease: a renewal then changes no index
    sa.Index("ix_runs_running", "id", postgresql_where=sa.text("status = 'running'")),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    # a turn: the message that led to it and the model's answer; JSON as text, because it is only read whole
    _col("body", JSON),
    _int("state_version", default=None),
    _now("created_at"),
)

calls = sa.Table(
    "calls",
    metadata,
    _id(),
    _ref("run_id", "runs.id"),
    _int("turn", default=None),
    _int("position", default=None),
    _text("provider_id"),
    _text("tool"),
    _text("effect", null=True),
    _json("input"),
    _text("rationale", null=True),
    _status("call", t.CallStatus),
    _json("result", null=True),  # what the model is told; null: open
    _json("measured", null=True),  # of an allowed call, what its verdict was reckoned from
    _col("items", ARRAY(sa.Text), default="'{}'"),
    _time("not_before"),
    _int("attempts"),
    _time("first_attempt_at"),
    _text("key", null=True),
    _flag("repeatable"),
    _flag("only_reads"),  # what was attempted changes nothing
    *_lease(),
    _json("output", null=True),  # what the tool returned
    _col("done_items", ARRAY(sa.Text), null=True),
    _time("ended_at"),
    _now("created_at"),
    sa.UniqueConstraint("run_id", "turn", "position"),
    sa.CheckConstraint("(status = 'executing') = (token IS NOT NULL AND lease_until IS NOT NULL)", "lease"),
    sa.CheckConstraint(
        f"attempts = 0 OR NOT {_status_in('call', t.NEVER_ATTEMPTED_CALLS)}", "attempted_is_not_forgotten"
    ),
    sa.CheckConstraint(f"attempts > 0 OR NOT {_status_in('call', t.ATTEMPTED_CALLS)}", "attempted"),
    sa.CheckConstraint("(attempts > 0) = (first_attempt_at IS NOT NULL)", "first_attempt"),
    sa.CheckConstraint("(attempts > 0) = (key IS NOT NULL)", "key"),
    sa.CheckConstraint(
        f"status = 'unknown' OR (result IS NULL) = ({_status_in('call', t.OPEN_CALLS)})",
        "closed_with_a_result",
    ),
    sa.Index(
        "uq_calls_one_executing", "run_id", unique=True, postgresql_where=sa.text("status = 'executing'")
    ),
    sa.Index("ix_calls_allowed", "run_id", postgresql_where=sa.text("status = 'allowed'")),
)

approvals = sa.Table(
    "approvals",
    metadata,
    _id(),
    _ref("call_id", "calls.id"),
    _ref("run_id", "runs.id"),
    _ref("conversation_id", "conversations.id"),
    _status("approval", t.ApprovalStatus),
    _int("revision", default="1"),
    _int("version", default="1"),  # of the row: what a decision is reckoned from, what a card shows
    _text("tool"),
    _text("effect"),
    _text("agent"),
    _text("requester_team", null=True),
    _text("requester_user", null=True),
    _json("rule"),  # who may decide and how long it waits, as the policy said when it was proposed
    _json("votes", default="'[]'"),  # the standing ones of this revision
    _flag("attempted"),
    _ref("replaces", "approvals.id", null=True),
    _int("supersessions"),  # in a row, up to this one
    _time("expires_at", null=False),
    _time("escalate_at"),
    _time("escalated_at"),
    _time("claim_by"),
    _time("decided_at"),  # also the order of execution
    _json("decided_by", null=True),
    _text("reason", null=True),
    _json("outcome", null=True),  # what ran, what moved, what went wrong
    _time("ended_at"),
    _now("created_at"),
    sa.UniqueConstraint("call_id"),
    sa.CheckConstraint(
        f"NOT (attempted AND {_status_in('approval', t.NEVER_ATTEMPTED_APPROVALS)})",
        "attempted_is_not_forgotten",
    ),
    sa.CheckConstraint(f"attempted OR NOT {_status_in('approval', t.ATTEMPTED_APPROVALS)}", "attempted"),
    sa.CheckConstraint("expires_at <= created_at + interval '168 hours'", "seven_days"),
    sa.CheckConstraint(
        f"num_nulls(decided_at, claim_by) = 0 OR NOT {_status_in('approval', (t.A.APPROVED, t.A.EXECUTING))}",
        "claim_by",
    ),
    sa.CheckConstraint("claim_by <= decided_at + interval '24 hours'", "claimed_within_a_day"),
    sa.Index(
        "ix_approvals_open",
        "created_at",
        postgresql_where=sa.text(f"status IN ({t.quoted(t.OPEN_APPROVALS)})"),
    ),
    sa.Index("ix_approvals_deadline", "expires_at", postgresql_where=sa.text("status = 'pending'")),
    sa.Index(
        "ix_approvals_escalation",
        "escalate_at",
        postgresql_where=sa.text("status = 'pending' AND escalated_at IS NULL"),
    ),
    sa.Index("ix_approvals_ready", "decided_at", postgresql_where=sa.text("status = 'approved'")),
    sa.Index("ix_approvals_run_id", "run_id"),
    sa.Index("ix_approvals_replaces", "replaces", postgresql_where=sa.text("replaces IS NOT NULL")),
    sa.Index("ix_approvals_conversation_id", "conversation_id", "created_at"),
)

revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("approval_id", sa.Text, sa.ForeignKey("approvals.id"), primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    *_content(),
    _json("author", null=True),  # null: the model
    _now("created_at"),
)

drafts = sa.Table(
    "drafts",
    metadata,
    _id(),
    _ref("approval_id", "approvals.id"),
    _int("base_revision", default=None),
    _json("author"),
    *_content(),
    _int("confirmed_as", default=None, null=True),
    _now("created_at"),
    sa.Index("ix_drafts_approval_id", "approval_id"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    _ref("approval_id", "approvals.id"),
    _int("revision", default=None),
    _text("verdict"),
    _text("team_id"),
    _text("user_id"),
    _text("name"),
    _text("role", null=True),
    _text("reason", null=True),
    _now("at"),
    sa.CheckConstraint("verdict IN ('approve', 'edit', 'reject')", "verdict"),
    sa.UniqueConstraint("approval_id", "revision", "team_id", "user_id", "verdict"),
)

cards = sa.Table(
    "cards",
    metadata,
    _id(),
    _ref("approval_id", "approvals.id"),
    _text("team_id"),
    _text("channel_id", null=True),  # null until the person's DM is open
    _text("user_id", null=True),  # of a copy in a DM
    _text("ts", null=True),
    _col("lost_ts", ARRAY(sa.Text), default="'{}'"),  # messages of it that are gone from Slack
    _int("shown_version"),
    _int("wanted_version", default="1"),
    _int("told_revision"),  # what cards that share items know of the approval; 0: nothing, or that it is over
    *_lease(),
    _time("not_before"),
    _time("again_at"),  # to be shown once more then: an older update may have come after what is shown
    _int("failures"),
    _text("last_error", null=True),
    _time("posted_at"),
    _now("created_at"),
    sa.UniqueConstraint("team_id", "channel_id", "ts"),
    sa.CheckConstraint("channel_id IS NOT NULL OR user_id IS NOT NULL", "somewhere"),
    sa.Index("ix_cards_approval_id", "approval_id"),
    sa.Index(
        "ix_cards_behind",
        "created_at",
        postgresql_where=sa.text("shown_version < wanted_version OR again_at IS NOT NULL"),
    ),
)

notices = sa.Table(
    "notices",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    _text("dedupe_key"),
    _ref("conversation_id", "conversations.id", null=True),  # in its thread
    _text("team_id", null=True),
    _text("user_id", null=True),  # or to this person's DM
    _text("kind"),
    _json("data"),
    *_lease(),
    _time("not_before"),
    _time("again_at"),  # like a card's
    _int("failures"),
    _text("last_error", null=True),
    _text("ts", null=True),
    _int("version"),  # one more each time that there is news for what is in Slack already
    _text("shown", null=True),  # a digest of what it was last brought up to, if that is certain
    _time("posted_at"),
    _now("created_at"),
    sa.UniqueConstraint("dedupe_key"),
    sa.CheckConstraint("(conversation_id IS NULL) <> (user_id IS NULL)", "one_place"),
    sa.Index(
        "ix_notices_unposted", "id", postgresql_where=sa.text("posted_at IS NULL OR again_at IS NOT NULL")
    ),
)

held_items = sa.Table(
    "held_items",
    metadata,
    sa.Column("effect", sa.Text, primary_key=True),
    sa.Column("item", sa.Text, primary_key=True),
    _ref("call_id", "calls.id"),
    sa.Index("ix_held_items_call_id", "call_id"),
)

vetoes = sa.Table(
    "vetoes",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    _ref("conversation_id", "conversations.id"),
    _text("effect"),
    _ref("approval_id", "approvals.id"),
    _text("kind"),
    _json("denied_by", null=True),
    _text("reason", null=True),
    _now("created_at"),
    _time("lifted_at"),
    _text("lifted_by_run", null=True),
    sa.CheckConstraint("kind IN ('rejected', 'expired')", "kind"),
    sa.Index(
        "uq_vetoes_standing",
        "conversation_id",
        "effect",
        unique=True,
        postgresql_where=sa.text("lifted_at IS NULL"),
    ),
)

directory_users = sa.Table(
    "directory_users",
    metadata,
    _id("team_id"),
    _id("user_id"),
    _text("name"),
    _flag("is_bot"),
    _flag("deleted"),
    _flag("restricted"),
    _flag("stranger"),
    _flag("unconfirmed"),  # an event said so, and Slack was not asked since
    _time("event_at"),  # of the newest event, by Slack's clock
    _now("refreshed_at"),  # when Slack was asked, or an event came, by the clock of the house
)

directory_groups = sa.Table(
    "directory_groups",
    metadata,
    _id("team_id"),
    _id("group_id"),
    _text("handle"),
    _now("refreshed_at"),
)

directory_members = sa.Table(
    "directory_members",
    metadata,
    _id("team_id"),
    _id("group_id"),
    _id("user_id"),
    sa.ForeignKeyConstraint(
        ["team_id", "group_id"],
        ["directory_groups.team_id", "directory_groups.group_id"],
        ondelete="CASCADE",
    ),
)

answered_clicks = sa.Table(
    "answered_clicks",
    metadata,
    _id("key"),  # a hash of who pressed what, where and when
    _now("at"),
    sa.Index("ix_answered_clicks_at", "at"),
)

audit_events = sa.Table(
    "audit_events",
    metadata,
    sa.Column("run_id", sa.Text, primary_key=True),  # 'house' for events without a run
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    _time("at", null=False),
    _text("kind"),
    _text("approval_id", null=True),
    _text("call_id", null=True),
    _json("actor", null=True),  # null, like data and salt: redacted
    _json("data", null=True),
    _col("salt", BYTEA, null=True),
    _col("payload_hash", BYTEA),
    _col("hash", BYTEA),
)

audit_heads = sa.Table(
    "audit_heads",
    metadata,
    _id("run_id"),
    _int("seq"),
    _col("hash", BYTEA, default="''"),
)
