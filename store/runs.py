"""Runs and their conversations: started once, claimed by one worker, saved turn by turn, ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store import rows
from store.engine import Database
from store.errors import StatementRefused
from store.records import (
    SYSTEM,
    Actor,
    Approval,
    Call,
    ClaimedRun,
    Conversation,
    ConversationId,
    Json,
    Measured,
    Rule,
    Run,
    RunId,
)
from store.statements import runs as sql
from store.statements.fragments import STOPPED_BY, is_let_finish
from store.statements.leases import RECOVER_RUNS, RENEW
from store.transitions import OPEN_APPROVALS, quoted
from store.values import dump, new_id, text

STATE_VERSION = 1  # of the stored messages; each one has its golden file
UNIQUE_VIOLATION = "23505"
MOST_LOOKS = 20  # of a claim that others were quicker than, before it waits like one that found nothing


async def start(
    db: Database,
    *,
    team_id: str,
    channel_id: str,
    thread_ts: str | None,
    agent: str,
    task: str,
    requester: Actor,
    source_key: str,
) -> tuple[Run, bool]:
    """Queue a run, once for each `source_key`; returns it and whether it is new."""
    params = {
        "conversation": new_id("conv"),
        "run": new_id("run"),
        "team": team_id,
        "channel": channel_id,
        "thread": thread_ts,
        "agent": agent,
        "task": text(task),
        "requester_team": requester.team_id,
        "requester_user": requester.user_id,
        "requester_name": text(requester.name),
        "source_key": text(source_key),
        "state_version": STATE_VERSION,
        "actor": dump(requester.to_json()),
    }
    made, [found] = await db.together(
        (sql.START_WITHOUT_THREAD if thread_ts is None else sql.START_IN_THREAD, params),
        (f"SELECT {rows.RUN} FROM runs r WHERE r.source_key = %s", [text(source_key)]),
    )
    return rows.run(found), bool(made)


async def claim(db: Database, *, token: str, worker: str, lease: float) -> RunId | None:
    """Take the oldest run that may go on, for `lease` seconds; None: there is none."""
    params = {"token": token, "worker": worker, "lease": lease, "actor": dump(SYSTEM.to_json())}
    for _ in range(MOST_LOOKS):
        try:
            row = await db.one(sql.CLAIM_RUN, params)
        except StatementRefused as error:
            if error.sqlstate == UNIQUE_VIOLATION:  # another run of the conversation has just been started
                continue  # which the next look sees
            raise
        return None if row is None else RunId(row["id"])
    return None


_LOAD = f"""SELECT to_json(r) AS run, n.team_id, n.channel_id, n.thread_ts, {rows.HISTORY} AS history,
       {rows.SETTLED} AS settled, {rows.EDITED} AS edited
  FROM runs r JOIN conversations n ON n.id = r.conversation_id WHERE r.id = %s"""


async def load(db: Database, run_id: RunId, token: str) -> ClaimedRun:
    """All that the holder of a run needs to go on with it."""
    row = await db.one(_LOAD, [run_id])
    assert row is not None, run_id
    return rows.claimed_run(row, token)


async def save_turn(
    db: Database,
    claimed: ClaimedRun,
    *,
    body: Sequence[Json],
    calls: Sequence[dict[str, Any]],
    input_tokens: int,
    output_tokens: int,
) -> list[Call] | None:
    """Store a turn and its calls, as proposed, and return these. None: the run is no longer this worker's.

    `calls`: {"id", "position", "provider_id", "tool", "effect", "input", "rationale"} each.
    """
    params = {
        "run": claimed.run.id,
        "token": claimed.token,
        "turn": claimed.run.turn,
        "open_calls": len(calls),
        "body": dump(list(body)),
        "calls": dump(list(calls)),
        "state_version": STATE_VERSION,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "actor": dump(Actor("model", name=claimed.run.agent).to_json()),
    }
    made = await db.query(sql.SAVE_TURN, params)
    return [rows.call(row["call"]) for row in made if row["call"] is not None] if made else None


@dataclass(frozen=True)
class Outcome:
    """A call's verdict: its new status, and its result unless it stays open."""

    call_id: str
    status: str
    result: Json = None
    measured: Json = None
    items: tuple[str, ...] = ()
    effect: str | None = None


@dataclass(frozen=True)
class NewApproval:
    """An approval to be asked for, with the first revision's content and where its card goes."""

    id: str
    call_id: str
    tool: str
    effect: str
    rule: Rule
    content: Measured
    team_id: str
    replaces: str | None = None
    supersessions: int = 0

    def to_json(self) -> dict[str, Json]:
        """As the statements take it; its card is new."""
        return {
            "id": self.id,
            "call_id": self.call_id,
            "tool": self.tool,
            "effect": self.effect,
            "rule": self.rule.to_json(),
            "replaces": self.replaces,
            "supersessions": self.supersessions,
            "card": new_id("card"),
            "team_id": self.team_id,
            **rows.content_json(self.content),
        }


async def propose(
    db: Database,
    claimed: ClaimedRun,
    outcomes: Sequence[Outcome],
    approvals: Sequence[NewApproval],
    *,
    notices: Sequence[dict[str, Any]],
    events: Sequence[dict[str, Any]],
    pause: bool,
) -> bool:
    """Record verdicts, all in one statement; with `pause` the run ends here and waits.

    False: the run is no longer this worker's, or a call was not as it was; nothing is changed.
    """
    row = await db.one(
        sql.PROPOSE,
        {
            "run": claimed.run.id,
            "token": claimed.token,
            "outcomes": dump(
                [
                    {
                        "id": o.call_id,
                        "status": o.status,
                        "result": o.result,
                        "effect": o.effect,
                        "measured": o.measured,
                        "items": list(o.items),
                    }
                    for o in outcomes
                ]
            ),
            "closed": sum(o.result is not None for o in outcomes),
            "pause": pause,
            "approvals": dump([approval.to_json() for approval in approvals]),
            "notices": dump(list(notices)),
            "events": dump(list(events)),
        },
    )
    return row is not None


async def complete(
    db: Database,
    claimed: ClaimedRun,
    *,
    body: Sequence[Json],
    answer: str,
    input_tokens: int,
    output_tokens: int,
    exhausted: bool = False,
) -> bool:
    """The run ends with the model's last words; False: it is no longer this worker's, or a call is open."""
    row = await db.one(
        sql.EXHAUST_RUN if exhausted else sql.COMPLETE_RUN,
        {
            "run": claimed.run.id,
            "token": claimed.token,
            "body": dump(list(body)),
            "answer": text(answer),
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "state_version": STATE_VERSION,
            "actor": dump(Actor("model", name=claimed.run.agent).to_json()),
        },
    )
    return row is not None


async def fail(
    db: Database, claimed: ClaimedRun, error: str, cancelled: Json, *, why_json: Json = None
) -> bool:
    """The run ends without an answer; `cancelled` is the result of its calls that were not begun.

    `why_json` is the same as `error`, for those who read it in other words.
    """
    row = await db.one(
        sql.FAIL_RUN,
        {
            "run": claimed.run.id,
            "token": claimed.token,
            "error": text(error),
            "why_json": dump(why_json),
            "cancelled": dump(cancelled),
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


async def requeue(db: Database, claimed: ClaimedRun, *, seconds: float, why: str, fault: bool) -> bool:
    """Back in the queue, not before so many seconds; `fault` counts as a transient one."""
    row = await db.one(
        sql.REQUEUE_RUN,
        {
            "run": claimed.run.id,
            "token": claimed.token,
            "seconds": seconds,
            "faults": int(fault),
            "why": text(why),
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


async def pause(db: Database, claimed: ClaimedRun) -> bool:
    """The turn has something open that is not this worker's to close: the run waits."""
    params = {"run": claimed.run.id, "token": claimed.token, "actor": dump(SYSTEM.to_json())}
    return await db.one(sql.PAUSE_RUN, params) is not None


async def retry(db: Database, run_id: str, actor: Actor) -> bool:
    """A failed run goes on from its last turn; False: it is not failed, or its conversation is busy."""
    try:
        params = {"run": run_id, "actor": dump(actor.to_json())}
        return await db.one(sql.RETRY_RUN, params) is not None
    except StatementRefused as error:
        if error.sqlstate == UNIQUE_VIOLATION:
            return False
        raise


async def cancel(db: Database, run_id: str, actor: Actor, cancelled: Json, why_json: Json = None) -> bool:
    """Stop a run: what waits is cancelled, what executes is let finish. False: it had ended.

    `why_json` says why what was attempted is tried no more, for those who read it in other words.
    """
    return await db.one(sql.CANCEL_RUN, _stopping(run_id, actor, cancelled, why_json)) is not None


async def stopped_by(db: Database, run_id: str) -> Actor | None:
    """Who stopped the run; None: nobody did, or that is not known."""
    row = await db.one(f"SELECT {STOPPED_BY.format(run='%s::text')} AS by", [run_id])
    return None if row is None or row["by"] is None else Actor.from_json(row["by"])


def _stopping(run_id: str, actor: Actor, cancelled: Json, why_json: Json) -> dict[str, Any]:
    return {
        "run": run_id,
        "actor": dump(actor.to_json()),
        "cancelled": dump(cancelled),
        "stopped": "The run was stopped before it could be tried again.",
        "why_json": dump(why_json),
    }


async def stop_released(db: Database, cancelled: Json, why_json: Json = None) -> int:
    """Close what was given back to runs that had been stopped: cancelled, or unknown if it was attempted."""
    found = await db.query(
        """SELECT a.run_id FROM approvals a JOIN runs r ON r.id = a.run_id
  WHERE a.status = 'approved' AND r.status = 'cancelled'
UNION SELECT c.run_id FROM calls c JOIN runs r ON r.id = c.run_id
  WHERE c.status = 'allowed' AND c.attempts = 0 AND r.status = 'cancelled'"""
    )
    closed = [
        await db.one(sql.CANCEL_LEFT, _stopping(row["run_id"], SYSTEM, cancelled, why_json)) is not None
        for row in found
    ]
    return sum(closed)


async def renew(db: Database, tokens: Sequence[str], lease: float) -> frozenset[str]:
    """Renew the leases of these tokens; returns those that are still held."""
    found = await db.query(RENEW, {"tokens": list(tokens), "lease": lease})
    return frozenset(row["token"] for row in found)


async def recover(db: Database) -> list[str]:
    """Queue the runs whose workers are gone; returns their ids."""
    found = await db.query(RECOVER_RUNS, {"actor": dump(SYSTEM.to_json())})
    return [row["id"] for row in found]


async def read(db: Database, run_id: str) -> Run | None:
    """The run, or None."""
    row = await db.one(f"SELECT {rows.RUN} FROM runs r WHERE r.id = %s", [text(run_id)])
    return None if row is None else rows.run(row)


async def read_conversation(db: Database, conversation_id: ConversationId) -> Conversation:
    """The conversation as it is now."""
    row = await db.one("SELECT * FROM conversations WHERE id = %s", [conversation_id])
    assert row is not None, conversation_id
    return rows.conversation(row)


async def listed(db: Database, *, unfinished_only: bool, limit: int, offset: int = 0) -> list[Run]:
    """Runs, the newest first."""
    where = "WHERE r.status IN ('queued', 'running', 'awaiting_approval')" if unfinished_only else ""
    found = await db.query(
        f"SELECT {rows.RUN} FROM runs r {where} ORDER BY r.created_at DESC, r.id LIMIT %s OFFSET %s",
        [limit, offset],
    )
    return [rows.run(row) for row in found]


async def in_the_way(db: Database, run_id: str) -> tuple[Run, list[Approval]] | None:
    """The earlier run that a queued one waits for, and its open approvals; None: it waits for nobody."""
    row = await db.one(
        f"""SELECT {rows.RUN} FROM runs r JOIN runs q ON q.conversation_id = r.conversation_id
  WHERE q.id = %s AND q.status = 'queued' AND q.started_at IS NULL AND r.seq < q.seq
    AND (r.status IN ('queued', 'running', 'awaiting_approval') OR {is_let_finish("r")})
  ORDER BY r.seq LIMIT 1""",
        [run_id],
    )
    if row is None:
        return None
    found = await db.query(
        f"""SELECT {rows.APPROVAL} FROM {rows.APPROVAL_FROM}
  WHERE a.run_id = %s AND a.status IN ({quoted(OPEN_APPROVALS)}) ORDER BY a.created_at, c.position""",
        [row["id"]],
    )
    return rows.run(row), [rows.approval(r) for r in found]
