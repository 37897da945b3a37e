"""What people and the clock decide: votes, approvals, rejections, edits, expiries."""

from store import rows
from store.statements.fragments import (
    CARDS_FOLLOW,
    NOTIFY,
    close_in_run,
    event,
    record,
)

_DECISION = """decision AS (
  INSERT INTO decisions (approval_id, revision, verdict, team_id, user_id, name, role, reason)
  SELECT approval.id, approval.revision, %(verdict)s, %(team)s, %(user)s, %(name)s, %(role)s, %(reason)s
    FROM approval)"""

# Guards of a decision: the status, the revision, the row it was reckoned from, and the deadline.
_STANDS = """a.id = %(approval)s AND a.status = 'pending' AND a.revision = %(revision)s
     AND a.version = %(version)s AND a.expires_at > house_now()"""

_DECISION_DATA = (
    "jsonb_build_object('revision', a.revision, 'input_hash', v.input_hash,"
    " 'preview_hash', v.preview_hash, 'reason', %(reason)s::text, 'click', %(click)s::jsonb)"
)


def _recorded(kind: str) -> str:
    return record("a.run_id", event(f"'{kind}'", _DECISION_DATA, "a.id", "a.call_id"))


VOTE = f"""
WITH approval AS (
  UPDATE approvals a SET votes = %(votes)s::jsonb, version = a.version + 1
   WHERE {_STANDS}
  RETURNING {rows.CHANGED_APPROVAL}),
{_DECISION},
{CARDS_FOLLOW}
SELECT {rows.DECIDED}, {_recorded("approval.voted")}, {NOTIFY}
  FROM {rows.decided_from()}"""

APPROVE = f"""
WITH approval AS (
  UPDATE approvals a SET status = 'approved', votes = %(votes)s::jsonb, version = a.version + 1,
         decided_at = house_now(), decided_by = %(actor)s::jsonb, reason = %(reason)s,
         claim_by = house_now() + make_interval(secs => (a.rule->>'claim_within')::float)
   WHERE {_STANDS}
  RETURNING {rows.CHANGED_APPROVAL}),
{_DECISION},
{CARDS_FOLLOW}
SELECT {rows.DECIDED}, {_recorded("approval.approved")}, {NOTIFY}
  FROM {rows.decided_from()}"""

_CLOSED_CALL = """call AS (
  UPDATE calls c SET status = '{status}', result = %(result)s::jsonb, ended_at = house_now()
    FROM approval WHERE c.id = approval.call_id RETURNING c.id, c.run_id, c.status)"""

_VETO = """veto AS (
  INSERT INTO vetoes (conversation_id, effect, approval_id, kind, denied_by, reason)
  SELECT approval.conversation_id, approval.effect, approval.id, '{kind}', {by}, %(reason)s
    FROM approval WHERE %(veto)s
  ON CONFLICT (conversation_id, effect) WHERE lifted_at IS NULL DO NOTHING)"""

REJECT = f"""
WITH approval AS (
  UPDATE approvals a SET status = 'rejected', version = a.version + 1, decided_at = house_now(),
         decided_by = %(actor)s::jsonb, reason = %(reason)s, ended_at = house_now()
   WHERE {_STANDS}
  RETURNING {rows.CHANGED_APPROVAL}),
{_DECISION},
{_CLOSED_CALL.format(status="rejected")},
{_VETO.format(kind="rejected", by="%(actor)s::jsonb")},
{close_in_run()},
{CARDS_FOLLOW}
SELECT {rows.DECIDED}, {_recorded("approval.rejected")}, {NOTIFY}
  FROM {rows.decided_from("call")} JOIN run ON run.id = a.run_id"""


# An edit as its author will see it previewed: it decides nothing.
SAVE_DRAFT = f"""
WITH draft AS (
  INSERT INTO drafts (id, approval_id, base_revision, author, input, input_hash, facts, items, items_digest,
                      precondition, preview, preview_hash, schema_hash)
  SELECT %(id)s, %(approval)s, %(revision)s, %(actor)s::jsonb, %(input)s::jsonb, %(input_hash)s,
         %(facts)s::jsonb, ARRAY(SELECT jsonb_array_elements_text(%(items)s::jsonb)), %(items_digest)s,
         %(precondition)s::jsonb, %(preview)s::jsonb, %(preview_hash)s, %(schema_hash)s
  RETURNING *)
SELECT draft.*, {
    record(
        "approval.run_id",
        event(
            "'approval.drafted'",
            "jsonb_build_object('draft', draft.id, 'base_revision', draft.base_revision,"
            " 'input_hash', draft.input_hash, 'preview_hash', draft.preview_hash)",
            "approval.id",
            "approval.call_id",
        ),
    )
}
  FROM draft JOIN approvals approval ON approval.id = draft.approval_id"""


