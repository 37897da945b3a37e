"""Notices: messages of the bot that are no cards, posted once and in order within a conversation.

The first message of the answer to a run is brought up to date later: then it waits again, with its `ts`.
"""

from collections.abc import Collection

from store import rows
from store.engine import Database
from store.records import DMS, UPDATES, Json, Notice
from store.statements.fragments import MAY_BE_LATE, again_after_a_lapse
from store.values import dump, text

# A reminder's place: the first card in a channel of the approval that it is about; none while none is posted.
_BELOW = """(SELECT k.channel_id FROM cards k
              WHERE {0}.kind = 'outcome_reminder' AND k.approval_id = {0}.data->'approval_ids'->>0
                AND k.user_id IS NULL AND k.ts IS NOT NULL
              ORDER BY k.created_at, k.id LIMIT 1)"""
_REMINDS_OF_THE_SAME = """(e.kind = 'outcome_reminder' AND e.data->'approval_ids' = w.data->'approval_ids')"""


async def claim(
    db: Database, *, token: str, worker: str, lease: float, held: Collection[str] = ()
) -> Notice | None:
    """Take the oldest notice that is not posted yet, for `lease` seconds; a thread's notices go in order.

    A reminder that stands below its card waits for earlier ones there, and else holds up none of them.
    One with a `ts` is to be brought up to date; it comes after all that are to be posted, and holds up none.
    One that tells of new cards waits ten seconds for them, unless they cannot be posted: it links them.
    `held`: places to which nothing is to be sent now, by their ids, DMS and UPDATES.
    """
    row = await db.one(
        f"""WITH pick AS (
  SELECT w.id FROM notices w
   WHERE (w.posted_at IS NULL OR w.again_at IS NOT NULL)
     AND (w.posted_at IS NULL OR w.again_at <= house_now())
     AND (w.not_before IS NULL OR w.not_before <= house_now())
     AND (w.token IS NULL OR w.lease_until < house_now())
     AND NOT EXISTS (SELECT FROM notices e WHERE e.posted_at IS NULL AND e.ts IS NULL AND e.id < w.id
                       AND e.conversation_id = w.conversation_id
                       AND CASE WHEN {_BELOW.format("w")} IS NULL THEN {_BELOW.format("e")} IS NULL
                                ELSE {_REMINDS_OF_THE_SAME} END)
     AND CASE WHEN w.ts IS NOT NULL THEN '{UPDATES}'
              WHEN w.user_id IS NOT NULL THEN '{DMS}'
              ELSE coalesce({_BELOW.format("w")},
                            (SELECT n.channel_id FROM conversations n WHERE n.id = w.conversation_id))
         END <> ALL(%(held)s)
     AND NOT EXISTS (SELECT FROM jsonb_array_elements_text(w.data->'approval_ids') a
                       JOIN cards k ON k.approval_id = a
                      WHERE k.user_id IS NULL AND k.ts IS NULL AND k.failures = 0
                        AND w.created_at > house_now() - make_interval(secs => 10))
   ORDER BY w.ts IS NOT NULL, w.id LIMIT 1 FOR UPDATE SKIP LOCKED),
taken AS (
  UPDATE notices w SET token = %(token)s, worker = %(worker)s, again_at = {again_after_a_lapse("w")},
         lease_until = house_now() + make_interval(secs => %(lease)s)
    FROM pick WHERE w.id = pick.id
  RETURNING w.id, w.kind, w.data, w.conversation_id, w.team_id AS to_team, w.user_id AS to_user,
            w.failures, w.token, w.ts, w.version, CASE WHEN w.again_at IS NULL THEN w.shown END AS shown)
SELECT taken.*, n.team_id, n.channel_id, n.thread_ts
  FROM taken LEFT JOIN conversations n ON n.id = taken.conversation_id""",
        {"token": token, "worker": worker, "lease": lease, "held": list(held)},
    )
    return None if row is None else rows.notice(row)


