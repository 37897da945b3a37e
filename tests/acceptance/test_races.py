"""200 races of each kind between eight processes: one winner each time, and every loser is told who won."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.scripted import call, script, step
from store import audit
from tests.acceptance.racing import RACERS, USERS, Kind, Race, Said, run_all
from tests.databases import Database
from tests.integration.agent.office import Office, office

TIMES = 200
PAY = [call("pay", {"bills": [f"b{number}"]}) for number in range(TIMES)]
STATUS = {"approve": "approved", "edit": "approved", "reject": "rejected", "expire": "expired"}
NAMES = [user.removeprefix("U0").capitalize() for user in USERS]


@pytest.fixture
async def many_ask(database: Database, tmp_path: Path) -> AsyncIterator[Office]:
    """200 approvals of one run."""
    async with office(database, tmp_path, script(step(*PAY))) as o:
        await o.start()
        await o.work()
        yield o


@pytest.fixture
async def many_runs_ask(database: Database, tmp_path: Path) -> AsyncIterator[Office]:
    """200 approvals, each of a run of its own."""
    async with office(database, tmp_path, script(step(PAY[0]))) as o:
        for number in range(TIMES):
            await o.start(key=f"ev{number}", thread=f"1.{number}")
        await o.work()
        yield o


def run_races(o: Office, database: Database, folder: Path, kind: Kind) -> list[tuple[str, list[Said]]]:
    """Run a race of the kind for every approval that waits; gives what was said, with the approval's id."""
    waiting = o.execute("SELECT id, run_id FROM approvals WHERE status = 'pending'")
    assert len(waiting) == TIMES
    races = [Race(kind, approval_id, run_id) for approval_id, run_id in waiting]
    said = run_all(database, folder, races)
    return [(race.approval_id, words) for race, words in zip(races, said, strict=True)]


@dataclass(frozen=True)
class End:
    """How an approval ended: who decided it last, how many decisions are recorded, and the ends, in order.

    `late`: somebody decided when its time was over.
    """

    status: str
    by: str | None
    decisions: int
    events: list[str]
    late: bool = False


def ends(o: Office) -> dict[str, End]:
    """How each approval ended."""
    found = o.execute(
        """SELECT id, status::text, decided_by->>'name',
       (SELECT count(*) FROM decisions d WHERE d.approval_id = a.id),
       ARRAY(SELECT kind FROM audit_events e WHERE e.approval_id = a.id
                AND kind IN ('approval.approved', 'approval.rejected', 'approval.expired') ORDER BY seq),
       coalesce(decided_at, '-infinity') >= expires_at
  FROM approvals a"""
    )
    return {approval_id: End(*values) for approval_id, *values in found}


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("approve/approve", {"approve"}),
        ("approve/reject", {"approve", "reject"}),
        ("approve/expire", {"approve", "expire"}),
        ("edit/approve", {"edit", "approve"}),
    ],
)
async def test_one_of_eight_wins_each_time_and_the_others_are_told_who(
    database: Database, tmp_path: Path, many_ask: Office, kind: Kind, parts: set[str]
) -> None:
    said = run_races(many_ask, database, tmp_path, kind)
    ended, won = ends(many_ask), Counter[str]()
    for approval_id, told in said:
        winners, end = [one for one in told if one.won], ended[approval_id]
        assert not end.late, f"{approval_id} was decided after its deadline"
        assert len(winners) == end.decisions == (0 if end.status == "expired" else 1)
        part, name = (winners[0].part, NAMES[winners[0].racer]) if winners else ("expire", None)
        assert (end.status, end.by, end.events) == (STATUS[part], name, [f"approval.{STATUS[part]}"])
        for loser in (one for one in told if not one.won):
            assert f"by {name}" in loser.words if winners else "expired" in loser.words, loser
        won[part] += 1
    assert set(won) == parts, f"one side always won, so they did not collide: {won}"
    assert (await audit.verify(many_ask.house.db)).broken == ()


async def test_one_of_eight_stops_a_run_and_who_would_approve_is_told(
    database: Database, tmp_path: Path, many_runs_ask: Office
) -> None:
    said = run_races(many_runs_ask, database, tmp_path, "cancel/approve")
    ended, first = ends(many_runs_ask), Counter[str]()
    for approval_id, told in said:
        [first_to_stop] = [one for one in told if one.won and one.part == "cancel"]
        stopped_by = NAMES[first_to_stop.racer]
        approvers = [one for one in told if one.won and one.part == "approve"]
        by = NAMES[approvers[0].racer] if approvers else None
        events = ["approval.approved"] * len(approvers)
        assert ended[approval_id] == End("cancelled", by, len(approvers), events)
        assert len(told) == RACERS
        for loser in told:
            if not loser.won and loser.part == "approve":
                # one that comes between the two is told of either: the approval, or the stop
                assert f"stopped by {stopped_by}" in loser.words or f"approved by {by}" in loser.words, loser
            elif not loser.won:
                assert f"(cancelled by {stopped_by} " in loser.words, loser
        first["approve" if approvers else "cancel"] += 1
    assert set(first) == {"approve", "cancel"}, f"they did not collide: {first}"
    await many_runs_ask.work()
    assert many_runs_ask.world.paid == []
    assert (await audit.verify(many_runs_ask.house.db)).broken == ()
