"""Every statement locks in one order, so that none of them can end in a deadlock."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from store import approvals, audit, calls, cards, runs
from store.engine import Database
from store.records import Approval, Card, ClaimedCall, Run
from store.runs import Outcome
from tests import databases
from tests.integration.store.rows import (
    CANCELLED,
    LEASE,
    TEAM,
    a_claimed_allowed_call,
    a_draft,
    a_run,
    a_turn,
    an_attempted_call,
    approve,
    asked,
    attempt,
    cancel,
    claim_call,
    confirm,
    ending,
    execute,
    expire,
    mark_unknown,
    pending_approvals,
    propose,
    reject,
    release,
    settle,
    take,
    try_again,
    vote,
    withdraw,
)

pytestmark = pytest.mark.store

Step = Callable[[], Awaitable[Any]]


@pytest.fixture
def impatient(database: databases.Database) -> databases.Database:
    """Deadlocks are found after a moment instead of a second."""
    execute(database.admin_url, f"ALTER DATABASE {database.name} SET deadlock_timeout = '50ms'")
    return database


@pytest.fixture
def lingering(impatient: databases.Database) -> databases.Database:
    """Whoever changes a card or a notice keeps it for a moment before going on to the next."""
    execute(
        impatient.admin_url,
        """CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql
           AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END $$""",
    )
    for table in ("cards", "notices"):
        execute(
            impatient.admin_url,
            f"CREATE TRIGGER linger BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION linger()",
        )
    return impatient


def sweeps(db: Database) -> list[Step]:
    return [
        lambda: runs.recover(db),
        lambda: approvals.give_up_repeats(db, "Too old."),
        lambda: calls.stop_released(db, CANCELLED),
        lambda: calls.remind(db, [0.0]),
        lambda: claim_call(db),
        lambda: take(db),
    ]


def decisions(db: Database, approval: Approval) -> list[Step]:
    async def edit() -> bool:
        return await confirm(db, approval, await a_draft(db, approval), approved=False)

    return [
        lambda: approve(db, approval),
        lambda: vote(db, approval),
        lambda: reject(db, approval),
        edit,
        lambda: expire(db, approval),
        lambda: withdraw(db, approval),
        lambda: approvals.escalate(db, approval, [(TEAM, "U0ANA")]),
        lambda: cancel(db, approval.run_id),
    ]


def endings(db: Database, claimed: ClaimedCall) -> list[Step]:
    return [
        lambda: calls.finish_done(db, claimed, **ending()),
        lambda: calls.finish_failed(db, claimed, **ending()),
        lambda: release(db, claimed),
        lambda: release(db, claimed, lapsed=True),
        lambda: mark_unknown(db, claimed),
        lambda: settle(db, claimed.call.id),
        lambda: try_again(db, claimed.call.id),
        lambda: calls.close_unknown(db, claimed.call.id, CANCELLED),
        lambda: attempt(db, claimed),
        lambda: cancel(db, claimed.run.id),
    ]


def publishers(db: Database, card: Card, seed: int) -> list[Step]:
    """What a publisher that has the card does with it, and what others do meanwhile."""
    assert card.token is not None
    there = {"channel_id": "C0APPROVALS", "ts": f"{seed}.{card.token}"}
    return [
        partial(cards.tell_others, db, card, 1),
        partial(cards.tell_others, db, card, 0),
        partial(cards.posted, db, card, card.token, version=1, **there),
        partial(cards.failed, db, card.id, card.token, error="x", retry_in=0),
        partial(cards.lost, db, card.id, card.token),
        partial(cards.doubt, db, team_id=TEAM, **there),
        partial(cards.adopt, db, approval_id=card.approval_id, team_id=TEAM, user_id=None, **there),
        partial(cards.claim_behind, db, token=card.token, worker="w", lease=LEASE),
    ]


async def all_at_once(chosen: random.Random, steps: list[Step]) -> None:
    """Run the steps twice each, mixed, on as many connections as there are; any error is the test's."""
    mixed = [*steps, *steps]
    chosen.shuffle(mixed)
    await asyncio.gather(*(step() for step in mixed))


async def still_whole(db: Database) -> None:
    assert (await audit.verify(db)).broken == ()


async def test_decisions_and_sweeps_on_the_approvals_of_one_turn(
    db: Database, impatient: databases.Database
) -> None:
    for seed in range(12):
        turn = await pending_approvals(db, [["b1"], ["b2"], ["b1", "b2"]], quorum=2)
        steps = sweeps(db) + [step for approval in turn for step in decisions(db, approval)]
        await all_at_once(random.Random(seed), steps)
        await cancel(db, turn[0].run_id)
    await still_whole(db)


async def test_what_may_become_of_an_approved_call_while_its_run_is_stopped(
    db: Database, impatient: databases.Database
) -> None:
    for seed in range(12):
        claimed = await an_attempted_call(db, items=[f"b{seed}"])
        steps: list[Step] = [
            *endings(db, claimed),
            *sweeps(db),
            partial(runs.renew, db, [claimed.token, "next"], LEASE),
        ]
        await all_at_once(random.Random(seed), steps)
        await cancel(db, claimed.run.id)
    await still_whole(db)


