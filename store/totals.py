"""How much there is in the database, in numbers."""

from dataclasses import dataclass

from store.engine import Database


@dataclass(frozen=True)
class Totals:
    """How many rows of each kind there are; a decision is one person's say on one revision."""

    runs: int
    approvals: int
    decisions: int


async def count(db: Database) -> Totals:
    """Count them; it reads whole tables, so it is for small databases."""
    row = await db.one(
        """SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM approvals) AS approvals,
       (SELECT count(*) FROM decisions) AS decisions"""
    )
    assert row is not None
    return Totals(row["runs"], row["approvals"], row["decisions"])
