"""Which clicks were answered: each once, by whichever process, and forgotten after a day."""

import asyncio

import pytest

from store import clicks
from store.engine import Database
from tests import databases
from tests.integration.store.rows import shift_clock

pytestmark = pytest.mark.store

CLICK = ("T0SHOP", "U0MARTA", "1.1", "approve", "2.2")


async def test_of_many_who_would_answer_a_click_one_does(db: Database) -> None:
    firsts = await asyncio.gather(*(clicks.first(db, CLICK) for _ in range(8)))
    assert sorted(firsts) == [False] * 7 + [True]
    assert await clicks.first(db, (*CLICK[:-1], "2.3"))


async def test_a_click_is_forgotten_after_a_day(db: Database, database: databases.Database) -> None:
    await clicks.first(db, CLICK)
    await clicks.forget(db)
    assert not await clicks.first(db, CLICK)
    shift_clock(database, "25 hours")
    await clicks.forget(db)
    assert await clicks.first(db, CLICK)
