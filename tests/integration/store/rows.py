"""Rows for tests, each made by the store's own functions."""

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import psycopg

from agent.canonical import digest
from store import approvals, calls, runs
from store.engine import Database
from store.records import Actor, Approval, Call, ClaimedCall, ClaimedRun, Draft, Measured, Rule, Run, Vote
from store.runs import NewApproval, Outcome
from store.values import new_id
from tests import databases

TEAM = "T0SHOP"
LEO = Actor("person", TEAM, "U0LEO", "Leo")
MARTA = Actor("person", TEAM, "U0MARTA", "Marta", "support_lead")
ANA = Actor("person", TEAM, "U0ANA", "Ana", "admin")
RULE = Rule(("support_lead",), ("admin",), 1, True, 86400.0, 14400.0, 3600.0, "C0APPROVALS")
CANCELLED = {
    "content": {"ok": False, "cancelled": True, "executed": False, "toolName": ""},
    "is_error": False,
}
TOLD = {"content": {"ok": True}, "is_error": False}
LEASE = 15.0
_numbers = count(1)


def person(user: str) -> Actor:
    return Actor("person", TEAM, user, user, "support_lead")


def content(items: Sequence[str] = ("b1", "b2")) -> Measured:
    """What a revision shows for these items."""
    shown: dict[str, Any] = {"bills": list(items)}
    return Measured(
        shown,
        digest(shown),
        {"count": len(items), "amount": None, "items": list(items), "more": {}},
        tuple(items),
        digest(list(items)),
        {"bills due": 38},
        {"title": f"Pay {len(items)} bills", "impact": [], "columns": [], "sample": []},
        "preview",
        "schema",
    )


# --- runs ---


async def a_run(db: Database, *, key: str | None = None, thread: str | None = "") -> Run:
    """A queued run; without `thread`, in a conversation of its own."""
    number = next(_numbers)
    run, _ = await runs.start(
        db,
        team_id=TEAM,
        channel_id="C0SUPPORT",
        thread_ts=f"{number}.1" if thread == "" else thread,
        agent="Helper",
        task="Pay the bills.",
        requester=LEO,
        source_key=key or f"event-{number}",
    )
    return run


async def take(db: Database) -> ClaimedRun | None:
    """The oldest run that may go on, claimed."""
    token = new_id("tok")
    found = await runs.claim(db, token=token, worker="w1", lease=LEASE)
    return None if found is None else await runs.load(db, found, token)


async def a_claimed_run(db: Database, **values: Any) -> ClaimedRun:
    """A new run, claimed; nothing else may be queued."""
    run = await a_run(db, **values)
    claimed = await take(db)
    assert claimed is not None
    assert claimed.run.id == run.id
    return claimed


async def reloaded(db: Database, claimed: ClaimedRun) -> ClaimedRun:
    """The same claim with the run as it is now."""
    return await runs.load(db, claimed.run.id, claimed.token)


async def a_turn(db: Database, claimed: ClaimedRun, number: int = 1, effect: str = "payment") -> list[Call]:
    """A saved turn with so many proposed calls."""
    new = [
        {
            "id": new_id("call"),
            "position": position,
            "provider_id": f"toolu_{position}",
            "tool": "pay",
            "effect": effect,
            "input": {"bills": ["b1", "b2"]},
            "rationale": "They are due.",
        }
        for position in range(number)
    ]
    body = [{"role": "user", "content": []}, {"role": "assistant", "content": []}]
    saved = await runs.save_turn(db, claimed, body=body, calls=new, input_tokens=1, output_tokens=1)
    assert saved is not None
    return saved


def asked(
    call: Call, items: Sequence[str] = ("b1", "b2"), *, effect: str = "payment", **rule: Any
) -> NewApproval:
    """The approval of a call, to be proposed."""
    return NewApproval(new_id("apr"), call.id, "pay", effect, replace(RULE, **rule), content(items), TEAM)


