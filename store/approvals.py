"""Approvals: read, decided, edited, expired, escalated. Every decision is one conditional statement."""

from collections.abc import Collection, Sequence
from typing import Any

from store import audit, rows
from store.engine import Database
from store.records import (
    SYSTEM,
    Actor,
    Approval,
    Draft,
    Edited,
    Json,
    Measured,
    Overlap,
    Veto,
    Vote,
)
from store.statements import decisions as sql
from store.statements.executing import GIVE_UP_REPEATS
from store.transitions import OPEN_APPROVALS, ApprovalStatus, quoted
from store.values import dump, new_id, text

_SELECT = f"SELECT {rows.APPROVAL} FROM {rows.APPROVAL_FROM}"
STUCK = "approval.look_stuck"
_STUCK = f"""EXISTS (SELECT FROM audit_events e WHERE e.run_id = a.run_id AND e.approval_id = a.id
                      AND e.kind = '{STUCK}' AND e.at > house_now() - interval '1 hour')"""
OF_CALL = f"{_SELECT} WHERE a.call_id = %s"
_OLDEST_FIRST = "ORDER BY a.created_at, c.position"
OF_RUN = f"{_SELECT} WHERE a.run_id = %s {_OLDEST_FIRST}"


async def read(db: Database, approval_id: str) -> Approval | None:
    """The approval with its current revision, or None."""
    row = await db.one(f"{_SELECT} WHERE a.id = %s", [text(approval_id)])
    return None if row is None else rows.approval(row)


async def of_call(db: Database, call_id: str) -> Approval | None:
    """The approval of a call, or None: it was allowed."""
    row = await db.one(OF_CALL, [call_id])
    return None if row is None else rows.approval(row)


async def of_run(db: Database, run_id: str) -> list[Approval]:
    """A run's approvals, the oldest first."""
    found = await db.query(OF_RUN, [run_id])
    return [rows.approval(row) for row in found]


async def read_edit(db: Database, approval_id: str) -> Edited | None:
    """What people made of what the model had asked for; None: they left it as it was."""
    row = await db.one(f"SELECT {rows.EDIT} AS edit FROM {rows.EDIT_FROM} WHERE a.id = %s", [approval_id])
    return None if row is None else rows.edited(row["edit"])


# --- lists ---

_FOR_PERSON = """(a.status = 'unknown' OR (a.status = 'pending' AND a.expires_at > house_now()
       AND NOT EXISTS (SELECT FROM jsonb_array_elements(a.votes) AS vote
                        WHERE vote->'person'->>'user' = %(user)s AND vote->'person'->>'team' = %(team)s)))
  AND (a.rule->'approvers' ?| %(roles)s
       OR (a.escalated_at IS NOT NULL AND a.rule->'escalate_to' ?| %(roles)s))
  AND NOT ((a.rule->>'four_eyes')::boolean AND a.requester_user IS NOT NULL
           AND a.requester_user = %(user)s AND a.requester_team = %(team)s)"""


async def waiting_for(
    db: Database, *, team_id: str, user_id: str, roles: Collection[str], limit: int, offset: int = 0
) -> list[Approval]:
    """What waits for this person to decide it, or to say whether it ran, the oldest first.

    Four eyes and given votes are left out.
    """
    params = {"team": team_id, "user": user_id, "roles": sorted(roles), "limit": limit, "offset": offset}
    found = await db.query(
        f"{_SELECT} WHERE {_FOR_PERSON} {_OLDEST_FIRST} LIMIT %(limit)s OFFSET %(offset)s", params
    )
    return [rows.approval(row) for row in found]


async def count_waiting_for(db: Database, *, team_id: str, user_id: str, roles: Collection[str]) -> int:
    """How many wait for this person's say."""
    params = {"team": team_id, "user": user_id, "roles": sorted(roles)}
    row = await db.one(f"SELECT count(*) AS n FROM approvals a WHERE {_FOR_PERSON}", params)
    return int(row["n"]) if row else 0


