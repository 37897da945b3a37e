"""Cards: copies of an approval in Slack, each with the version it shows and the version it should show.

Who changes cards of several approvals in one step has locked all of these approvals, by id; a card by itself
is changed without its approval, by who locks nothing else but the lines behind it, and these last.
"""

from collections.abc import Collection

from store import rows
from store.engine import Database
from store.records import DMS, UPDATES, Card
from store.statements.fragments import CARDS_FOLLOW, MAY_BE_LATE, again_after_a_lapse
from store.values import new_id, text

GIVEN_UP = 2**31 - 1  # as the shown version of a copy that is gone and not missed: it is never behind
DOUBT_SECONDS = 2.0
_HELD = "(k.token IS NOT NULL AND k.lease_until >= house_now())"


async def claim_behind(
    db: Database, *, token: str, worker: str, lease: float, held: Collection[str] = ()
) -> Card | None:
    """Take one card that does not show its row yet, for `lease` seconds: one publisher per card at a time.

    Or one that is to be shown once more, because an older update may have come after the last one. `held`:
    places to which nothing is to be sent now, by their ids, DMS and UPDATES.
    """
    row = await db.one(
        f"""WITH pick AS (
  SELECT id FROM cards
   WHERE (shown_version < wanted_version OR again_at IS NOT NULL)
     AND (shown_version < wanted_version OR again_at <= house_now())
     AND (not_before IS NULL OR not_before <= house_now())
     AND (token IS NULL OR lease_until < house_now())
     AND CASE WHEN ts IS NOT NULL THEN '{UPDATES}' WHEN user_id IS NOT NULL THEN '{DMS}' ELSE channel_id
         END <> ALL(%(held)s)
   ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE cards k SET token = %(token)s, worker = %(worker)s, again_at = {again_after_a_lapse("k")},
       lease_until = house_now() + make_interval(secs => %(lease)s)
  FROM pick WHERE k.id = pick.id RETURNING {rows.CARD}""",
        {"token": token, "worker": worker, "lease": lease, "held": list(held)},
    )
    return None if row is None else rows.card(row)


async def tell_others(db: Database, card: Card, revision: int) -> int:
    """Let the cards that warn of this one, or should, follow; returns how many approvals they show.

    `revision` is what is open of the approval now, 0 if it is over; it is kept as told.
    """
    found = await db.query(
        f"""WITH other AS (
  SELECT b.id FROM approvals b JOIN revisions w ON w.approval_id = b.id AND w.revision = b.revision
   WHERE b.status IN ('pending', 'approved') AND b.id <> %(approval)s
     AND b.effect = (SELECT a.effect FROM approvals a WHERE a.id = %(approval)s)
     AND EXISTS (SELECT FROM revisions v WHERE v.approval_id = %(approval)s AND v.items && w.items)
   ORDER BY b.id FOR NO KEY UPDATE OF b),
approval AS (
  UPDATE approvals b SET version = b.version + 1 FROM other WHERE b.id = other.id
  RETURNING b.id, b.version),
{CARDS_FOLLOW}
SELECT id FROM approval""",
        {"approval": card.approval_id},
    )
    # by itself, because two that tell each other would each wait for the other's card; if it fails, they are
    # told once more
    await db.query("UPDATE cards SET told_revision = %s WHERE id = %s", [revision, card.id])
    return len(found)


def _replaced_follows(is_shown: str) -> str:
    """The card of the approval that theirs replaces has a link to them, and is behind from now on."""
    return f"""WITH locked AS (
  SELECT a.id FROM approvals b JOIN approvals a ON a.id IN (b.id, b.replaces)
   WHERE b.id = %(approval)s AND b.replaces IS NOT NULL AND {is_shown}
   ORDER BY a.id FOR NO KEY UPDATE OF a),
approval AS (
  UPDATE approvals a SET version = a.version + 1
    FROM locked WHERE a.id = locked.id AND a.id <> %(approval)s RETURNING a.id, a.version),
{CARDS_FOLLOW}
SELECT id FROM approval"""