async def propose(
    db: Database, claimed: ClaimedRun, outcomes: Sequence[Outcome], new: Sequence[NewApproval] = ()
) -> bool:
    """Record verdicts, with an event for each, and pause where people are asked."""
    events = [
        {"kind": f"call.{o.status}", "actor": LEO.to_json(), "approval": None, "call": o.call_id, "data": {}}
        for o in outcomes
    ]
    return await runs.propose(db, claimed, outcomes, new, notices=[], events=events, pause=bool(new))


# --- approvals ---


async def pending_approvals(
    db: Database, items: Iterable[Sequence[str]], effect: str = "payment", **rule: Any
) -> list[Approval]:
    """One run whose turn asks once for each of `items`."""
    items = list(items)
    claimed = await a_claimed_run(db)
    turn = await a_turn(db, claimed, len(items), effect)
    new = [asked(call, some, effect=effect, **rule) for call, some in zip(turn, items, strict=True)]
    assert await propose(db, claimed, [Outcome(a.call_id, "asked") for a in new], new)
    return [await the(db, a.id) for a in new]


async def a_pending_approval(
    db: Database, items: Sequence[str] = ("b1", "b2"), effect: str = "payment", **rule: Any
) -> Approval:
    """A run that waits for one approval."""
    (approval,) = await pending_approvals(db, [items], effect, **rule)
    return approval


async def an_approved_one(
    db: Database, items: Sequence[str] = ("b1", "b2"), effect: str = "payment", **rule: Any
) -> Approval:
    """An approval that may execute."""
    approval = await a_pending_approval(db, items, effect, **rule)
    assert await approve(db, approval)
    return await the(db, approval.id)


async def the(db: Database, approval_id: str) -> Approval:
    """The approval as it is now."""
    found = await approvals.read(db, approval_id)
    assert found is not None
    return found


def vote_of(actor: Actor) -> Vote:
    return Vote(actor, "2026-11-30T00:00:00+00:00")


async def approve(db: Database, approval: Approval, actor: Actor = MARTA) -> bool:
    votes = [*approval.votes, vote_of(actor)]
    return await approvals.approve(db, approval, actor, votes, None) is not None


async def vote(db: Database, approval: Approval, actor: Actor = MARTA) -> bool:
    votes = [*approval.votes, vote_of(actor)]
    return await approvals.vote(db, approval, actor, votes, None) is not None


async def reject(db: Database, approval: Approval, actor: Actor = MARTA) -> bool:
    won = await approvals.reject(db, approval, actor, "Not today.", result=CANCELLED, veto=True)
    return won is not None


async def withdraw(db: Database, approval: Approval) -> bool:
    return await approvals.withdraw(db, approval, result=TOLD, outcome={"kind": "superseded"})


async def expire(db: Database, approval: Approval) -> bool:
    return await approvals.expire(
        db, approval, result=CANCELLED, reason="deadline", people=[(TEAM, "U0ANA"), (TEAM, "U0LEO")]
    )


async def a_draft(db: Database, approval: Approval, author: Actor = MARTA) -> Draft:
    """A previewed edit down to one item."""
    return await approvals.save_draft(db, approval, author, content(["b1"]))


async def confirm(
    db: Database, approval: Approval, draft: Draft, actor: Actor = MARTA, *, approved: bool = True
) -> bool:
    won = await approvals.confirm_draft(db, approval, draft, actor, [vote_of(actor)], None, approved=approved)
    return won is not None


# --- calls ---


async def claim_call(db: Database, worker: str = "w1") -> ClaimedCall | None:
    return await calls.claim(db, token=new_id("tok"), worker=worker, lease=LEASE)


async def a_claimed_call(db: Database, items: Sequence[str] = ("b1", "b2"), **values: Any) -> ClaimedCall:
    """An approved call under a worker's lease."""
    approval = await an_approved_one(db, items, **values)
    claimed = await claim_call(db)
    assert claimed is not None
    assert claimed.call.id == approval.call_id
    return claimed


async def attempt(db: Database, claimed: ClaimedCall, *, repeatable: bool = True) -> str | None:
    return await calls.start_attempt(db, claimed, key=claimed.call.id, repeatable=repeatable, lease=LEASE)