_WAITING = "a.status IN ('pending', 'unknown')"
_REQUESTED = "AND a.requester_team = %s AND a.requester_user = %s"


async def waiting_all(
    db: Database, *, requester: Actor | None = None, limit: int, offset: int = 0
) -> list[Approval]:
    """All that wait for somebody to decide them, or to say whether they ran, the oldest first.

    With `requester` those that this person asked for.
    """
    who = [] if requester is None else [requester.team_id, requester.user_id]
    found = await db.query(
        f"{_SELECT} WHERE {_WAITING} {_REQUESTED if who else ''} {_OLDEST_FIRST} LIMIT %s OFFSET %s",
        [*who, limit, offset],
    )
    return [rows.approval(row) for row in found]


async def count_waiting(db: Database, *, requester: Actor | None = None) -> int:
    """How many `waiting_all` would give without a limit."""
    who = [] if requester is None else [requester.team_id, requester.user_id]
    row = await db.one(
        f"SELECT count(*) AS n FROM approvals a WHERE {_WAITING} {_REQUESTED if who else ''}", who
    )
    return int(row["n"]) if row else 0


async def pending_all(db: Database, *, limit: int, offset: int = 0) -> list[Approval]:
    """All that wait for somebody's say, the oldest first."""
    found = await db.query(
        f"{_SELECT} WHERE a.status = 'pending' {_OLDEST_FIRST} LIMIT %s OFFSET %s", [limit, offset]
    )
    return [rows.approval(row) for row in found]


async def pending_after(db: Database, after_id: str, *, limit: int) -> list[Approval]:
    """Those that wait for somebody's say and whose ids are greater than `after_id`, by id.

    Without those at whose look a worker has got stuck within the last hour.
    """
    return await _readable(db, f"a.status = 'pending' AND NOT {_STUCK}", limit, after_id)


async def got_stuck(db: Database, approval: Approval, worker: str) -> None:
    """Record that a worker is stuck while it looks at an approval that waits."""
    await audit.append(
        db,
        kind=STUCK,
        actor=SYSTEM,
        run_id=approval.run_id,
        approval_id=approval.id,
        call_id=approval.call_id,
        data={"worker": worker},
    )


async def _readable(db: Database, where: str, limit: int, after_id: str = "") -> list[Approval]:
    """The next ones by id that this version can read: a whole page that it cannot hides none behind it."""
    query = f"{_SELECT} WHERE ({where}) AND a.id > %s ORDER BY a.id LIMIT %s"
    while found := await db.query(query, [after_id, limit]):
        readable = rows.readable(found)
        if readable:
            return readable
        after_id = found[-1]["approval"]["id"]
    return []


async def count_pending(db: Database) -> int:
    """How many wait for somebody's say."""
    row = await db.one("SELECT count(*) AS n FROM approvals WHERE status = 'pending'")
    return int(row["n"]) if row else 0


async def listed(db: Database, *, open_only: bool, limit: int, offset: int = 0) -> list[Approval]:
    """Approvals, the newest first."""
    where = f"WHERE a.status IN ({quoted(OPEN_APPROVALS)})" if open_only else ""
    found = await db.query(
        f"{_SELECT} {where} ORDER BY a.created_at DESC, c.position LIMIT %s OFFSET %s", [limit, offset]
    )
    return [rows.approval(row) for row in found]


async def overlaps(db: Database, approval: Approval) -> list[Overlap]:
    """Other open approvals of the same effect with some of the same items, the oldest first."""
    found = await db.query(
        f"""SELECT a.id, a.status, ARRAY(SELECT unnest(v.items) INTERSECT SELECT unnest(%(items)s::text[])
                              ORDER BY 1) AS items
  FROM approvals a JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision
 WHERE a.status IN ({quoted(OPEN_APPROVALS)}) AND a.effect = %(effect)s AND a.id <> %(id)s
   AND v.items && %(items)s::text[] ORDER BY a.created_at""",
        {"items": list(approval.shown.items), "effect": approval.effect, "id": approval.id},
    )
    return [Overlap(row["id"], ApprovalStatus(row["status"]), tuple(row["items"])) for row in found]