_REPLACED_FOLLOWS_A_POST = _replaced_follows(
    "EXISTS (SELECT FROM cards k WHERE k.id = %(card)s AND k.token = %(token)s)"
)
_POSTED = """UPDATE cards SET channel_id = %(channel)s, ts = %(ts)s, shown_version = %(version)s,
       posted_at = coalesce(posted_at, house_now()), token = NULL, lease_until = NULL, failures = 0,
       last_error = NULL, not_before = NULL,
       again_at = CASE WHEN again_at > house_now() THEN again_at END
 WHERE id = %(card)s AND token = %(token)s RETURNING id"""


# The lines of runs that wait behind the approval's say what they wait for, as the card does.
_LINES_BEHIND_FOLLOW = """WITH line AS (
  SELECT w.id FROM approvals a JOIN runs q ON q.conversation_id = a.conversation_id
    JOIN notices w ON w.dedupe_key = 'received:' || q.id
   WHERE a.id = %(approval)s AND q.status = 'queued' AND q.started_at IS NULL AND w.ts IS NOT NULL
   ORDER BY w.id FOR NO KEY UPDATE OF w)
UPDATE notices w SET posted_at = NULL, version = w.version + 1, failures = 0, not_before = NULL
  FROM line WHERE w.id = line.id RETURNING w.id"""


async def posted(db: Database, card: Card, token: str, *, channel_id: str, ts: str, version: int) -> bool:
    """The card is in Slack at (channel, ts) and shows `version`; False: another publisher has it now.

    The card of the approval that this one replaces has a link to it, and is to show where it is from now on.
    What stands in the lines of runs that wait behind the approval's is to be brought up to date, too.
    """
    own = {
        "approval": card.approval_id,
        "card": card.id,
        "token": token,
        "channel": channel_id,
        "ts": ts,
        "version": version,
    }
    is_post = card.ts is None and card.user_id is None
    replaced_follows = [(_REPLACED_FOLLOWS_A_POST, own)] if is_post else []
    *_, row, _ = await db.together(*replaced_follows, (_POSTED, own), (_LINES_BEHIND_FOLLOW, own))
    return bool(row)


async def failed(
    db: Database,
    card_id: str,
    token: str,
    *,
    error: str,
    retry_in: float,
    unanswered: bool = False,
    counts: bool = True,
) -> None:
    """The card could not be brought up to date; it is tried again after so many seconds.

    `unanswered`: an update may have been carried out, or may be later, after the next: it is shown twice.
    `counts`: it is one more failure.
    """
    await db.query(
        f"""UPDATE cards SET failures = failures + %(counts)s::int, last_error = %(error)s, token = NULL,
       lease_until = NULL,
       not_before = house_now() + make_interval(secs => %(seconds)s),
       again_at = CASE WHEN %(unanswered)s AND ts IS NOT NULL THEN {MAY_BE_LATE} ELSE again_at END
 WHERE id = %(card)s AND token = %(token)s""",
        {
            "card": card_id,
            "token": token,
            "error": text(error),
            "seconds": retry_in,
            "unanswered": unanswered,
            "counts": counts,
        },
    )


async def doubt(
    db: Database,
    *,
    team_id: str,
    channel_id: str,
    ts: str,
    revision: int | None = None,
    attempts: int | None = None,
) -> bool:
    """Show a copy anew, as nobody knows what it shows: an update of a publisher that is behind came last.

    With what a pressed button was for, only if it should be gone though all is believed to be shown:
    `attempts` are those after which nobody knew. It waits two seconds, so that many clicks are one update.
    False: there is nothing to show anew.
    """
    row = await db.one(
        f"""UPDATE cards k SET
       shown_version = CASE WHEN {_HELD} THEN k.shown_version ELSE 0 END,
       not_before = CASE WHEN {_HELD} THEN k.not_before
                         ELSE house_now() + make_interval(secs => {DOUBT_SECONDS}) END,
       again_at = CASE WHEN {_HELD} THEN greatest(k.again_at, k.lease_until) ELSE k.again_at END
  FROM approvals a
 WHERE k.team_id = %(team)s AND k.channel_id = %(channel)s AND k.ts = %(ts)s AND a.id = k.approval_id
   AND k.shown_version < {GIVEN_UP}
   AND (%(revision)s::int IS NULL OR (k.shown_version >= k.wanted_version
        AND CASE WHEN %(attempts)s::int IS NULL THEN a.status <> 'pending' OR a.revision <> %(revision)s::int
                 ELSE a.status <> 'unknown' OR (a.outcome->>'attempts')::int <> %(attempts)s::int END))
RETURNING k.id""",
        {
            "team": team_id,
            "channel": channel_id,
            "ts": ts,
            "revision": revision,
            "attempts": attempts,
        },
    )
    return row is not None


