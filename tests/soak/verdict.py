"""What must be true afterwards, read from the provider, the database and Slack."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from store import audit
from store.engine import Database
from tests.soak.people import APPROVALS, People, Press
from tests.soak.place import LEADS, Place

RECORDED = ("You approved", "You rejected")
NOT_RECORDED = ("nothing was recorded",)
NOT_CONFIRMED = ("It is not confirmed",)
ALREADY = ("Already approved", "Already rejected", "You have already")
WORKED = {"executed"}
CLOSED = {"executed", "rejected"}

APPROVED = """
SELECT a.id, a.status::text, a.decided_at, a.decided_by->>'user' AS decided_by, v.items,
       (SELECT count(*) FROM audit_events e WHERE e.approval_id = a.id
           AND e.kind IN ('approval.approved', 'approval.rejected')) AS decisions
  FROM approvals a JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision"""
ORPHANS = "SELECT id, run_id, status::text FROM calls WHERE result IS NULL"
UNFINISHED = """
SELECT (SELECT count(*) FROM runs WHERE status IN ('completed', 'exhausted', 'failed', 'cancelled')) AS ended,
       (SELECT count(*) FROM cards WHERE shown_version IS DISTINCT FROM wanted_version)
       + (SELECT count(*) FROM notices WHERE posted_at IS NULL) AS behind"""
HELD = "SELECT count(*) AS n FROM held_items"


@dataclass
class Verdict:
    """The numbers, and every sentence about what must not be; none: all is well."""

    runs: Counter[str] = field(default_factory=Counter)
    approvals: Counter[str] = field(default_factory=Counter)
    refunds: int = 0
    distinct: int = 0
    approved_items: int = 0
    events: int = 0
    presses: int = 0
    told: Counter[str] = field(default_factory=Counter)
    cards: int = 0
    violations: list[str] = field(default_factory=list)


async def judge(place: Place, people: People) -> Verdict:
    """Look at everything."""
    verdict = Verdict()
    rows = _rows(place, APPROVED)
    verdict.runs.update(row["status"] for row in _rows(place, "SELECT status::text FROM runs"))
    verdict.approvals.update(row["status"] for row in rows)
    verdict.violations += [
        *_runs(verdict, people),
        *_refunds(place, verdict, rows),
        *_rest(place),
        *_presses(people, verdict, {row["id"]: row for row in rows}),
        *_slack(place, verdict),
        *place.model.broken_rules,
    ]
    db = Database.open(place.server.url, statement_timeout=300)
    try:
        verified = await audit.verify(db)
    finally:
        await db.close()
    verdict.events = verified.events
    verdict.violations += [f"the record is broken: {each}" for each in verified.broken]
    return verdict


def unfinished(place: Place, asked: int) -> int:
    """How many of so many runs have not ended, and cards and notices are not yet as they should be."""
    [row] = _rows(place, UNFINISHED)
    return asked - int(row["ended"]) + int(row["behind"])


def _rows(place: Place, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(place.server.admin_url, autocommit=True, row_factory=dict_row) as connection:
        return connection.execute(query).fetchall()


def _runs(verdict: Verdict, people: People) -> Iterator[str]:
    if verdict.runs.total() != people.asked:
        yield f"{people.asked} runs were asked for, and there are {verdict.runs.total()}"
    for status, n in verdict.runs.items():
        if status != "completed":
            yield f"{n} runs are {status}"


def _refunds(place: Place, verdict: Verdict, rows: list[dict[str, Any]]) -> Iterator[str]:
    made = [refund.payment_id for refund in place.provider.refunds]
    approved = [item for row in rows if row["status"] in WORKED for item in row["items"]]
    verdict.refunds, verdict.distinct, verdict.approved_items = len(made), len(set(made)), len(approved)
    if Counter(made) != Counter(approved):
        wrong = (Counter(made) - Counter(approved)) + (Counter(approved) - Counter(made))
        yield f"refunds and approved refunds differ in {wrong.total()} payments, like {list(wrong)[:4]}"
    for row in rows:
        if row["status"] not in CLOSED:
            yield f"approval {row['id']} is {row['status']}"
        if row["decisions"] != 1:
            yield f"approval {row['id']} has {row['decisions']} decisions on the record"


def _rest(place: Place) -> Iterator[str]:
    for row in _rows(place, ORPHANS):
        yield f"call {row['id']} of {row['run_id']} is {row['status']} without a result"
    [held] = _rows(place, HELD)
    if held["n"]:
        yield f"{held['n']} items are still held"


def _presses(people: People, verdict: Verdict, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Everybody was told the truth about what was recorded."""
    verdict.presses = len(people.presses)
    for press in people.presses:
        row = rows.get(press.approval_id)
        if row is None:
            yield f"{press.person_id} pressed {press.approval_id}, which is not there"
            continue
        if not press.told:
            verdict.told["nothing came"] += 1
        for sentence in press.told:
            yield from _heard(press, sentence, row, verdict)


def _heard(press: Press, sentence: str, row: dict[str, Any], verdict: Verdict) -> Iterator[str]:
    decided = row["decided_at"].timestamp() if row["decided_at"] else None
    theirs = row["decided_by"] == press.person_id
    during = decided is not None and press.began <= decided <= press.ended
    who = f"{press.person_id} at {press.approval_id}"
    if any(words in sentence for words in RECORDED):
        verdict.told["recorded"] += 1
        if not theirs or decided is None or decided > press.ended + 1:
            yield f"{who} was told that it was recorded, and it was not: {row}"
    elif any(words in sentence for words in NOT_RECORDED):
        verdict.told["not recorded"] += 1
        if theirs and during and len(press.told) == 1:
            yield f"{who} was told that nothing was recorded, and it was: {row}"
    elif any(words in sentence for words in NOT_CONFIRMED):
        verdict.told["not confirmed"] += 1
    elif any(words in sentence for words in ALREADY):
        verdict.told["was decided before"] += 1
        if decided is None or decided > press.ended + 1:
            yield f"{who} was told that it was decided before, and it was not: {row}"
    else:
        verdict.told["other"] += 1
        yield f"{who} was told what nobody foresaw: {sentence!r}"


def _slack(place: Place, verdict: Verdict) -> Iterator[str]:
    lead = place.sandbox.person(LEADS[0])
    cards = place.sandbox.channel(APPROVALS).messages
    verdict.cards = len(cards)
    for card in cards:
        if lead.buttons(card):
            yield f"the card {card.ts} can still be pressed"