async def earlier_refusal(db: Database, approval: Approval) -> Veto | None:
    """The last refusal of this effect in the conversation that a new message lifted, if there was one."""
    row = await db.one(
        """SELECT effect, approval_id, kind, denied_by, reason FROM vetoes
 WHERE conversation_id = %s AND effect = %s AND lifted_at <= %s ORDER BY id DESC LIMIT 1""",
        [approval.conversation_id, approval.effect, approval.created_at],
    )
    return None if row is None else rows.veto(row)


async def replaceable(db: Database, run_id: str, tool: str) -> list[Approval]:
    """The run's superseded approvals of this tool that nothing replaces yet, those of the last turn first."""
    found = await db.query(
        f"""{_SELECT} WHERE a.run_id = %s AND a.tool = %s AND a.status = 'superseded'
  AND NOT EXISTS (SELECT FROM approvals b WHERE b.replaces = a.id) ORDER BY c.turn DESC, c.position""",
        [run_id, tool],
    )
    return [rows.approval(row) for row in found]


# --- decisions ---


def _decision(approval: Approval, actor: Actor, verdict: str, reason: str | None) -> dict[str, Any]:
    return {
        "approval": approval.id,
        "revision": approval.revision,
        "version": approval.version,
        "verdict": verdict,
        "team": actor.team_id,
        "user": actor.user_id,
        "name": text(actor.name),
        "role": actor.role,
        "reason": None if reason is None else text(reason),
        "actor": dump(actor.to_json()),
        "click": None,
    }


def _votes(votes: Sequence[Vote]) -> str | None:
    return dump([vote.to_json() for vote in votes])


async def _decide(
    db: Database, statement: str, approval: Approval, params: dict[str, Any]
) -> Approval | None:
    """Run a conditional statement on the approval as it was read; returns what it made of it."""
    row = await db.one(statement, params)
    return None if row is None else rows.decided(approval, row)


async def vote(
    db: Database, approval: Approval, actor: Actor, votes: Sequence[Vote], reason: str | None
) -> Approval | None:
    """Add a vote that is not enough yet. None: the approval is no longer as it was read, nothing changed."""
    params = _decision(approval, actor, "approve", reason) | {"votes": _votes(votes)}
    return await _decide(db, sql.VOTE, approval, params)


async def approve(
    db: Database, approval: Approval, actor: Actor, votes: Sequence[Vote], reason: str | None
) -> Approval | None:
    """Approve with the last vote needed. None: the approval is no longer as it was read, nothing changed."""
    params = _decision(approval, actor, "approve", reason) | {"votes": _votes(votes)}
    return await _decide(db, sql.APPROVE, approval, params)


async def reject(
    db: Database, approval: Approval, actor: Actor, reason: str, *, result: Json, veto: bool
) -> Approval | None:
    """Reject: the call is closed with `result`, its effect vetoed. None: as for `approve`."""
    params = _decision(approval, actor, "reject", reason) | {"result": dump(result), "veto": veto}
    return await _decide(db, sql.REJECT, approval, params)


async def save_draft(db: Database, approval: Approval, author: Actor, content: Measured) -> Draft:
    """Store a previewed edit of the current revision."""
    values = rows.content_json(content)
    row = await db.one(
        sql.SAVE_DRAFT,
        {
            **{
                k: dump(v) if k in {"input", "facts", "precondition", "preview", "items"} else v
                for k, v in values.items()
            },
            "id": new_id("drf"),
            "approval": approval.id,
            "revision": approval.revision,
            "actor": dump(author.to_json()),
        },
    )
    assert row is not None
    return rows.draft(row)


