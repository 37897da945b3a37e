"""Row → record, in one place for each kind."""

from collections.abc import Mapping
from typing import Any

from store.records import (
    Actor,
    Approval,
    Call,
    Card,
    Conversation,
    Draft,
    Measured,
    Notice,
    Rule,
    Run,
    Turn,
    Veto,
    Vote,
)
from store.transitions import ApprovalStatus, CallStatus, RunStatus

Row = Mapping[str, Any]

RUN = """r.id, r.conversation_id, r.seq, r.status, r.agent, r.task, r.requester_team, r.requester_user,
  r.requester_name, r.source_key, r.state_version, r.steps, r.input_tokens, r.output_tokens, r.turn,
  r.open_calls, r.faults, r.not_before, r.started_at, r.ended_at, r.created_at, r.error, r.answer"""
CALL = """c.id, c.run_id, c.turn, c.position, c.provider_id, c.tool, c.effect, c.input, c.rationale, c.status,
  c.result, c.measured, c.items, c.not_before, c.attempts, c.first_attempt_at, c.key, c.repeatable, c.output,
  c.done_items, c.ended_at"""
CARD = """k.id, k.approval_id, k.team_id, k.channel_id, k.user_id, k.ts, k.shown_version, k.wanted_version,
  k.failures, k.token"""
CONTENT = "input, input_hash, facts, items, items_digest, precondition, preview, preview_hash, schema_hash"
APPROVAL = f"""a.id, a.call_id, a.run_id, a.conversation_id, a.status, a.revision, a.version, a.tool,
  a.effect, a.agent, a.requester_team, a.requester_user, r.requester_name, a.rule, a.votes,
  a.attempted, a.replaces,
  a.supersessions, a.expires_at, a.escalate_at, a.escalated_at, a.claim_by, a.decided_at,
  a.decided_by, a.reason, a.outcome, a.ended_at, a.created_at, house_now() AS now, v.author,
  {", ".join("v." + name.strip() for name in CONTENT.split(","))},
  c.input AS original_input, c.rationale, c.provider_id, c.status AS call_status,
  n.team_id, n.channel_id, n.thread_ts,
  (SELECT b.id FROM approvals b WHERE b.replaces = a.id ORDER BY b.created_at DESC LIMIT 1) AS replaced_by"""
APPROVAL_FROM = """approvals a
  JOIN calls c ON c.id = a.call_id JOIN runs r ON r.id = a.run_id
  JOIN conversations n ON n.id = a.conversation_id
  JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision"""


def requester(row: Row) -> Actor:
    """Who began the run: a person, or the operator."""
    if row["requester_user"] is None:
        return Actor("operator", name=row["requester_name"] or "the operator")
    return Actor("person", row["requester_team"], row["requester_user"], row["requester_name"])


def run(row: Row) -> Run:
    """A row with RUN's columns."""
    fields = {k: row[k] for k in Run.__dataclass_fields__ if k not in {"requester", "status"}}
    return Run(**fields, status=RunStatus(row["status"]), requester=requester(row))


def call(row: Row) -> Call:
    """A row with CALL's columns."""
    fields = {k: row[k] for k in Call.__dataclass_fields__}
    fields["status"] = CallStatus(row["status"])
    fields["items"] = tuple(row["items"])
    fields["done_items"] = None if row["done_items"] is None else tuple(row["done_items"])
    return Call(**fields)


def content(row: Row) -> Measured:
    """A row with CONTENT's columns, or the JSON that holds the same."""
    fields = {k: row[k] for k in Measured.__dataclass_fields__}
    return Measured(**{**fields, "items": tuple(row["items"])})


def content_json(measured: Measured) -> dict[str, Any]:
    """The content as the statements take it, in `jsonb_to_recordset`'s columns."""
    return {
        **{k: getattr(measured, k) for k in Measured.__dataclass_fields__},
        "items": list(measured.items),
    }


def conversation(row: Row, id_column: str = "id") -> Conversation:
    """A row with a conversation's columns, its id under `id_column`."""
    return Conversation(row[id_column], row["team_id"], row["channel_id"], row["thread_ts"])


def actor(value: Any) -> Actor | None:
    """The actor in a jsonb column."""
    return None if value is None else Actor.from_json(value)


def approval(row: Row) -> Approval:
    """A row with APPROVAL's columns."""
    special = {"status", "requester", "rule", "votes", "decided_by", "shown", "author", "call_status"}
    fields = {k: row[k] for k in Approval.__dataclass_fields__ if k not in special and k != "conversation"}
    return Approval(
        **fields,
        status=ApprovalStatus(row["status"]),
        call_status=CallStatus(row["call_status"]),
        requester=requester(row),
        rule=Rule.from_json(row["rule"]),
        votes=tuple(Vote(Actor.from_json(v["person"]), v["at"]) for v in row["votes"]),
        decided_by=actor(row["decided_by"]),
        shown=content(row),
        author=actor(row["author"]),
        conversation=conversation(row, "conversation_id"),
    )


def draft(row: Row) -> Draft:
    """A row of drafts."""
    return Draft(
        row["id"],
        row["approval_id"],
        row["base_revision"],
        Actor.from_json(row["author"]),
        content(row),
        row["confirmed_as"],
    )


def card(row: Row) -> Card:
    """A row with CARD's columns."""
    return Card(**{k: row[k] for k in Card.__dataclass_fields__})


def notice(row: Row) -> Notice:
    """A claimed notice, joined with its conversation where it has one."""
    where = None if row["conversation_id"] is None else conversation(row, "conversation_id")
    return Notice(
        row["id"],
        row["kind"],
        row["data"],
        where,
        row["to_team"],
        row["to_user"],
        row["failures"],
        row["token"],
    )


def turn(row: Row) -> Turn:
    """A row of messages."""
    return Turn(row["run_id"], row["seq"], tuple(row["body"]), row["state_version"])


def veto(row: Row) -> Veto:
    """A row of vetoes."""
    return Veto(row["effect"], row["approval_id"], row["kind"], actor(row["denied_by"]), row["reason"])
