"""Finds what in the house has changed while an approval slept, and takes back what can no longer run."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from agent import results
from agent.edited import with_edit
from agent.house import House
from agent.measure import CannotMeasure, validated, weigh
from agent.preview import verify
from agent.results import Result
from agent.schema import InvalidInput, schema_hash
from agent.tool import Tool
from agent.verdict import Verdict
from agent.why import Code, Why, because
from store import approvals, runs
from store.errors import StoreError
from store.records import Approval, Json, Measured, Rule
from store.transitions import ApprovalStatus

log = structlog.get_logger(__name__)

PAGE = 50


@dataclass(frozen=True)
class Stale:
    """What was shown is no longer so: the model's result, and the outcome for the card."""

    result: Result
    outcome: dict[str, Json]


def withdrawn(tool: str, why: Why) -> Stale:
    """The house changed while the call waited."""
    outcome: dict[str, Json] = {"kind": "superseded", "text": why.text, "why": why.to_json(), "moved": []}
    return Stale(results.withdrawn(tool, why.text), outcome)


def changed_since(
    house: House, name: str, effect: str | None, shown: Measured, rule: Rule | None
) -> Why | None:
    """Why what was shown for a call of this tool cannot run in this house; None: it can.

    `rule` is the one that people were asked under, `effect` the class under whose name its items are held.
    Nothing of the tool's own code is called.
    """
    tool = house.tools.get(name)
    if tool is None:
        return because(Code.TOOL_GONE, tool=name)
    if not verify(shown):
        return because(Code.SHOWN_ALTERED)
    if not is_as_shown(tool, effect, shown):
        return because(Code.TOOL_CHANGED, tool=name)
    if rule is not None and not tool.can_ask:  # it measures nothing to compare with what was shown
        return because(Code.TOOL_CHANGED, tool=name)
    if rule is not None and is_stricter(house.policy.rule_for(name), rule):
        return because(Code.RULE_STRICTER, tool=name)
    return None


def is_as_shown(tool: Tool, effect: str | None, shown: Measured) -> bool:
    """Whether it has the schema and the class of effect with which something was shown."""
    return schema_hash(tool) == shown.schema_hash and tool.effect == effect


def is_stricter(now: Rule, then: Rule) -> bool:
    """Whether some decision that counted under `then` would not count under `now`.

    It compares the names of roles and not who has them: a vote counts for the role that its person had when
    they voted, also if the policy has taken it from them before the call is claimed (`claim_within`).
    """
    decide_now = {*now.approvers, *now.escalate_to}
    return (
        now.quorum > then.quorum
        or (now.four_eyes and not then.four_eyes)
        or not set(then.approvers) <= set(now.approvers)
        or not set(then.escalate_to) <= decide_now
    )


async def withdraw_outdated(house: House, looks_at: Callable[[Approval | None], None] | None = None) -> int:
    """Supersede what waits for people and can no longer run as it was shown; returns how many.

    For the start of a worker, whose tools and policy may be new. StoreError ends it; whatever else is wrong
    with one approval is left to its deadline, or to the check before the first attempt. `looks_at` is told
    which one is looked at, and None after each.
    """
    tell = looks_at or (lambda approval: None)
    moved, last = 0, ""
    while page := await approvals.pending_after(house.db, last, limit=PAGE):
        for approval in page:
            tell(approval)
            moved += await _withdraw(house, approval)
            tell(None)
        last = page[-1].id
    return moved


async def _withdraw(house: House, approval: Approval | None) -> bool:
    while approval is not None and _stands(approval):
        try:
            why = await _outdated(house, approval)
        except StoreError:
            raise
        except Exception:
            # one that cannot be looked at must not keep the others from it
            log.exception("an approval could not be looked at", approval=approval.id)
            return False
        if why is None:
            return False
        stale = withdrawn(approval.tool, why)
        told = await with_edit(house, approval, stale.result)
        if await approvals.withdraw(house.db, approval, result=told.to_json(), outcome=stale.outcome):
            return True
        approval = await approvals.read(house.db, approval.id)  # somebody voted on it or edited it
    return False


def _stands(approval: Approval) -> bool:
    return approval.status is ApprovalStatus.PENDING and approval.expires_at > approval.now


async def _outdated(house: House, approval: Approval) -> Why | None:
    why = changed_since(house, approval.tool, approval.effect, approval.shown, approval.rule)
    if why is not None:
        return why
    tool = house.tools[approval.tool]
    try:
        return await _forbidden(house, tool, approval)
    except InvalidInput:
        return because(Code.INPUT_INVALID, tool=tool.name)
    except CannotMeasure:
        return None  # that may pass


async def _forbidden(house: House, tool: Tool, approval: Approval) -> Why | None:
    """Why the policy forbids it by now. Raises InvalidInput and CannotMeasure."""
    if not any(rule.hit is Verdict.FORBID for rule in tool.rules):
        await validated(house, tool, approval.shown.input)
        return None
    run = await runs.read(house.db, approval.run_id)
    assert run is not None, approval.run_id
    now = await weigh(house, tool, approval.shown.input, run, again=True)
    return (now.why or because(Code.POLICY_FORBIDS_NOW)) if now.verdict is Verdict.FORBID else None