async def read_draft(db: Database, draft_id: str) -> Draft | None:
    """The draft, or None."""
    row = await db.one("SELECT * FROM drafts WHERE id = %s", [text(draft_id)])
    return None if row is None else rows.draft(row)


async def draft_of(db: Database, approval: Approval, author: Actor) -> Draft | None:
    """The last edit of the current revision that this person previewed and did not confirm, or None."""
    row = await db.one(
        """SELECT * FROM drafts
 WHERE approval_id = %s AND base_revision = %s AND confirmed_as IS NULL
   AND author->>'team' = %s AND author->>'user' = %s
 ORDER BY created_at DESC, id DESC LIMIT 1""",
        [approval.id, approval.revision, author.team_id, author.user_id],
    )
    return None if row is None else rows.draft(row)


async def confirm_draft(
    db: Database,
    approval: Approval,
    draft: Draft,
    actor: Actor,
    votes: Sequence[Vote],
    reason: str | None,
    *,
    approved: bool,
) -> Approval | None:
    """Make the draft the next revision; `approved`: the editor's vote is enough. None: others were first."""
    params = _decision(approval, actor, "edit", reason) | {"votes": _votes(votes), "draft": draft.id}
    statement = sql.EDIT_AND_APPROVE if approved else sql.EDIT_AND_VOTE
    return await _decide(db, statement, approval, params)


async def withdraw(db: Database, approval: Approval, *, result: Json, outcome: Json) -> bool:
    """Supersede a pending one that can no longer run; False: it is no longer as it was read, or is due."""
    row = await db.one(
        sql.WITHDRAW,
        {
            "approval": approval.id,
            "revision": approval.revision,
            "version": approval.version,
            "result": dump(result),
            "outcome": dump(outcome),
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


# --- the clock ---


async def due(db: Database, *, limit: int = 50) -> list[Approval]:
    """Pending ones past their deadline, and approved ones never claimed in time."""
    is_due = """(a.status = 'pending' AND a.expires_at <= house_now())
  OR (a.status = 'approved' AND NOT a.attempted AND a.claim_by <= house_now())"""
    return await _readable(db, is_due, limit)


async def expire(
    db: Database,
    approval: Approval,
    *,
    result: Json,
    reason: str,
    people: Sequence[tuple[str, str]],
) -> bool:
    """Expire a due approval, veto its effect, tell `people` (team, user).

    False: it was not due any more, or has another revision by now.
    """
    pending = approval.status is ApprovalStatus.PENDING
    row = await db.one(
        sql.EXPIRE if pending else sql.LAPSE,
        {
            "approval": approval.id,
            "revision": approval.revision,
            "result": dump(result),
            "reason": reason,
            "veto": pending,
            "people": dump([{"team_id": team, "user_id": user} for team, user in people]),
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


async def to_escalate(db: Database, *, limit: int = 50) -> list[Approval]:
    """Those of which it is time to ask further people to decide them, or to say whether they ran."""
    return await _readable(db, f"a.escalated_at IS NULL AND {sql.IS_TO_ESCALATE}", limit)


async def escalate(db: Database, approval: Approval, people: Sequence[tuple[str, str]]) -> bool:
    """Ask further people (team, user), each with a copy of the card in a DM; False: somebody did already."""
    cards = [{"id": new_id("card"), "team_id": team, "user_id": user} for team, user in people]
    row = await db.one(
        sql.ESCALATE,
        {"approval": approval.id, "cards": dump(cards), "actor": dump(SYSTEM.to_json())},
    )
    return row is not None


async def give_up_repeats(db: Database, why: str, why_json: Json = None) -> list[str]:
    """Approved ones whose first attempt is more than 24 h ago become unknown; returns their ids."""
    params = {"why": why, "why_json": dump(why_json), "actor": dump(SYSTEM.to_json())}
    found = await db.query(GIVE_UP_REPEATS, params)
    return [row["id"] for row in found]
