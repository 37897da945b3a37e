"""Calls on their way to their effect: claimed with a lease, attempted, finished under the claim's token."""

from collections.abc import Sequence
from typing import Any

from store import rows, runs
from store.engine import Database
from store.errors import ItemsHeld, StatementRefused, WrittenByNewer
from store.records import SYSTEM, Actor, Call, ClaimedCall, Ended, Json
from store.runs import MOST_LOOKS, UNIQUE_VIOLATION, NewApproval
from store.statements import executing as sql
from store.statements import settling
from store.statements.fragments import LAST_REPEAT
from store.values import dump, text

LEFT_TO_NEWER = 60.0  # seconds


async def read(db: Database, call_id: str) -> Call | None:
    """The call, or None."""
    row = await db.one(f"SELECT {rows.CALL} FROM calls c WHERE c.id = %s", [call_id])
    return None if row is None else rows.call(row)


async def of_run(db: Database, run_id: str) -> list[Call]:
    """A run's calls, in the model's order."""
    found = await db.query(
        f"SELECT {rows.CALL} FROM calls c WHERE c.run_id = %s ORDER BY c.turn, c.position", [run_id]
    )
    return [rows.call(row) for row in found]


async def of_turn(db: Database, run_id: str, turn: int) -> list[Call]:
    """The calls of one turn, in the model's order."""
    found = await db.query(
        f"SELECT {rows.CALL} FROM calls c WHERE c.run_id = %s AND c.turn = %s ORDER BY c.position",
        [run_id, turn],
    )
    return [rows.call(row) for row in found]


async def count_vetoed(db: Database, run_id: str) -> int:
    """How many calls of the run were answered with an earlier refusal."""
    row = await db.one("SELECT count(*) AS n FROM calls WHERE run_id = %s AND status = 'vetoed'", [run_id])
    return int(row["n"]) if row else 0


async def _claim(db: Database, statement: str, params: dict[str, Any]) -> ClaimedCall | None:
    for _ in range(MOST_LOOKS):
        try:
            row = await db.one(statement, params | {"actor": dump(SYSTEM.to_json())})
        except ItemsHeld:  # another call has just taken an item, which the next look sees
            continue
        except StatementRefused as error:
            if error.sqlstate == UNIQUE_VIOLATION:  # a call of the same run has just begun
                continue
            raise
        return None if row is None else await _read_claimed(db, row, params["token"])
    return None


async def _read_claimed(db: Database, row: rows.Row, token: str) -> ClaimedCall:
    """What was claimed; what only another version can read is given back, to be claimed by that one."""
    try:
        return rows.claimed(row, token)
    except WrittenByNewer as error:
        await release(db, row["call"]["id"], token, seconds=LEFT_TO_NEWER, why=str(error))
        raise


async def claim(db: Database, *, token: str, worker: str, lease: float) -> ClaimedCall | None:
    """Take the oldest approved call that may execute now; None: there is none."""
    return await _claim(db, sql.CLAIM_CALL, {"token": token, "worker": worker, "lease": lease})


async def claim_allowed(
    db: Database, call_id: str, *, run_token: str, token: str, worker: str, lease: float
) -> ClaimedCall | None:
    """Take an allowed call of a run that this worker holds; None: it must wait for an item, or is gone."""
    params = {"call": call_id, "run_token": run_token, "token": token, "worker": worker, "lease": lease}
    return await _claim(db, sql.CLAIM_ALLOWED_CALL, params)


async def waited(db: Database, call_id: str) -> float:
    """How many seconds ago the model asked for it."""
    row = await db.one(
        "SELECT extract(epoch FROM house_now() - created_at)::float AS seconds FROM calls WHERE id = %s",
        [call_id],
    )
    return 0.0 if row is None else float(row["seconds"])


async def give_up_waiting(db: Database, call_id: str, *, run_token: str, result: Json) -> bool:
    """Close an allowed call that was never attempted, for the worker that holds its run."""
    params = {
        "call": call_id,
        "run_token": run_token,
        "result": dump(result),
        "actor": dump(SYSTEM.to_json()),
    }
    return await db.one(sql.GIVE_UP_WAITING, params) is not None