async def an_attempted_call(db: Database, *, repeatable: bool = True, **values: Any) -> ClaimedCall:
    """An approved call whose first attempt has begun."""
    claimed = await a_claimed_call(db, **values)
    assert await attempt(db, claimed, repeatable=repeatable) is not None
    return claimed


async def an_allowed_call(
    db: Database, items: Sequence[str] = ("b1", "b2"), effect: str = "payment"
) -> tuple[ClaimedRun, Call]:
    """A call that the policy allows, of a run that a worker holds."""
    claimed = await a_claimed_run(db)
    (call,) = await a_turn(db, claimed, effect=effect)
    measured = {k: list(v) if k == "items" else v for k, v in vars(content(items)).items()}
    outcome = Outcome(call.id, "allowed", effect=effect, measured=measured, items=tuple(items))
    assert await propose(db, claimed, [outcome])
    return await reloaded(db, claimed), await the_call(db, call.id)


async def claim_allowed(db: Database, run: ClaimedRun, call: Call) -> ClaimedCall | None:
    return await calls.claim_allowed(
        db, call.id, run_token=run.token, token=new_id("tok"), worker="w1", lease=LEASE
    )


async def a_claimed_allowed_call(
    db: Database, items: Sequence[str] = ("b1", "b2"), *, attempted: bool = False, repeatable: bool = True
) -> ClaimedCall:
    """An allowed call under a worker's lease."""
    claimed = await claim_allowed(db, *await an_allowed_call(db, items))
    assert claimed is not None
    if attempted:
        assert await attempt(db, claimed, repeatable=repeatable) is not None
    return claimed


async def the_call(db: Database, call_id: str) -> Call:
    found = await calls.read(db, call_id)
    assert found is not None
    return found


async def the_run(db: Database, run_id: str) -> Run:
    found = await runs.read(db, run_id)
    assert found is not None
    return found


def ending(**values: Any) -> dict[str, Any]:
    """What `finish_done`, `finish_failed` and `supersede` take."""
    return {
        "result": TOLD,
        "outcome": {"kind": "executed"},
        "run_token": "next",
        "worker": "w1",
        "lease": LEASE,
        **values,
    }


async def mark_unknown(db: Database, claimed: ClaimedCall, *, lapsed: bool = False) -> bool:
    born = asked(claimed.call) if claimed.approval is None else None
    return await calls.mark_unknown(
        db, claimed.call.id, claimed.token, why="No answer.", approval=born, lapsed=lapsed
    )


async def settle(db: Database, call_id: str, *, ran: bool = True) -> bool:
    return await calls.settle(db, call_id, ANA, ran=ran, result=TOLD, outcome={"kind": "executed"})


async def try_again(db: Database, call_id: str, *, attempts: int = 1) -> bool:
    return await calls.try_again(db, call_id, ANA, attempts=attempts)


async def an_unknown_call(db: Database, *, allowed: bool = False) -> ClaimedCall:
    """A call that was attempted once, of which nobody knows whether it ran."""
    if allowed:
        claimed = await a_claimed_allowed_call(db, attempted=True, repeatable=False)
    else:
        claimed = await an_attempted_call(db, repeatable=False)
    assert await mark_unknown(db, claimed)
    return claimed


async def release(db: Database, claimed: ClaimedCall, *, seconds: float = 0, lapsed: bool = False) -> bool:
    return await calls.release(
        db, claimed.call.id, claimed.token, seconds=seconds, why="Again.", lapsed=lapsed
    )


async def cancel(db: Database, run_id: str) -> bool:
    return await runs.cancel(db, run_id, LEO, CANCELLED)


# --- around the store ---


def shift_clock(database: databases.Database, interval: str) -> None:
    """Let the house's one clock be ahead by so much."""
    execute(
        database.owner_url,
        "CREATE OR REPLACE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE"
        f" AS $$SELECT now() + interval '{interval}'$$",
    )


def execute(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows; it does not wait for ever for what this thread is to commit."""
    with psycopg.connect(url, autocommit=True, options="-c lock_timeout=20s") as connection:
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def tampering(database: databases.Database) -> Any:
    """A connection of the server's superuser for which no trigger counts."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection
