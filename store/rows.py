"""Row → record, in one place for each kind."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from store.errors import NotMigrated, WrittenByNewer
from store.records import (
    Actor,
    Approval,
    Call,
    Card,
    ClaimedCall,
    ClaimedRun,
    Conversation,
    Draft,
    Edited,
    Measured,
    Notice,
    Rule,
    Run,
    Settlement,
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
  c.result, c.measured, c.items, c.not_before, c.attempts, c.first_attempt_at, c.key, c.repeatable,
  c.only_reads, c.output, c.done_items, c.ended_at"""
CARD = """k.id, k.approval_id, k.team_id, k.channel_id, k.user_id, k.ts, k.shown_version, k.wanted_version,
  k.told_revision, k.failures, k.token"""
CONTENT = "input, input_hash, facts, items, items_digest, precondition, preview, preview_hash, schema_hash"
# Whole rows as JSON: a value instead of fifty columns, for the server and for the driver.
_WITH_APPROVAL = """to_json(v) AS revision, c.input AS original_input, c.rationale,
  c.provider_id, c.status AS call_status, r.requester_name, n.team_id, n.channel_id, n.thread_ts,
  (SELECT max(b.id) FROM approvals b WHERE b.replaces = a.id) AS replaced_by,
  house_now() AS now"""
APPROVAL = f"to_json(a) AS approval, {_WITH_APPROVAL}"
APPROVAL_FROM = """approvals a
  JOIN calls c ON c.id = a.call_id JOIN runs r ON r.id = a.run_id
  JOIN conversations n ON n.id = a.conversation_id
  JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision"""
# What a step hands on of a row that it changed; each node of its plan would copy all the columns.
CHANGED_APPROVAL = (
    "a.id, a.run_id, a.call_id, a.conversation_id, a.revision, a.version, a.effect, to_json(a) AS whole"
)
CHANGED_CALL = """c.id, c.run_id, c.effect, c.status, c.attempts, c.repeatable, c.input, c.rationale,
  c.provider_id, to_json(c) AS whole"""
CLAIMED = f"c.whole AS call, to_json(r) AS run, a.whole AS approval, {_WITH_APPROVAL}"
CLAIMED_UNASKED = f"c.whole AS call, to_json(r) AS run, {APPROVAL}"
# What a decision makes of an approval that was read before.
DECIDED = "a.whole AS approval, c.status AS call_status, house_now() AS now"


def decided_from(call: str = "calls", revision: str = "revisions") -> str:
    """Where DECIDED's columns are: a step's CTE `approval`, and others in the place of what it changes."""
    return f"""approval a
  JOIN {call} c ON c.id = a.call_id
  JOIN {revision} v ON v.approval_id = a.id AND v.revision = a.revision"""


def claimed_from(approval: str = "approvals") -> str:
    """Where CLAIMED's columns are; `call` is the claim's CTE, as is `approval` if it changes one."""
    return f"""call c
  JOIN runs r ON r.id = c.run_id JOIN conversations n ON n.id = r.conversation_id
  LEFT JOIN {approval} a ON a.call_id = c.id
  LEFT JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision"""


_UP_TO_IT = "o.conversation_id = r.conversation_id AND o.seq <= r.seq"
# What a run `r` goes on from: its conversation up to it, each run with the calls that no message has yet.
HISTORY = f"""json_build_object(
    'earlier', (SELECT json_agg(o ORDER BY o.seq) FROM runs o
                 WHERE o.conversation_id = r.conversation_id AND o.seq < r.seq),
    'turns', (SELECT json_agg(m ORDER BY o.seq, m.seq)
                FROM runs o JOIN messages m ON m.run_id = o.id WHERE {_UP_TO_IT}),
    'calls', (SELECT json_agg(c ORDER BY o.seq, c.position)
                FROM runs o JOIN calls c ON c.run_id = o.id AND c.turn = o.turn WHERE {_UP_TO_IT}),
    'vetoes', (SELECT json_agg(v ORDER BY v.id) FROM vetoes v
                WHERE v.conversation_id = r.conversation_id AND v.lifted_at IS NULL))"""
# What was settled after the run of the call had ended, of the conversation of a run `r` before it.
SETTLED = """(SELECT json_agg(json_build_object('call', c, 'input', v.input, 'by', a.outcome->'settled_by')
                        ORDER BY a.ended_at)
   FROM approvals a JOIN calls c ON c.id = a.call_id
        JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision
  WHERE a.conversation_id = r.conversation_id AND a.run_id <> r.id AND a.outcome @> '{"late": true}')"""
# What people made of the input of a call `c`, and who did so last; a revision can also be the same input in
# another world. Compared with the first one and not with the model's, to which the schema adds defaults.
EDIT = "json_build_object('asked', c.input, 'edited', v.input, 'by', e.author)"
EDIT_FROM = """approvals a JOIN calls c ON c.id = a.call_id
   JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision
   JOIN revisions f ON f.approval_id = a.id AND f.revision = 1 AND f.input_hash <> v.input_hash
   CROSS JOIN LATERAL (
     SELECT s.author FROM revisions s JOIN revisions p ON p.approval_id = s.approval_id
                      AND p.revision = s.revision - 1 AND p.input_hash <> s.input_hash
      WHERE s.approval_id = a.id ORDER BY s.revision DESC LIMIT 1) e"""
# By call, in the conversation of a run `r`.
EDITED = f"""(SELECT json_object_agg(c.id, {EDIT}) FROM {EDIT_FROM}
  WHERE a.conversation_id = r.conversation_id)"""


def _moment(value: datetime | str) -> datetime:
    """A moment, also as it is written in JSON that the database made of a row."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _time(value: datetime | str | None) -> datetime | None:
    return None if value is None else _moment(value)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


class _Columns(dict[str, Any]):
    """A whole row as JSON: what it lacks is a column of another version's tables."""

    def __missing__(self, column: str) -> Any:
        raise NotMigrated(
            f"The database lacks what this version needs (column {column}): run `vistobueno migrate`."
        )


# The fields of a record that are in its row just as they are.
_RUN = _names("""id conversation_id seq agent task source_key state_version steps input_tokens output_tokens
  turn open_calls faults error answer""")
_CALL = _names("""id run_id turn position provider_id tool effect input rationale result measured attempts key
  repeatable only_reads output""")
_APPROVAL = _names("""id call_id run_id conversation_id revision version tool effect agent attempted replaces
  supersessions reason outcome""")
_MEASURED = _names("""input input_hash facts items_digest precondition preview preview_hash schema_hash""")


def requester(row: Row, name: str) -> Actor:
    """Who began the run: a person, or the operator."""
    if row["requester_user"] is None:
        return Actor("operator", name=name or "the operator")
    return Actor("person", row["requester_team"], row["requester_user"], name)


def run(row: Row) -> Run:
    """A row with RUN's columns, or the JSON of one; raises NotMigrated."""
    row = _Columns(row)
    return Run(
        **{name: row[name] for name in _RUN},
        status=RunStatus(row["status"]),
        requester=requester(row, row["requester_name"]),
        not_before=_time(row["not_before"]),
        started_at=_time(row["started_at"]),
        ended_at=_time(row["ended_at"]),
        created_at=_moment(row["created_at"]),
    )


def call(row: Row) -> Call:
    """A row with CALL's columns, or the JSON of one; raises NotMigrated."""
    row = _Columns(row)
    return Call(
        **{name: row[name] for name in _CALL},
        status=CallStatus(row["status"]),
        items=tuple(row["items"]),
        not_before=_time(row["not_before"]),
        first_attempt_at=_time(row["first_attempt_at"]),
        done_items=None if row["done_items"] is None else tuple(row["done_items"]),
        ended_at=_time(row["ended_at"]),
    )


def claimed(row: Row, token: str) -> ClaimedCall:
    """A row with CLAIMED's columns; the approval's is null for an allowed call."""
    asked = None if row["approval"] is None else approval(row)
    return ClaimedCall(call(row["call"]), run(row["run"]), token, asked)


def claimed_run(row: Row, token: str, ended: Call | None = None) -> ClaimedRun:
    """A row with a run as JSON, its conversation's columns, and HISTORY, read before `ended` was.

    SETTLED and EDITED are in it when a run begins to go on, and not when it goes on at the end of a call.
    """
    own, history = run(row["run"]), row["history"]
    calls = [call(c) for c in history["calls"] or ()]
    return ClaimedRun(
        own,
        Conversation(own.conversation_id, row["team_id"], row["channel_id"], row["thread_ts"]),
        token,
        (*(run(r) for r in history["earlier"] or ()), own),
        tuple(turn(t) for t in history["turns"] or ()),
        tuple(ended if ended is not None and c.id == ended.id else c for c in calls),
        tuple(veto(v) for v in history["vetoes"] or ()),
        tuple(settlement(s) for s in row.get("settled") or ()),
        {call_id: edited(e) for call_id, e in (row.get("edited") or {}).items()},
    )


