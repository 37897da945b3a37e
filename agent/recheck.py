"""Checks the world again, between the claim and the first attempt: is everything still as it was shown?"""

from collections.abc import Sequence

from agent import results
from agent.drift import Stale, changed_since, withdrawn
from agent.house import House
from agent.measure import CannotMeasure, Weighed, weigh
from agent.preview import Moved, moved
from agent.schema import InvalidInput
from agent.tool import Risk
from agent.verdict import Verdict
from agent.why import Code, because
from store.records import ClaimedCall, Json, Measured
from store.rows import content

RECHECK_AGAIN = 5.0  # seconds, at first, until a re-check that could not be made is tried again
LONGEST_RECHECK_WAIT = 300.0


async def recheck(house: House, claimed: ClaimedCall) -> Stale | None:
    """Compare everything with what was shown; None: it is still so. Raises CannotMeasure."""
    name, shown = claimed.call.tool, shown_of(claimed)
    rule = claimed.approval.rule if claimed.approval else None
    why = changed_since(house, name, claimed.call.effect, shown, rule)
    if why is not None:
        return withdrawn(name, why)
    tool = house.tools[name]
    try:
        now = await weigh(house, tool, shown.input, claimed.run, again=True)
    except InvalidInput:
        return withdrawn(name, because(Code.INPUT_INVALID, tool=name))
    except CannotMeasure as error:
        # an allowed call was measured a moment ago and nobody's decision is lost: the model may ask again
        if not error.by_tool and claimed.approval is not None:
            raise
        return _not_as_shown(name, error)
    if now.measured.input_hash != shown.input_hash:
        return withdrawn(name, because(Code.READ_DIFFERENTLY))
    return None if tool.risk is Risk.READ_ONLY else _compare(claimed, shown, now)


def _compare(claimed: ClaimedCall, shown: Measured, now: Weighed) -> Stale | None:
    changes = moved(shown, now.measured)
    if changes:
        return _superseded(claimed.call.tool, changes)
    allowed = {Verdict.ALLOW} if claimed.approval is None else {Verdict.ALLOW, Verdict.ASK}
    if now.verdict not in allowed:
        return withdrawn(claimed.call.tool, now.why or because(Code.POLICY_STRICTER))
    return None


def _superseded(tool: str, changes: Sequence[Moved]) -> Stale:
    """The world changed while the call waited."""
    told: list[Json] = [change.to_json() for change in changes]
    return Stale(results.superseded(tool, changes), {"kind": "superseded", "text": None, "moved": told})


def _not_as_shown(tool: str, error: CannotMeasure) -> Stale:
    """The tool says, when it is measured again, that it cannot be as it was shown."""
    change = Moved("fact", "check", "as shown", error.message)
    told: list[Json] = [change.to_json() | {"why": error.why.to_json()}]
    return Stale(results.superseded(tool, [change]), {"kind": "superseded", "text": None, "moved": told})


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
