"""Which steps wait until they are on the disk (docs/decisions/0016)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import audit, calls, cards, notices, runs
from store.engine import Database, Params, Row
from tests import databases
from tests.integration.store.rows import (
    ANA,
    CANCELLED,
    LEASE,
    a_claimed_call,
    a_claimed_run,
    a_pending_approval,
    a_run,
    a_turn,
    an_approved_one,
    an_attempted_call,
    approve,
    attempt,
    cancel,
    claim_call,
    ending,
    expire,
    mark_unknown,
    reject,
    release,
    shift_clock,
    take,
    vote,
)

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


Made = Callable[[Database], Awaitable[Any]]
Step = Callable[[Database, Any], Awaitable[Any]]


async def _nothing(db: Database) -> None:
    return None


async def _an_attempt_that_cannot_be_repeated(db: Database) -> Any:
    return await an_attempted_call(db, repeatable=False)


def _words(db: Database, claimed: Any) -> Awaitable[bool]:
    return runs.complete(db, claimed, body=[], answer="Done.", input_tokens=0, output_tokens=0)


WAITS: dict[str, tuple[Made, Step]] = {
    "a message": (_nothing, lambda db, _: a_run(db)),
    "a vote": (a_pending_approval, vote),
    "an approval": (a_pending_approval, approve),
    "a rejection": (a_pending_approval, reject),
    "a refused click": (_nothing, lambda db, _: audit.append(db, kind="click.refused", actor=ANA)),
    "a stopped run": (a_claimed_run, lambda db, claimed: cancel(db, claimed.run.id)),
    "the start of an attempt": (a_claimed_call, attempt),
    "what became of what cannot be repeated": (
        _an_attempt_that_cannot_be_repeated,
        lambda db, claimed: calls.finish_done(db, claimed, **ending()),
    ),
    "how what cannot be repeated failed": (
        _an_attempt_that_cannot_be_repeated,
        lambda db, claimed: calls.finish_failed(db, claimed, **ending()),
    ),
    "an unknown outcome": (an_attempted_call, mark_unknown),
    "a call given back": (an_attempted_call, release),
    "a card to post": (
        a_pending_approval,
        lambda db, _: cards.claim_behind(db, token="t", worker="w", lease=LEASE),
    ),
    "a notice to post": (a_run, lambda db, _: notices.claim(db, token="t", worker="w", lease=LEASE)),
}

DOES_NOT_WAIT: dict[str, tuple[Made, Step]] = {
    "a claimed run": (a_run, lambda db, _: take(db)),
    "a turn": (a_claimed_run, a_turn),
    "a claimed call": (an_approved_one, lambda db, _: claim_call(db)),
    "what became of what can be repeated": (
        an_attempted_call,
        lambda db, claimed: calls.finish_done(db, claimed, **ending()),
    ),
    "last words": (a_claimed_run, _words),
    "a failed run": (a_claimed_run, lambda db, claimed: runs.fail(db, claimed, "broken", CANCELLED)),
}


@pytest.mark.parametrize("step", WAITS)
async def test_waits_for_the_disk(db: Database, step: str) -> None:
    made, do = WAITS[step]
    watching, subject = Watching(db), await made(db)
    await do(watching, subject)
    assert watching.waits[0]


@pytest.mark.parametrize("step", DOES_NOT_WAIT)
async def test_does_not_wait_for_the_disk(db: Database, step: str) -> None:
    made, do = DOES_NOT_WAIT[step]
    watching, subject = Watching(db), await made(db)
    await do(watching, subject)
    assert not watching.waits[0]


async def test_a_refusal_by_silence_waits_for_the_disk(db: Database, database: databases.Database) -> None:
    approval = await a_pending_approval(db)
    shift_clock(database, "24 hours")
    watching = Watching(db)
    assert await expire(watching, approval)
    assert watching.waits == [True]
