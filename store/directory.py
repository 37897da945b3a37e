"""The directory: what Slack last said about its users, with an age."""

from datetime import datetime

from store.engine import Database
from store.records import DirectoryUser
from store.values import text


async def read_user(db: Database, team_id: str, user_id: str) -> DirectoryUser | None:
    """The user as last heard of, or None."""
    row = await db.one(
        """SELECT team_id, user_id, name, is_bot, deleted, restricted, stranger,
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


_INSERT = """INSERT INTO directory_users AS d (team_id, user_id, name, is_bot, deleted, restricted, stranger)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (team_id, user_id) """


async def save_user(db: Database, user: DirectoryUser, *, asked_at: datetime | None = None) -> None:
    """Keep what Slack said about a user just now, or in answer to what it was asked at `asked_at`.

    What came after that, like that they left, stays.
    """
    await db.query(
        f"""{_INSERT} DO UPDATE SET name = EXCLUDED.name, is_bot = EXCLUDED.is_bot,
  deleted = EXCLUDED.deleted, restricted = EXCLUDED.restricted, stranger = EXCLUDED.stranger,
  refreshed_at = EXCLUDED.refreshed_at
  WHERE d.refreshed_at <= coalesce(%s, d.refreshed_at)""",
        [*_values(user), asked_at],
    )


async def add_user(db: Database, user: DirectoryUser) -> None:
    """Keep it of a user of whom nothing was known: what came meanwhile, like that they left, stays."""
    await db.query(f"{_INSERT} DO NOTHING", _values(user))


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