async def test_what_may_become_of_an_allowed_call_while_its_run_is_recovered(
    db: Database, impatient: databases.Database
) -> None:
    for seed in range(12):
        claimed = await a_claimed_allowed_call(db, [f"b{seed}"], attempted=True)
        held = await runs.load(db, claimed.run.id, await token_of(db, claimed.run.id))
        await db.query(
            "UPDATE runs SET lease_until = house_now() - interval '1 s' WHERE id = %s", [held.run.id]
        )
        steps: list[Step] = [
            *endings(db, claimed),
            *sweeps(db),
            partial(runs.renew, db, [held.token, claimed.token], LEASE),
            partial(runs.pause, db, held),
            partial(runs.fail, db, held, "broken", CANCELLED),
            partial(runs.requeue, db, held, seconds=0, why="", fault=False),
        ]
        await all_at_once(random.Random(seed), steps)
        await cancel(db, claimed.run.id)
    await still_whole(db)


async def test_publishers_and_people_on_cards_that_warn_of_each_other_and_replace_each_other(
    db: Database, lingering: databases.Database
) -> None:
    for seed in range(8):
        turn = await pending_approvals(db, [["b1"], ["b1", "b2"], ["b2"], ["b1"]], quorum=2)
        reply = await a_reply_behind(db, turn[0])
        chosen = random.Random(seed)
        for new, old in zip(chosen.sample(turn, 3), turn, strict=False):
            await db.query(
                "UPDATE approvals SET replaces = %s WHERE id = %s AND id <> %s", [old.id, new.id, old.id]
            )
        taken = [await cards.claim_behind(db, token=f"t{n}", worker="w", lease=LEASE) for n in range(4)]
        steps = [step for card in taken if card is not None for step in publishers(db, card, seed)]
        assert len(steps) == 4 * 8
        for approval in turn:
            steps += [partial(vote, db, approval), partial(withdraw, db, approval)]
        await all_at_once(chosen, [*steps, partial(cancel, db, turn[0].run_id)])
        for run in (turn[0].run_id, reply.id):
            await cancel(db, run)
        await db.query("UPDATE cards SET shown_version = wanted_version, again_at = NULL")
    await still_whole(db)


async def a_reply_behind(db: Database, approval: Approval) -> Run:
    """A run that waits behind the approval's, with a line that says so."""
    reply = await a_run(db, thread=approval.conversation.thread_ts)
    await db.query("UPDATE notices SET ts = '1.2' WHERE dedupe_key = %s", [f"received:{reply.id}"])
    return reply


async def test_two_publishers_of_which_one_posts_what_replaces_the_others_card(
    db: Database, lingering: databases.Database
) -> None:
    for seed in range(8):
        old, new = await pending_approvals(db, [["b1"], ["b2"]])
        reply = await a_reply_behind(db, old)
        await db.query("UPDATE approvals SET replaces = %s WHERE id = %s", [old.id, new.id])
        taken = [await cards.claim_behind(db, token=f"t{n}", worker="w", lease=LEASE) for n in range(2)]
        there = [(card, {"channel_id": "C0APPROVALS", "ts": f"{seed}.{n}"}) for n, card in enumerate(taken)]
        shown = [cards.posted(db, card, card.token or "", version=1, **at) for card, at in there if card]
        assert await asyncio.gather(*shown) == [True, True]
        for run in (old.run_id, reply.id):
            await cancel(db, run)
        await db.query("UPDATE cards SET shown_version = wanted_version")


async def token_of(db: Database, run_id: str) -> str:
    row = await db.one("SELECT token FROM runs WHERE id = %s", [run_id])
    assert row is not None
    return str(row["token"])


async def test_proposals_while_their_run_is_stopped_fails_or_goes_on(
    db: Database, impatient: databases.Database
) -> None:
    for seed in range(12):
        run = await a_run(db, thread="1.1")
        claimed = await take(db)
        assert claimed is not None
        turn = await a_turn(db, claimed, 4)
        backwards = [Outcome(call.id, "asked") for call in reversed(turn)]
        new = [asked(call) for call in turn]
        steps: list[Step] = [
            partial(propose, db, claimed, backwards, new),
            partial(cancel, db, run.id),
            partial(runs.fail, db, claimed, "broken", CANCELLED),
            partial(runs.renew, db, [claimed.token], LEASE),
            partial(a_run, db, thread="1.1"),
            *sweeps(db),
        ]
        await all_at_once(random.Random(seed), steps)
        for left in await runs.listed(db, unfinished_only=True, limit=50):
            await cancel(db, left.id)
    await still_whole(db)


async def test_sweeps_of_many_runs_at_once(db: Database, database: databases.Database) -> None:
    for _ in range(3):
        made = [await pending_approvals(db, [[], []]) for _ in range(6)]
        for turn in made:
            for approval in turn:
                await approve(db, approval)
        claimed = [c for c in await asyncio.gather(*(claim_call(db) for _ in range(6))) if c is not None]
        assert len(claimed) == 6
        for call in claimed:
            await attempt(db, call)
            await release(db, call, seconds=60)
        await db.query("UPDATE calls SET first_attempt_at = now() - interval '2 days' WHERE attempts > 0")
        await asyncio.gather(
            *(approvals.give_up_repeats(db, "Too old.") for _ in range(4)),
            *(runs.recover(db) for _ in range(4)),
            *(cancel(db, turn[0].run_id) for turn in made),
        )
    await still_whole(db)
