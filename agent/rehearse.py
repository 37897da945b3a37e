"""Rehearses a call: what would become of it if it was proposed now. Nothing is recorded, nobody is asked."""

from datetime import datetime, timedelta

from agent.house import House
from agent.propose import Judged, Refused, judge_call
from agent.schema import split_input
from agent.tool import Tool
from store.records import (
    Actor,
    Approval,
    ApprovalId,
    Call,
    CallId,
    ClaimedRun,
    Conversation,
    ConversationId,
    Run,
    RunId,
)
from store.transitions import ApprovalStatus, CallStatus, RunStatus

ID = "preview"
"""In the place of every id: there is no row to name."""


async def rehearse_call(
    house: House, tool: Tool, raw: object, requester: Actor, now: datetime
) -> Judged | Refused:
    """Judge what the model might send, rationale included, as the first call of a new conversation.

    The tool's functions and rules run as for a proposal, apart and within their time. Raises InvalidInput if
    `raw` is no object.
    """
    input, rationale = split_input(tool, raw)
    return await judge_call(house, _claimed(house, requester, now), _call(tool, input, rationale))


def approval_to_be(house: House, judged: Judged, requester: Actor, now: datetime) -> Approval:
    """The pending approval that asking people would make; the conversation is where its card would go."""
    tool, call, shown = judged.tool, judged.call, judged.weighed.measured
    rule = house.policy.rule_for(tool.name)
    return Approval(
        id=ApprovalId(ID),
        call_id=call.id,
        run_id=call.run_id,
        conversation_id=ConversationId(ID),
        status=ApprovalStatus.PENDING,
        revision=1,
        version=1,
        tool=tool.name,
        effect=tool.effect,
        agent=house.policy.agent.name,
        requester=requester,
        rule=rule,
        votes=(),
        attempted=False,
        replaces=None,
        replaced_by=None,
        supersessions=0,
        expires_at=now + timedelta(seconds=rule.expires_after),
        escalate_at=now + timedelta(seconds=rule.escalate_after) if rule.escalate_to else None,
        escalated_at=None,
        claim_by=None,
        decided_at=None,
        decided_by=None,
        reason=None,
        outcome=None,
        ended_at=None,
        created_at=now,
        now=now,
        shown=shown,
        author=None,
        original_input=shown.input,
        rationale=call.rationale,
        provider_id=call.provider_id,
        call_status=CallStatus.ASKED,
        conversation=_conversation(rule.channel),
    )


def _claimed(house: House, requester: Actor, now: datetime) -> ClaimedRun:
    run = Run(
        id=RunId(ID),
        conversation_id=ConversationId(ID),
        seq=1,
        status=RunStatus.RUNNING,
        agent=house.policy.agent.name,
        task="",
        requester=requester,
        source_key=ID,
        state_version=1,
        steps=1,
        input_tokens=0,
        output_tokens=0,
        turn=1,
        open_calls=0,
        faults=0,
        not_before=None,
        started_at=now,
        ended_at=None,
        created_at=now,
        error=None,
        answer=None,
    )
    return ClaimedRun(run, _conversation(""), token=ID, runs=(run,), turns=(), calls=(), vetoes=())


def _call(tool: Tool, input: dict[str, object], rationale: str | None) -> Call:
    return Call(
        id=CallId(ID),
        run_id=RunId(ID),
        turn=1,
        position=0,
        provider_id=ID,
        tool=tool.name,
        effect=tool.effect,
        input=input,
        rationale=rationale,
        status=CallStatus.PROPOSED,
        result=None,
        measured=None,
        items=(),
        not_before=None,
        attempts=0,
        first_attempt_at=None,
        key=None,
        repeatable=tool.repeatable,
        only_reads=False,
        output=None,
        done_items=None,
        ended_at=None,
    )


def _conversation(channel_id: str) -> Conversation:
    return Conversation(ConversationId(ID), "", channel_id, None)
