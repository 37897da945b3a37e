"""Lines: the first message of the answer to a run, read with the rows that it tells of."""

from store import rows
from store.approvals import OF_RUN
from store.engine import Database
from store.records import Line

_RUN = f"""SELECT {rows.RUN}, n.team_id, n.channel_id, n.thread_ts, w.ts
  FROM runs r JOIN conversations n ON n.id = r.conversation_id
  JOIN notices w ON w.dedupe_key = 'received:' || r.id
 WHERE r.id = %s"""
_CALLS = f"""SELECT {rows.CALL} FROM calls c JOIN runs r ON r.id = c.run_id AND r.turn = c.turn
 WHERE r.id = %s ORDER BY c.position"""


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
    )
