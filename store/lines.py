"""Lines: the first message of the answer to a run, read with the rows that it tells of.

Whoever changes one in Slack has it for a moment first, over all processes: so what is sent last is what was
read last.
"""

from dataclasses import dataclass

from store import rows
from store.approvals import OF_RUN
from store.engine import Database
from store.records import Actor, Line
from store.statements.fragments import MAY_BE_LATE, STOPPED_BY, again_after_a_lapse

_RUN = f"""SELECT {rows.RUN}, n.team_id, n.channel_id, n.thread_ts, w.ts, house_now() AS now,
       {STOPPED_BY.format(run="r.id")} AS stopped_by
  FROM runs r JOIN conversations n ON n.id = r.conversation_id
  JOIN notices w ON w.dedupe_key = 'received:' || r.id
 WHERE r.id = %s"""
_CALLS = f"""SELECT {rows.CALL} FROM calls c JOIN runs r ON r.id = c.run_id AND r.turn = c.turn
 WHERE r.id = %s ORDER BY c.position"""


@dataclass(frozen=True)
class Turn:
    """Whether it is ours to change the line now; `shown` is as in Notice."""

    is_ours: bool
    shown: str | None


async def read(db: Database, run_id: str) -> Line | None:
    """What the line of a run tells of; None: there is no such run, or its first message is not posted."""
    found, calls, approvals = await db.together((_RUN, [run_id]), (_CALLS, [run_id]), (OF_RUN, [run_id]))
    if not found or found[0]["ts"] is None:
        return None
    return Line(
        rows.run(found[0]),
        rows.conversation(found[0], "conversation_id"),
        found[0]["ts"],
        tuple(rows.call(row) for row in calls),
        tuple(rows.approval(row) for row in approvals),
        found[0]["now"],
        None if found[0]["stopped_by"] is None else Actor.from_json(found[0]["stopped_by"]),
    )


async def take(db: Database, run_id: str, *, token: str, worker: str, lease: float) -> Turn | None:
    """Take the line for `lease` seconds, to show progress in it; None: it is not posted yet."""
    row = await db.one(
        f"""WITH line AS (
  SELECT id FROM notices WHERE dedupe_key = 'received:' || %(run)s::text AND ts IS NOT NULL),
taken AS (
  UPDATE notices w SET token = %(token)s, worker = %(worker)s, again_at = {again_after_a_lapse("w")},
         lease_until = house_now() + make_interval(secs => %(lease)s)
    FROM line WHERE w.id = line.id AND (w.token IS NULL OR w.lease_until < house_now())
  RETURNING w.id, CASE WHEN w.again_at IS NULL THEN w.shown END AS shown)
SELECT taken.id IS NOT NULL AS is_ours, taken.shown FROM line LEFT JOIN taken ON true""",
        {"run": run_id, "token": token, "worker": worker, "lease": lease},
    )
    return None if row is None else Turn(row["is_ours"], row["shown"])


async def let_go(
    db: Database, run_id: str, token: str, *, shown: str | None, unanswered: bool = False
) -> bool:
    """It was taken with this token, and shows what has this digest; None: nobody knows what it shows.

    `unanswered`: it is shown once more later. So it is if another has taken it meanwhile, as what was sent
    with this token may have come last. True: it waits to be brought up to date by a publisher.
    """
    row = await db.one(
        f"""WITH line AS (
  SELECT id, coalesce(token = %(token)s, false) AS ours,
         coalesce(token <> %(token)s AND lease_until >= house_now(), false) AS anothers
    FROM notices WHERE dedupe_key = 'received:' || %(run)s::text FOR NO KEY UPDATE),
ours AS (
  UPDATE notices w SET token = NULL, lease_until = NULL, shown = %(shown)s,
         again_at = CASE WHEN %(unanswered)s THEN {MAY_BE_LATE} ELSE w.again_at END
    FROM line WHERE w.id = line.id AND line.ours RETURNING w.posted_at),
anothers AS (
  UPDATE notices w SET again_at = greatest(w.again_at, w.lease_until)
    FROM line WHERE w.id = line.id AND line.anothers),
nobodys AS (
  UPDATE notices w SET posted_at = NULL, version = w.version + 1, shown = NULL, not_before = NULL
    FROM line WHERE w.id = line.id AND NOT line.ours AND NOT line.anothers RETURNING w.posted_at)
SELECT posted_at IS NULL AS waits FROM ours UNION ALL SELECT true FROM nobodys""",
        {"run": run_id, "token": token, "shown": shown, "unanswered": unanswered},
    )
    return row is not None and bool(row["waits"])