async def lost(db: Database, card_id: str, token: str) -> None:
    """The message is gone from Slack: the card is to be posted anew, unless there is an earlier copy.

    Always the earliest one is posted again, be it there or on its way: two that are lost at once leave one.
    """
    await db.query(
        f"""UPDATE cards k SET ts = CASE WHEN earlier.there THEN k.ts END, token = NULL, lease_until = NULL,
       shown_version = CASE WHEN earlier.there THEN {GIVEN_UP} ELSE 0 END, not_before = NULL,
       lost_ts = array_append(k.lost_ts, k.ts), again_at = NULL
  FROM (SELECT count(o.id) > 0 AS there FROM cards own JOIN cards o USING (approval_id, channel_id)
         WHERE own.id = %(card)s AND (o.created_at, o.id) < (own.created_at, own.id)
           AND o.shown_version < {GIVEN_UP}) AS earlier
 WHERE k.id = %(card)s AND k.token = %(token)s""",
        {"card": card_id, "token": token},
    )


_IS_KNOWN = """EXISTS (
    SELECT FROM cards WHERE team_id = %(team)s AND channel_id = %(channel)s AND ts = %(ts)s
     UNION ALL SELECT FROM cards WHERE approval_id = %(approval)s AND %(ts)s = ANY(lost_ts))"""
_IS_UNPOSTED = f"""k.approval_id = %(approval)s AND k.team_id = %(team)s AND k.ts IS NULL
     AND (k.channel_id = %(channel)s OR k.user_id = %(user)s) AND NOT {_IS_KNOWN}"""
_REPLACED_FOLLOWS_A_COPY = _replaced_follows(f"EXISTS (SELECT FROM cards k WHERE {_IS_UNPOSTED})")
_ADOPT = f"""WITH unposted AS (SELECT k.id FROM cards k WHERE {_IS_UNPOSTED} LIMIT 1 FOR UPDATE),
taken AS (
  UPDATE cards k SET channel_id = %(channel)s, ts = %(ts)s, shown_version = 0, token = NULL,
         lease_until = NULL, failures = 0, last_error = NULL, not_before = NULL
    FROM unposted WHERE k.id = unposted.id RETURNING k.id),
added AS (
  INSERT INTO cards (id, approval_id, team_id, channel_id, user_id, ts, wanted_version)
  SELECT %(id)s, a.id, %(team)s, %(channel)s, %(user)s, %(ts)s, a.version FROM approvals a
   WHERE a.id = %(approval)s AND NOT {_IS_KNOWN} AND NOT EXISTS (SELECT FROM taken)
  ON CONFLICT DO NOTHING RETURNING id)
SELECT id FROM taken UNION ALL SELECT id FROM added"""


async def adopt(
    db: Database, *, approval_id: str, team_id: str, channel_id: str, ts: str, user_id: str | None
) -> bool:
    """Keep a message up to date from now on; False: it is one of the copies that are, or is known to be gone.

    It was posted, but the answer or its poster was lost: so it takes the place of a copy that is still to be
    posted there, whoever is about to. `user_id`: in this person's DM.
    """
    found = {
        "id": new_id("card"),
        "approval": text(approval_id),
        "team": team_id,
        "channel": channel_id,
        "user": user_id,
        "ts": ts,
    }
    if user_id is not None:
        return await db.one(_ADOPT, found) is not None
    _, row = await db.together((_REPLACED_FOLLOWS_A_COPY, found), (_ADOPT, found))
    return bool(row)


async def of_approvals(db: Database, approval_ids: Collection[str]) -> list[Card]:
    """Every copy of these, the oldest first."""
    found = await db.query(
        f"SELECT {rows.CARD} FROM cards k WHERE k.approval_id = ANY(%s) ORDER BY k.created_at, k.id",
        [list(approval_ids)],
    )
    return [rows.card(row) for row in found]


async def count_behind(db: Database) -> int:
    """How many copies do not show their row yet."""
    row = await db.one("SELECT count(*) AS n FROM cards WHERE shown_version < wanted_version")
    return int(row["n"]) if row else 0
