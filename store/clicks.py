"""Clicks that were answered: whoever is told something about a click is told once, by whichever process."""

import hashlib
from collections.abc import Sequence

from store.engine import Database


async def first(db: Database, key: Sequence[str]) -> bool:
    """Whether nobody has answered the click of this key yet; from now on, somebody has.

    Only a hash of the key is kept, for a day: Slack delivers nothing that much later.
    """
    row = await db.one(
        "INSERT INTO answered_clicks (key) VALUES (%s) ON CONFLICT DO NOTHING RETURNING key", [_hash(key)]
    )
    return row is not None


async def forget(db: Database) -> None:
    """Forget what was answered more than a day ago."""
    await db.query("DELETE FROM answered_clicks WHERE at < house_now() - interval '1 day'")


def _hash(key: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(key).encode("utf-8", "replace")).hexdigest()