def _confirm_draft(approved: bool) -> str:
    """The draft becomes the next revision, old votes are void, and the editor's vote may be enough."""
    decided = (
        """status = 'approved', decided_at = house_now(), decided_by = %(actor)s::jsonb,
         claim_by = house_now() + make_interval(secs => (a.rule->>'claim_within')::float),"""
        if approved
        else ""
    )
    data = (
        "jsonb_build_object('revision', a.revision, 'draft', %(draft)s::text,"
        " 'input_hash', v.input_hash, 'preview_hash', v.preview_hash, 'reason', %(reason)s::text)"
    )
    kinds = ["'approval.edited'", "'approval.approved'" if approved else "'approval.voted'"]
    events = [event(kind, data, "a.id", "a.call_id") for kind in kinds]
    return f"""
WITH draft AS (SELECT * FROM drafts WHERE id = %(draft)s AND confirmed_as IS NULL),
approval AS (
  UPDATE approvals a SET {decided} revision = a.revision + 1, version = a.version + 1,
         votes = %(votes)s::jsonb
    FROM draft WHERE {_STANDS} AND draft.approval_id = a.id AND draft.base_revision = a.revision
  RETURNING {rows.CHANGED_APPROVAL}),
confirmed AS (
  UPDATE drafts d SET confirmed_as = approval.revision FROM approval WHERE d.id = %(draft)s),
revision AS (
  INSERT INTO revisions (approval_id, revision, input, input_hash, facts, items, items_digest, precondition,
                         preview, preview_hash, schema_hash, author)
  SELECT approval.id, approval.revision, d.input, d.input_hash, d.facts, d.items, d.items_digest,
         d.precondition, d.preview, d.preview_hash, d.schema_hash, d.author
    FROM approval, draft d
  RETURNING *),
{_DECISION},
{CARDS_FOLLOW}
SELECT {rows.DECIDED}, to_json(v) AS revision, {record("a.run_id", *events)}, {NOTIFY}
  FROM {rows.decided_from(revision="revision")}"""


EDIT_AND_VOTE, EDIT_AND_APPROVE = _confirm_draft(False), _confirm_draft(True)

_EXPIRED_DATA = "jsonb_build_object('why', %(reason)s::text)"


def _expire(status: str, due: str) -> str:
    """Silence: the run is told, the effect is vetoed, and those to be told get a DM."""
    return f"""
WITH approval AS (
  UPDATE approvals a SET status = 'expired', version = a.version + 1, ended_at = house_now()
   WHERE a.id = %(approval)s AND a.status = '{status}' AND a.revision = %(revision)s
     AND NOT a.attempted AND {due}
  RETURNING a.id, a.run_id, a.call_id, a.revision, a.version, a.conversation_id, a.effect),
{_CLOSED_CALL.format(status="expired")},
{_VETO.format(kind="expired", by="NULL")},
{close_in_run()},
{CARDS_FOLLOW},
notice AS (
  INSERT INTO notices (dedupe_key, team_id, user_id, kind, data)
  SELECT 'expired:' || approval.id || ':' || p.user_id, p.team_id, p.user_id, 'approval_expired',
         jsonb_build_object('approval_id', approval.id)
    FROM approval, jsonb_to_recordset(%(people)s::jsonb) AS p(team_id text, user_id text)
  ON CONFLICT (dedupe_key) DO NOTHING)
SELECT approval.id,
       {
        record(
            "approval.run_id",
            event("'approval.expired'", _EXPIRED_DATA, "approval.id", "approval.call_id"),
        )
    },
       {NOTIFY}
  FROM approval JOIN run ON run.id = approval.run_id"""


EXPIRE = _expire("pending", "a.expires_at <= house_now()")
LAPSE = _expire("approved", "a.claim_by <= house_now()")

# The house has changed while people were asked: the run is told, and nobody need decide it any more.
WITHDRAW = f"""
WITH approval AS (
  UPDATE approvals a SET status = 'superseded', version = a.version + 1, ended_at = house_now(),
         outcome = %(outcome)s::jsonb
   WHERE {_STANDS}
  RETURNING a.id, a.run_id, a.call_id, a.version),
{_CLOSED_CALL.format(status="superseded")},
{close_in_run()},
{CARDS_FOLLOW}
SELECT approval.id,
       {
    record(
        "approval.run_id",
        event("'call.superseded'", "%(outcome)s::jsonb", "approval.id", "approval.call_id"),
    )
},
       {NOTIFY}
  FROM approval JOIN run ON run.id = approval.run_id"""

IS_TO_ESCALATE = """(
       (a.status = 'pending' AND a.escalate_at <= house_now() AND a.expires_at > house_now())
       OR (a.status = 'unknown' AND house_now() >= (a.outcome->>'since')::timestamptz
                                    + make_interval(secs => (a.rule->>'escalate_after')::float)))"""

# Further people are asked: each gets a copy of the card in a DM.
ESCALATE = f"""
WITH approval AS (
  UPDATE approvals a SET escalated_at = house_now(), version = a.version + 1
   WHERE a.id = %(approval)s AND a.escalated_at IS NULL
     AND (a.status = 'unknown' OR (a.status = 'pending' AND a.expires_at > house_now()))
  RETURNING a.id, a.run_id, a.call_id, a.version),
copy AS (
  INSERT INTO cards (id, approval_id, team_id, user_id, wanted_version)
  SELECT k.id, approval.id, k.team_id, k.user_id, approval.version
    FROM approval, jsonb_to_recordset(%(cards)s::jsonb) AS k(id text, team_id text, user_id text)
  RETURNING user_id),
{CARDS_FOLLOW}
SELECT approval.id,
       {
    record(
        "approval.run_id",
        event(
            "'approval.escalated'",
            "jsonb_build_object('to', (SELECT jsonb_agg(user_id) FROM copy))",
            "approval.id",
            "approval.call_id",
        ),
    )
},
       {NOTIFY}
  FROM approval"""
