"""What may happen to a row: the statuses of runs, calls and approvals, and every move between them.

The database's trigger that refuses any other move is generated from these tables (`trigger_sql`).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar


class RunStatus(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    EXHAUSTED = "exhausted"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CallStatus(StrEnum):
    """Where a call is."""

    PROPOSED = "proposed"
    ALLOWED = "allowed"
    ASKED = "asked"
    DEFERRED = "deferred"
    FORBIDDEN = "forbidden"
    VETOED = "vetoed"
    INVALID = "invalid"
    EXECUTING = "executing"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class ApprovalStatus(StrEnum):
    """Where an approval is."""

    PENDING = "pending"
    APPROVED = "approved"
    EXECUTING = "executing"
    EXECUTED = "executed"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


R, C, A = RunStatus, CallStatus, ApprovalStatus
S = TypeVar("S", bound=StrEnum)

# A status that is not a key here is an end.
RUN_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    R.QUEUED: frozenset({R.RUNNING, R.CANCELLED}),
    # back to queued: the lease was lost, or a transient fault with a time to try again
    R.RUNNING: frozenset({R.AWAITING_APPROVAL, R.QUEUED, R.COMPLETED, R.EXHAUSTED, R.FAILED, R.CANCELLED}),
    # running: the `finish` that closes the turn keeps the run; queued: closed by anything else
    R.AWAITING_APPROVAL: frozenset({R.RUNNING, R.QUEUED, R.CANCELLED}),
    R.FAILED: frozenset({R.QUEUED}),  # `runs retry`
}

CALL_MOVES: Mapping[CallStatus, frozenset[CallStatus]] = {
    # failed: facts, preview or precondition could not be made, so nobody is asked
    C.PROPOSED: frozenset(
        {C.ALLOWED, C.ASKED, C.DEFERRED, C.FORBIDDEN, C.VETOED, C.INVALID, C.CANCELLED, C.FAILED}
    ),
    # unknown: attempted before, and not to be tried again; failed: so was one that only reads
    C.ALLOWED: frozenset({C.EXECUTING, C.CANCELLED, C.UNKNOWN, C.FAILED}),
    C.ASKED: frozenset({C.EXECUTING, C.REJECTED, C.EXPIRED, C.SUPERSEDED, C.CANCELLED, C.UNKNOWN}),
    # asked or allowed again: to be tried again
    C.EXECUTING: frozenset({C.DONE, C.FAILED, C.SUPERSEDED, C.UNKNOWN, C.ASKED, C.ALLOWED}),
    C.UNKNOWN: frozenset({C.DONE, C.FAILED, C.ASKED, C.ALLOWED}),
}

APPROVAL_MOVES: Mapping[ApprovalStatus, frozenset[ApprovalStatus]] = {
    A.PENDING: frozenset({A.APPROVED, A.REJECTED, A.EXPIRED, A.CANCELLED, A.SUPERSEDED}),
    A.APPROVED: frozenset({A.EXECUTING, A.SUPERSEDED, A.CANCELLED, A.EXPIRED, A.UNKNOWN}),
    A.EXECUTING: frozenset({A.SUPERSEDED, A.EXECUTED, A.FAILED, A.APPROVED, A.UNKNOWN}),
    A.UNKNOWN: frozenset({A.EXECUTED, A.FAILED, A.APPROVED}),
}

# What a row may be born as.
RUN_BIRTHS = frozenset({R.QUEUED})
CALL_BIRTHS = frozenset({C.PROPOSED})
APPROVAL_BIRTHS = frozenset({A.PENDING, A.UNKNOWN})

# Statuses that say that nothing reached the world, and that something may have.
NEVER_ATTEMPTED_APPROVALS = frozenset({A.PENDING, A.REJECTED, A.EXPIRED, A.CANCELLED, A.SUPERSEDED})
ATTEMPTED_APPROVALS = frozenset({A.EXECUTED, A.FAILED, A.UNKNOWN})
NEVER_ATTEMPTED_CALLS = frozenset(
    {
        C.PROPOSED,
        C.DEFERRED,
        C.FORBIDDEN,
        C.VETOED,
        C.INVALID,
        C.REJECTED,
        C.EXPIRED,
        C.SUPERSEDED,
        C.CANCELLED,
    }
)
ATTEMPTED_CALLS = frozenset({C.DONE, C.UNKNOWN})
OPEN_CALLS = frozenset({C.PROPOSED, C.ALLOWED, C.ASKED, C.EXECUTING})  # without a result; unknown ones may be
OPEN_APPROVALS = frozenset({A.PENDING, A.APPROVED, A.EXECUTING, A.UNKNOWN})
FINISHED_RUNS = frozenset({R.COMPLETED, R.EXHAUSTED, R.FAILED, R.CANCELLED})


def quoted(statuses: Iterable[StrEnum]) -> str:
    """Statuses as SQL literals, sorted: literals, because a bound parameter cannot use a partial index."""
    return ", ".join(f"'{status.value}'" for status in sorted(statuses))


def trigger_sql(table: str, births: frozenset[S], moves: Mapping[S, frozenset[S]]) -> tuple[str, str]:
    """The trigger function and the trigger that refuse every status and move not in `moves`.

    They raise SQLSTATE VB001, which `store.errors` turns into `ForbiddenMove`.
    """
    # one comparison: each transaction prepares the expression anew
    allowed = ",".join(sorted(f"{old}>{new}" for old, after in moves.items() for new in after))
    function = f"""CREATE FUNCTION {table}_refuse_forbidden_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.status NOT IN ({quoted(births)}) THEN
      RAISE EXCEPTION '{table}: % cannot be created as %', NEW.id, NEW.status USING ERRCODE = 'VB001';
    END IF;
  ELSIF NEW.status <> OLD.status AND OLD.status || '>' || NEW.status <> ALL ('{{{allowed}}}') THEN
    RAISE EXCEPTION '{table}: % cannot go from % to %', NEW.id, OLD.status, NEW.status
      USING ERRCODE = 'VB001';
  END IF;
  RETURN NEW;
END $$"""
    trigger = f"""CREATE TRIGGER {table}_moves BEFORE INSERT OR UPDATE OF status ON {table}
  FOR EACH ROW EXECUTE FUNCTION {table}_refuse_forbidden_moves()"""
    return function, trigger