async def posted(
    db: Database,
    notice: Notice,
    token: str,
    *,
    ts: str,
    shown: str | None = None,
    moved: str | None = None,
    elsewhere: bool = False,
) -> bool:
    """The notice is in Slack; the first one of a conversation without a thread begins it.

    `shown`: a digest of what it was brought up to. `moved`: a run of which it tells something new; the run's
    first message is then brought up to date. `elsewhere`: it stands in no thread of its conversation.
    False: another publisher has it now.
    """
    row = await db.one(
        """WITH taken AS (
  UPDATE notices SET ts = %(ts)s, posted_at = CASE WHEN version = %(version)s THEN house_now() END,
         again_at = CASE WHEN again_at > house_now() THEN again_at END, shown = %(shown)s,
         token = NULL, lease_until = NULL, last_error = NULL
   WHERE id = %(id)s AND token = %(token)s RETURNING id, conversation_id),
thread AS (
  UPDATE conversations n SET thread_ts = %(ts)s
    FROM taken WHERE n.id = taken.conversation_id AND n.thread_ts IS NULL AND NOT %(elsewhere)s),
line AS (
  UPDATE notices w SET posted_at = NULL, version = w.version + 1, failures = 0, not_before = NULL
    FROM taken WHERE w.dedupe_key = 'received:' || %(moved)s::text AND w.id <> taken.id AND w.ts IS NOT NULL)
SELECT id FROM taken""",
        {
            "id": notice.id,
            "version": notice.version,
            "token": token,
            "ts": ts,
            "shown": shown,
            "moved": moved,
            "elsewhere": elsewhere,
        },
    )
    return row is not None


async def failed(
    db: Database,
    notice: Notice,
    token: str,
    *,
    error: str,
    retry_in: float | None,
    unanswered: bool = False,
    counts: bool = True,
) -> None:
    """It could not be posted: again after so many seconds, or never (None: it would stop its thread).

    `unanswered`: what is in Slack already is shown once more later, as with a card. `counts`: it is one more
    failure.
    """
    await db.query(
        f"""UPDATE notices SET failures = failures + %(counts)s::int, last_error = %(error)s, token = NULL,
       lease_until = NULL,
       posted_at = CASE WHEN %(seconds)s::float IS NULL THEN house_now() END,
       not_before = house_now() + make_interval(secs => coalesce(%(seconds)s::float, 0)), shown = NULL,
       again_at = CASE WHEN %(unanswered)s AND ts IS NOT NULL THEN {MAY_BE_LATE} ELSE again_at END
 WHERE id = %(id)s AND token = %(token)s""",
        {
            "id": notice.id,
            "token": token,
            "error": text(error),
            "seconds": retry_in,
            "unanswered": unanswered,
            "counts": counts,
        },
    )


async def withdraw(db: Database, notice: Notice, token: str) -> None:
    """It need not be said any more: it is never posted."""
    await db.query(
        """UPDATE notices SET posted_at = house_now(), token = NULL, lease_until = NULL
 WHERE id = %s AND token = %s""",
        [notice.id, token],
    )


async def is_reminded_later(db: Database, notice: Notice) -> bool:
    """Whether a later reminder of the same approval waits behind this one."""
    row = await db.one(
        f"""SELECT FROM notices e JOIN notices w ON e.conversation_id = w.conversation_id AND e.id > w.id
 WHERE w.id = %s AND e.posted_at IS NULL AND {_REMINDS_OF_THE_SAME} LIMIT 1""",
        [notice.id],
    )
    return row is not None


async def add_to_conversation(
    db: Database, *, dedupe_key: str, conversation_id: str, kind: str, data: Json
) -> None:
    """Say something in a conversation's thread, once for each `dedupe_key`."""
    await db.query(
        """INSERT INTO notices (dedupe_key, conversation_id, kind, data) VALUES (%s, %s, %s, %s::jsonb)
ON CONFLICT (dedupe_key) DO NOTHING""",
        [dedupe_key, conversation_id, kind, dump(data)],
    )