def content(row: Row) -> Measured:
    """A row with CONTENT's columns, or the JSON that holds the same."""
    return Measured(**{name: row[name] for name in _MEASURED}, items=tuple(row["items"]))


def content_json(measured: Measured) -> dict[str, Any]:
    """The content as the statements take it, in `jsonb_to_recordset`'s columns."""
    return {**{name: getattr(measured, name) for name in _MEASURED}, "items": list(measured.items)}


def conversation(row: Row, id_column: str = "id") -> Conversation:
    """A row with a conversation's columns, its id under `id_column`."""
    return Conversation(row[id_column], row["team_id"], row["channel_id"], row["thread_ts"])


def actor(value: Any) -> Actor | None:
    """The actor in a jsonb column."""
    return None if value is None else Actor.from_json(value)


def approval(row: Row) -> Approval:
    """A row with APPROVAL's columns; raises NotMigrated."""
    own, shown = _Columns(row["approval"]), _Columns(row["revision"])
    return Approval(
        **_approvals_own(own),
        requester=requester(own, row["requester_name"]),
        replaced_by=row["replaced_by"],
        now=row["now"],
        shown=content(shown),
        author=actor(shown["author"]),
        original_input=row["original_input"],
        rationale=row["rationale"],
        provider_id=row["provider_id"],
        call_status=CallStatus(row["call_status"]),
        conversation=Conversation(
            own["conversation_id"], row["team_id"], row["channel_id"], row["thread_ts"]
        ),
    )


def decided(read: Approval, row: Row) -> Approval:
    """The approval after a step that returned DECIDED's columns, and the revision if it made one."""
    shown = row.get("revision")
    return replace(
        read,
        **_approvals_own(row["approval"]),
        now=row["now"],
        call_status=CallStatus(row["call_status"]),
        shown=content(shown) if shown else read.shown,
        author=actor(shown["author"]) if shown else read.author,
    )


def _approvals_own(own: Row) -> dict[str, Any]:
    """The fields that are in the approval's own row, but for the requester, whose name is in the run's."""
    return {
        **{name: own[name] for name in _APPROVAL},
        **_approvals_values(own),
        "expires_at": _moment(own["expires_at"]),
        "escalate_at": _time(own["escalate_at"]),
        "escalated_at": _time(own["escalated_at"]),
        "claim_by": _time(own["claim_by"]),
        "decided_at": _time(own["decided_at"]),
        "ended_at": _time(own["ended_at"]),
        "created_at": _moment(own["created_at"]),
    }


def _approvals_values(own: Row) -> dict[str, Any]:
    """The fields that hold more than a value, in a form that may be another version's."""
    try:
        return {
            "status": ApprovalStatus(own["status"]),
            "rule": Rule.from_json(own["rule"]),
            "votes": tuple(Vote(Actor.from_json(v["person"]), v["at"]) for v in own["votes"]),
            "decided_by": actor(own["decided_by"]),
        }
    except (TypeError, KeyError, ValueError) as error:
        raise WrittenByNewer(
            f"{own['id']} was written by another version of vistobueno, and this one cannot read it: "
            "run the newer one."
        ) from error


def readable(found: Iterable[Row]) -> list[Approval]:
    """Those of rows with APPROVAL's columns that this version can read: one that it cannot hides no other."""
    approvals = []
    for row in found:
        with contextlib.suppress(WrittenByNewer):
            approvals.append(approval(row))
    return approvals


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
        row["ts"],
        row["version"],
        row["shown"],
    )


def turn(row: Row) -> Turn:
    """A row of messages."""
    return Turn(row["run_id"], row["seq"], tuple(row["body"]), row["state_version"])


def settlement(row: Row) -> Settlement:
    """One of SETTLED."""
    return Settlement(call(row["call"]), row["input"], Actor.from_json(row["by"]))


def edited(row: Row) -> Edited:
    """An EDIT."""
    return Edited(row["asked"], row["edited"], Actor.from_json(row["by"]))


def veto(row: Row) -> Veto:
    """A row of vetoes."""
    return Veto(row["effect"], row["approval_id"], row["kind"], actor(row["denied_by"]), row["reason"])
