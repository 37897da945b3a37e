"""Turns a turn's calls into verdicts, and those that ask into approvals: one statement, then the run ends."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent import results
from agent.canonical import digest
from agent.house import House
from agent.measure import CannotMeasure, Weighed, validated, weigh
from agent.results import Result
from agent.schema import InvalidInput
from agent.tool import Risk, Tool
from agent.verdict import Verdict
from store import approvals, runs
from store.records import Actor, Approval, Call, ClaimedRun, Json, Veto
from store.rows import content_json
from store.runs import NewApproval, Outcome
from store.transitions import CallStatus
from store.values import new_id

Status = CallStatus


@dataclass
class Proposal:
    """Verdicts gathered until they are recorded together: outcomes, approvals, events of the record."""

    actor: Actor
    outcomes: list[Outcome] = field(default_factory=list)
    approvals: list[NewApproval] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def replaced(self) -> set[str]:
        """The ids of the approvals that those asked for replace."""
        return {approval.replaces for approval in self.approvals if approval.replaces}

    def add(self, call: Call, status: Status, result: Result | None = None, **values: Any) -> None:
        """A verdict and its event."""
        told = None if result is None else result.to_json()
        self.outcomes.append(Outcome(call.id, status.value, told, **values))
        data = {"tool": call.tool, "turn": call.turn, "result": told}
        self.events.append(self._event(f"call.{status.value}", call, None, data))

    def ask(self, call: Call, approval: NewApproval) -> None:
        """A call that people are asked about."""
        shown = approval.content
        self.outcomes.append(Outcome(call.id, Status.ASKED.value, items=shown.items, effect=approval.effect))
        self.approvals.append(approval)
        data = {
            "tool": call.tool,
            "revision": 1,
            "input": shown.input,
            "input_hash": shown.input_hash,
            "facts": shown.facts,
            "items_digest": shown.items_digest,
            "precondition": shown.precondition,
            "preview_hash": shown.preview_hash,
            "schema_hash": shown.schema_hash,
            "rule": approval.rule.to_json(),
            "replaces": approval.replaces,
        }
        self.events.append(self._event("approval.requested", call, approval.id, data))

    def _event(self, kind: str, call: Call, approval_id: str | None, data: dict[str, Any]) -> dict[str, Any]:
        return {
            "kind": kind,
            "actor": self.actor.to_json(),
            "approval": approval_id,
            "call": call.id,
            "data": data,
        }

    async def record(self, house: House, claimed: ClaimedRun) -> bool:
        """Write it all in one statement; with approvals the run ends here. False: the run is not ours."""
        pause = bool(self.approvals)
        deferred = sum(o.status == Status.DEFERRED.value for o in self.outcomes)
        notices = []
        if pause:
            ids = [a.id for a in self.approvals]
            notices.append(
                {
                    "dedupe_key": f"asked:{ids[0]}",
                    "kind": "call_asked",
                    "data": {"approval_ids": ids, "deferred": deferred},
                }
            )
        return await runs.propose(
            house.db,
            claimed,
            self.outcomes,
            self.approvals,
            notices=notices,
            events=self.events,
            pause=pause,
        )


@dataclass(frozen=True)
class Refused:
    """The call goes no further; this is its status and what the model is told."""

    status: Status
    result: Result


@dataclass(frozen=True)
class Judged:
    """A call with its tool and measurements, to be allowed or asked."""

    call: Call
    tool: Tool
    weighed: Weighed

    @property
    def asks(self) -> bool:
        """Whether people are asked."""
        return self.weighed.verdict is Verdict.ASK


async def judge_call(
    house: House,
    claimed: ClaimedRun,
    call: Call,
    replaced: Collection[str] = (),
    later: Sequence[Call] = (),
) -> Judged | Refused:
    """What becomes of a proposed call, before anything is done about it.

    `replaced` are the ids of the approvals that calls before it in the turn replace, `later` are those after.
    """
    tool = house.tools.get(call.tool)
    if tool is None:
        return Refused(Status.INVALID, results.no_such_tool(call.tool, house.tools))
    veto = veto_of(house, tool, claimed.vetoes)
    if veto is not None:
        return Refused(Status.VETOED, results.vetoed(tool.name, veto, followup=tool.followup))
    superseded: list[Approval] = []
    if tool.can_ask and claimed.run.turn > 1:  # in a run's first turn nothing can have been superseded
        found = await approvals.replaceable(house.db, claimed.run.id, tool.name)
        free = [approval for approval in found if approval.id not in replaced]
        same_tool = [other.input for other in later if other.tool == tool.name] if free else []
        anew = {await _input_hash(house, tool, input) for input in same_tool} - {None}
        superseded = [one for one in free if not (anew and anew & await _spelled(house, tool, one))]
    try:
        weighed = await weigh(house, tool, call.input, claimed.run, to_replace=partial(_likest, superseded))
    except InvalidInput as error:
        return Refused(Status.INVALID, results.invalid(tool.name, error.fields))
    except CannotMeasure as error:
        return Refused(Status.FAILED, results.unprepared(tool.name, error.message))
    if weighed.verdict is Verdict.FORBID:
        rule = weighed.why.text if weighed.why else None
        return Refused(Status.FORBIDDEN, results.forbidden(tool.name, rule))
    return Judged(call, tool, weighed)


async def _spelled(house: House, tool: Tool, approval: Approval) -> set[str | None]:
    """How the model asks for the same again, or for what a person had made of it."""
    return {approval.shown.input_hash, await _input_hash(house, tool, approval.original_input)}


async def _input_hash(house: House, tool: Tool, input: Json) -> str | None:
    """What tells the input from others as the schema reads it, with its defaults; None: it cannot be read."""
    try:
        _, kept = await validated(house, tool, input)
    except (InvalidInput, CannotMeasure):
        return None
    return digest(kept)


def _likest(
    superseded: Sequence[Approval], items: Collection[str], input: Mapping[str, Json]
) -> Approval | None:
    """The one that shares most with a call of these items: what the model asks anew; None: it is another.

    Where neither has items, those that share most of the input.
    """

    def shared(approval: Approval) -> float:
        old, new = set(approval.shown.items), set(items)
        if not old | new:
            before = approval.shown.input
            same = sum(name in before and before[name] == value for name, value in input.items())
            return same / len(before.keys() | input) if before or input else 1.0
        return len(old & new) / len(old | new)

    found = max(superseded, key=shared, default=None)
    return found if found is not None and shared(found) else None


def veto_of(house: House, tool: Tool, vetoes: Sequence[Veto]) -> Veto | None:
    """The standing refusal that this tool's effect runs into, if any; a named follow-up stays allowed."""
    if tool.risk is Risk.READ_ONLY:
        return None
    for veto in vetoes:
        refused = [other for other in house.tools.values() if other.effect == veto.effect]
        if veto.effect == tool.effect and tool.name not in {other.followup for other in refused}:
            return veto
    return None


def allow(proposal: Proposal, judged: Judged) -> None:
    """The policy allows it: it keeps what the verdict was reckoned from."""
    measured = judged.weighed.measured
    proposal.add(
        judged.call,
        Status.ALLOWED,
        measured=content_json(measured),
        items=() if judged.tool.risk is Risk.READ_ONLY else measured.items,
        effect=judged.tool.effect,
    )


def ask(house: House, claimed: ClaimedRun, proposal: Proposal, judged: Judged) -> None:
    """People are asked: an approval with everything they will see."""
    replaces = judged.weighed.replaces
    proposal.ask(
        judged.call,
        NewApproval(
            new_id("apr"),
            judged.call.id,
            judged.tool.name,
            judged.tool.effect,
            house.policy.rule_for(judged.tool.name),
            judged.weighed.measured,
            claimed.conversation.team_id,
            replaces.id if replaces else None,
            replaces.supersessions + 1 if replaces else 0,
        ),
    )


def defer(proposal: Proposal, judged: Judged) -> None:
    """Allowed, but after one that asks: not executed, and the model may ask again."""
    proposal.add(judged.call, Status.DEFERRED, results.deferred(judged.tool.name))
