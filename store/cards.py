"""Cards: copies of an approval in Slack, each with the version it shows and the version it should show."""

from store import rows
from store.engine import Database
from store.records import Card
from store.values import text


async def claim_behind(db: Database, *, token: str, worker: str, lease: float) -> Card | None:
    """Take one card that does not show its row yet, for `lease` seconds: one publisher per card at a time."""
    row = await db.one(
        f"""WITH pick AS (
  SELECT id FROM cards
   WHERE shown_version < wanted_version AND (not_before IS NULL OR not_before <= house_now())
     AND (token IS NULL OR lease_until < house_now())
   ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE cards k SET token = %(token)s, worker = %(worker)s,
       lease_until = house_now() + make_interval(secs => %(lease)s)
  FROM pick WHERE k.id = pick.id RETURNING {rows.CARD}""",
        {"token": token, "worker": worker, "lease": lease},
    )
    return None if row is None else rows.card(row)


async def posted(db: Database, card: Card, token: str, *, channel_id: str, ts: str, version: int) -> bool:
    """The card is in Slack at (channel, ts) and shows `version`; False: another publisher has it now."""
    row = await db.one(
        """UPDATE cards SET channel_id = %(channel)s, ts = %(ts)s, shown_version = %(version)s,
       posted_at = coalesce(posted_at, house_now()), token = NULL, lease_until = NULL, failures = 0,
       last_error = NULL, not_before = NULL
 WHERE id = %(card)s AND token = %(token)s RETURNING id""",
        {"card": card.id, "token": token, "channel": channel_id, "ts": ts, "version": version},
    )
    return row is not None


async def failed(db: Database, card_id: str, token: str, *, error: str, retry_in: float) -> None:
    """The card could not be brought up to date; it is tried again after so many seconds."""
    await db.query(
        """UPDATE cards SET failures = failures + 1, last_error = %(error)s, token = NULL, lease_until = NULL,
       not_before = house_now() + make_interval(secs => %(seconds)s)
 WHERE id = %(card)s AND token = %(token)s""",
        {"card": card_id, "token": token, "error": text(error), "seconds": retry_in},
    )


async def lost(db: Database, card_id: str, token: str) -> None:
    """The message is gone from Slack: the card is to be posted anew."""
    await db.query(
        """UPDATE cards SET ts = NULL, shown_version = 0, token = NULL, lease_until = NULL, not_before = NULL
 WHERE id = %s AND token = %s""",
        [card_id, token],
    )


async def of_approval(db: Database, approval_id: str) -> list[Card]:
    """Every copy, the oldest first."""
    found = await db.query(
        f"SELECT {rows.CARD} FROM cards k WHERE k.approval_id = %s ORDER BY k.created_at, k.id", [approval_id]
    )
    return [rows.card(row) for row in found]


async def count_behind(db: Database) -> int:
    """How many copies do not show their row yet."""
    row = await db.one("SELECT count(*) AS n FROM cards WHERE shown_version < wanted_version")
    return int(row["n"]) if row else 0
