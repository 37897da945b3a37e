"""Checks the world again, between the claim and the first attempt: is everything still as it was shown?"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent import results
from agent.house import House
from agent.measure import CannotMeasure, Weighed, weigh
from agent.preview import Moved, moved, verify
from agent.results import Result
from agent.schema import InvalidInput, schema_hash
from agent.tool import Risk
from agent.verdict import Verdict
from store.records import ClaimedCall, Json, Measured
from store.rows import content

RECHECK_AGAIN = 5.0  # seconds, at first, until a re-check that could not be made is tried again
LONGEST_RECHECK_WAIT = 300.0


@dataclass(frozen=True)
class Stale:
    """What was shown is no longer so: the model's result, and the outcome for the card."""

    result: Result
    outcome: dict[str, Json]


async def recheck(house: House, claimed: ClaimedCall) -> Stale | None:
    """Compare everything with what was shown; None: it is still so. Raises CannotMeasure."""
    name, shown = claimed.call.tool, shown_of(claimed)
    tool = house.tools.get(name)
    if tool is None:
        return _withdrawn(name, f"There is no tool {name} any more.")
    if not verify(shown):
        return _withdrawn(name, "The stored request does not match what was shown.")
    if schema_hash(tool) != shown.schema_hash:
        return _withdrawn(name, f"The input of {name} has another form now.")
    try:
        now = await weigh(house, tool, shown.input, claimed.run, again=True)
    except InvalidInput:
        return _withdrawn(name, f"The input of {name} is no longer valid.")
    except CannotMeasure as error:
        # an allowed call was measured a moment ago and nobody's decision is lost: the model may ask again
        if not error.by_tool and claimed.approval is not None:
            raise
        return _superseded(name, [Moved("fact", "check", "as shown", error.message)])
    if now.measured.input_hash != shown.input_hash:
        return _withdrawn(name, "The stored request is read differently now.")
    return None if tool.risk is Risk.READ_ONLY else _compare(claimed, shown, now)


def _compare(claimed: ClaimedCall, shown: Measured, now: Weighed) -> Stale | None:
    changes = moved(shown, now.measured)
    if changes:
        return _superseded(claimed.call.tool, changes)
    allowed = {Verdict.ALLOW} if claimed.approval is None else {Verdict.ALLOW, Verdict.ASK}
    if now.verdict not in allowed:
        return _withdrawn(claimed.call.tool, now.why or "The policy is stricter now.")
    return None


def _withdrawn(tool: str, why: str) -> Stale:
    """The house changed while the call waited."""
    return Stale(results.withdrawn(tool, why), {"kind": "superseded", "text": why, "moved": []})


def _superseded(tool: str, changes: Sequence[Moved]) -> Stale:
    """The world changed while the call waited."""
    told: list[Json] = [change.to_json() for change in changes]
    return Stale(results.superseded(tool, changes), {"kind": "superseded", "text": None, "moved": told})


def recheck_in(claimed: ClaimedCall) -> float:
    """Seconds until a re-check that could not be made is tried again: more, the longer ago the decision."""
    approval = claimed.approval
    since = approval.decided_at if approval is not None else None
    if approval is None or since is None:
        return RECHECK_AGAIN
    return min(max((approval.now - since).total_seconds() / 2, RECHECK_AGAIN), LONGEST_RECHECK_WAIT)


def shown_of(claimed: ClaimedCall) -> Measured:
    """What was shown for a call, or, for an allowed one, what its verdict was reckoned from."""
    return claimed.approval.shown if claimed.approval else content(claimed.call.measured)
