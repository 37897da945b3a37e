"""What waits to be shown in Slack, in numbers."""

from store.engine import Database


async def count_unposted(db: Database) -> int:
    """How many notices are not in Slack yet, or not as they should be, as far as the database knows."""
    row = await db.one("SELECT count(*) AS n FROM notices WHERE posted_at IS NULL")
    return int(row["n"]) if row else 0