async def start_attempt(
    db: Database, claimed: ClaimedCall, *, key: str, repeatable: bool, lease: float, only_reads: bool = False
) -> str | None:
    """Commit that an attempt begins; returns the call's key, or None: the claim is lost, do nothing.

    `only_reads`: whatever becomes of the attempt, it changes nothing.
    """
    row = await db.one(
        sql.START_ATTEMPT,
        {
            "call": claimed.call.id,
            "token": claimed.token,
            "key": key,
            "repeatable": repeatable,
            "only_reads": only_reads,
            "lease": lease,
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return None if row is None else str(row["key"])


async def is_too_old(db: Database, call_id: str) -> bool:
    """Whether its first attempt is so long ago that it may not be repeated."""
    row = await db.one(
        f"SELECT first_attempt_at <= house_now() - {LAST_REPEAT} AS old FROM calls WHERE id = %s", [call_id]
    )
    return row is not None and bool(row["old"])


async def _end(
    db: Database,
    statement: str,
    claimed: ClaimedCall,
    *,
    result: Json,
    outcome: Json,
    run_token: str,
    worker: str,
    lease: float,
    output: Json = None,
    done_items: Sequence[str] | None = None,
    notices: Sequence[dict[str, Any]] = (),
) -> Ended | None:
    params = {
        "call": claimed.call.id,
        "token": claimed.token,
        "result": dump(result),
        "outcome": dump(outcome),
        "output": dump(output),
        "done_items": None if done_items is None else [text(item) for item in done_items],
        "run_token": run_token,
        "worker": worker,
        "lease": lease,
        "notices": dump(list(notices)),
        "history": claimed.approval is not None,  # the run of an allowed call goes on already
        "actor": dump(SYSTEM.to_json()),
    }
    try:
        row = await db.one(statement, params)
    except StatementRefused:  # what ran is recorded though its conversation may be too much to read
        row = await db.one(statement, params | {"history": False})
    if row is None:
        return None
    run = rows.claimed_run(row, run_token, rows.call(row["ended"])) if row["history"] else None
    if run is not None and any(call.result is None for call in run.calls if call.run_id == run.run.id):
        run = None  # read before a decision that closed another call of the turn while this one waited for it
    return Ended(claimed.run.id, bool(row["kept"]), run)


async def finish_done(db: Database, claimed: ClaimedCall, **values: Any) -> Ended | None:
    """Record that it ran. None: the claim is lost and nothing is recorded. Keywords: those of `_end`."""
    return await _end(db, sql.FINISH_DONE, claimed, **values)


async def finish_failed(db: Database, claimed: ClaimedCall, **values: Any) -> Ended | None:
    """Record that it failed, with what it did all the same. None: as for `finish_done`."""
    return await _end(db, sql.FINISH_FAILED, claimed, **values)


async def supersede(db: Database, claimed: ClaimedCall, **values: Any) -> Ended | None:
    """Record that it never ran because what was shown is no longer so. None: as for `finish_done`."""
    return await _end(db, sql.SUPERSEDE, claimed, **values)


async def release(
    db: Database, call_id: str, token: str, *, seconds: float, why: str, lapsed: bool = False
) -> bool:
    """Give a call back, to be tried again after so many seconds; False: it may not be, or the claim is lost.

    `lapsed`: for the sweep, only when the lease is over.
    """
    row = await db.one(
        sql.RELEASE_CALL,
        {
            "call": call_id,
            "token": token,
            "seconds": seconds,
            "why": text(why),
            "lapsed": lapsed,
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


async def mark_unknown(
    db: Database,
    call_id: str,
    token: str,
    *,
    why: str,
    why_json: Json = None,
    approval: NewApproval | None,
    lapsed: bool = False,
) -> bool:
    """Nobody knows whether it ran; `approval` is born, as unknown, for a call that was not asked.

    `why_json` is the same as `why`, for those who read it in other words.
    """
    row = await db.one(
        sql.MARK_UNKNOWN,
        {
            "call": call_id,
            "token": token,
            "why": text(why),
            "why_json": dump(why_json),
            "lapsed": lapsed,
            "approvals": dump([] if approval is None else [approval.to_json()]),
            "actor": dump(SYSTEM.to_json()),
        },
    )
    return row is not None


async def fail_lapsed(db: Database, call_id: str, token: str, *, result: Json, why: str) -> bool:
    """Close an allowed call that only reads, for the sweep; False: somebody goes on with it."""
    params = {
        "call": call_id,
        "token": token,
        "result": dump(result),
        "why": text(why),
        "actor": dump(SYSTEM.to_json()),
    }
    return await db.one(sql.FAIL_LAPSED, params) is not None


async def times_released(db: Database, call: Call, why: str) -> int:
    """How often it was given back for this reason before it had ever been attempted."""
    row = await db.one(
        """SELECT count(*) AS n FROM audit_events
 WHERE run_id = %s AND call_id = %s AND kind = 'call.released'
   AND data->>'why' = %s AND (data->>'attempts')::int = 0""",
        [call.run_id, call.id, why],
    )
    return int(row["n"]) if row else 0


async def lapsed(db: Database, *, limit: int = 50) -> list[tuple[Call, str]]:
    """Attempts that nobody goes on with, each with the lost token.

    Executing calls whose lease is over, and allowed ones to be tried again whose run was stopped.
    """
    found = await db.query(
        f"""(SELECT {rows.CALL}, c.token FROM calls c
  WHERE c.status = 'executing' AND c.lease_until < house_now() ORDER BY c.lease_until LIMIT %(limit)s)
UNION ALL (SELECT {rows.CALL}, '' FROM calls c JOIN runs r ON r.id = c.run_id
  WHERE c.status = 'allowed' AND c.attempts > 0 AND r.status = 'cancelled' LIMIT %(limit)s)""",
        {"limit": limit},
    )
    return [(rows.call(row), str(row["token"])) for row in found]


async def settle(
    db: Database,
    call_id: str,
    actor: Actor,
    *,
    ran: bool,
    result: Json,
    outcome: Json,
    attempts: int | None = None,
) -> bool:
    """A person says what became of an unknown call, after so many `attempts` (None: however many).

    False: it is not unknown any more, or was attempted again meanwhile. If its run has ended, the thread and
    the next run are told.
    """
    params = {
        "call": call_id,
        "result": dump(result),
        "outcome": dump(outcome),
        "attempts": attempts,
        "actor": dump(actor.to_json()),
    }
    return await db.one(settling.SETTLE_DONE if ran else settling.SETTLE_FAILED, params) is not None


async def try_again(db: Database, call_id: str, actor: Actor, *, attempts: int) -> bool:
    """A person lets an unknown call be tried again with its key.

    False: it is not unknown any more, was attempted again meanwhile or too long ago, or its run was stopped.
    """
    params = {"call": call_id, "attempts": attempts, "actor": dump(actor.to_json())}
    return await db.one(settling.TRY_AGAIN, params) is not None


async def remind(db: Database, after: Sequence[float]) -> list[str]:
    """Remind people of what nobody knows, once at each of `after`, in seconds; returns the approvals' ids."""
    found = await db.query(settling.REMIND, {"after": list(after), "actor": dump(SYSTEM.to_json())})
    return [str(row["id"]) for row in found]


async def unsettled(db: Database, *, limit: int = 50) -> list[Call]:
    """Unknown calls whose turn still waits, though their first attempt is too long ago to be repeated."""
    found = await db.query(
        f"""SELECT {rows.CALL} FROM calls c JOIN approvals a ON a.call_id = c.id
  WHERE a.status = 'unknown' AND c.status = 'unknown' AND c.result IS NULL
    AND c.first_attempt_at <= house_now() - {LAST_REPEAT} LIMIT %s""",
        [limit],
    )
    return [rows.call(row) for row in found]


async def close_unknown(db: Database, call_id: str, result: Json) -> bool:
    """Close an unsettled call for the model, so that its run can end; the row stays unknown."""
    params = {"call": call_id, "result": dump(result), "actor": dump(SYSTEM.to_json())}
    return await db.one(settling.CLOSE_UNKNOWN, params) is not None


async def stop_released(db: Database, cancelled: Json, why_json: Json = None) -> int:
    """Close what was given back to a run that had been stopped: cancelled, or unknown if it was attempted."""
    return await runs.stop_released(db, cancelled, why_json)
