"""Which changes wait until they are on the disk (docs/decisions/0016)."""

from typing import Any

import pytest

from store import audit, calls, cards, notices
from store.engine import Database, Params, Row
from tests import databases
from tests.integration.store.changes import CHANGES
from tests.integration.store.rows import ANA, LEASE, a_pending_approval, an_attempted_call, ending

pytestmark = pytest.mark.store


class Watching(Database):
    """A store that asks of each statement, within its transaction, whether the commit will wait."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.waits: list[bool] = []

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """One statement."""
        return (await self.together((sql, params)))[0]

    async def together(self, *statements: tuple[str, Params]) -> list[list[Row]]:
        """Statements that are committed together."""
        waiting = ("SELECT set_config('synchronous_commit', 'on', true)", None)
        shown = ("SELECT current_setting('synchronous_commit') AS it", None)
        _, *found, [setting] = await self.inner.together(waiting, *statements, shown)
        self.waits.append(setting["it"] == "on")
        return found


# What nobody outside hears of before a change that waits; of an attempt's end, only where it can be repeated.
DO_NOT_WAIT = {
    "runs.claim",
    "runs.save_turn",
    "runs.propose",
    "runs.complete",
    "runs.complete exhausted",
    "runs.fail",
    "calls.claim",
    "calls.claim_allowed",
    "calls.finish_done",
    "calls.finish_done allowed",
    "calls.finish_failed",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_waits_for_the_disk_unless_it_is_one_of_a_few(
    db: Database, database: databases.Database, change: str
) -> None:
    watching = Watching(db)
    step = await CHANGES[change][1](watching, database)
    watching.waits.clear()
    assert await step()
    assert (False in watching.waits) == (change in DO_NOT_WAIT)


@pytest.mark.parametrize("end", [calls.finish_done, calls.finish_failed])
async def test_what_became_of_what_cannot_be_repeated_waits(db: Database, end: Any) -> None:
    claimed = await an_attempted_call(db, repeatable=False)
    watching = Watching(db)
    assert await end(watching, claimed, **ending())
    assert watching.waits == [True]


async def test_what_is_posted_next_waits(db: Database) -> None:
    await a_pending_approval(db)
    watching = Watching(db)
    assert await cards.claim_behind(watching, token="t", worker="w", lease=LEASE)
    assert await notices.claim(watching, token="t", worker="w", lease=LEASE)
    assert watching.waits == [True, True]


async def test_a_refused_click_waits(db: Database) -> None:
    watching = Watching(db)
    await audit.append(watching, kind="click.refused", actor=ANA)
    assert watching.waits == [True]
