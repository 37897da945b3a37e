"""The directory: what Slack last said about its users, with an age."""

from datetime import datetime

from store.engine import Database
from store.records import DirectoryUser
from store.values import text


async def read_user(db: Database, team_id: str, user_id: str) -> DirectoryUser | None:
    """The user as last heard of, or None."""
    row = await db.one(
        """SELECT team_id, user_id, name, is_bot, deleted, restricted, stranger, unconfirmed,
  extract(epoch FROM house_now() - refreshed_at)::float AS age
  FROM directory_users WHERE team_id = %s AND user_id = %s""",
        [text(team_id), text(user_id)],
    )
    return None if row is None else DirectoryUser(**row)


async def name_of(db: Database, user_id: str) -> str | None:
    """What Slack last called a user, of whichever workspace; None: it was never asked."""
    row = await db.one(
        "SELECT name FROM directory_users WHERE user_id = %s ORDER BY refreshed_at DESC LIMIT 1",
        [text(user_id)],
    )
    return None if row is None else str(row["name"])


_INSERT = """INSERT INTO directory_users AS d
  (team_id, user_id, name, is_bot, deleted, restricted, stranger, unconfirmed, event_at, refreshed_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, coalesce(%s, house_now()))
ON CONFLICT (team_id, user_id) DO UPDATE SET name = EXCLUDED.name, is_bot = EXCLUDED.is_bot,
  deleted = EXCLUDED.deleted, restricted = EXCLUDED.restricted, stranger = EXCLUDED.stranger,
  unconfirmed = EXCLUDED.unconfirmed, event_at = coalesce(EXCLUDED.event_at, d.event_at),
  refreshed_at = EXCLUDED.refreshed_at"""


async def save_user(db: Database, user: DirectoryUser, *, asked_at: datetime | None = None) -> None:
    """Keep what Slack answered about a user: it was asked at `asked_at` by the database's clock, else now.

    What was asked for later, or heard of after that, like that they left, stays.
    """
    await db.query(
        f"{_INSERT} WHERE d.refreshed_at <= EXCLUDED.refreshed_at", [*_values(user), False, None, asked_at]
    )


async def hear_of_user(db: Database, user: DirectoryUser, *, event_at: datetime) -> None:
    """Keep what an event of `event_at`, by Slack's clock, says of a user; what a newer one said stays.

    The two clocks are never compared: no event says that it is newer than an answer, so what it says is
    unconfirmed.
    """
    await db.query(
        f"{_INSERT} WHERE coalesce(d.event_at < EXCLUDED.event_at, true)",
        [*_values(user), True, event_at, None],
    )


async def doubt_user(db: Database, team_id: str, user_id: str) -> None:
    """What is known of a user may be so no more: it is unconfirmed, and so is what was asked before now."""
    await db.query(
        """UPDATE directory_users SET unconfirmed = true, refreshed_at = house_now()
  WHERE team_id = %s AND user_id = %s""",
        [text(team_id), text(user_id)],
    )


def _values(user: DirectoryUser) -> list[str | bool]:
    return [
        user.team_id,
        user.user_id,
        text(user.name),
        user.is_bot,
        user.deleted,
        user.restricted,
        user.stranger,
    ]
