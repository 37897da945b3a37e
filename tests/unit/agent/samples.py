"""A refund tool and an approval of it, for tests that need one."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field

from agent.preview import freeze
from agent.tool import Facts, Money, Preview, Risk, Tool
from store.records import (
    Actor,
    Approval,
    ApprovalId,
    CallId,
    Conversation,
    ConversationId,
    Measured,
    Rule,
    RunId,
)
from store.transitions import ApprovalStatus, CallStatus

MARTA = Actor("person", "T0SHOP", "U0MARTA", "Marta", "support_lead")
ANA = Actor("person", "T0SHOP", "U0ANA", "Ana", "admin")
RULE = Rule(("support_lead",), ("admin",), 1, True, 7200.0, 3600.0, 3600.0, "C0APPROVALS")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class RefundPayments(BaseModel):
    """Refund payments."""

    payment_ids: list[str] = Field(title="Payments")
    reason: str = Field(title="Reason")


def measure(input: RefundPayments, ctx: object) -> Facts:
    """Facts with one euro for each payment."""
    return Facts(len(input.payment_ids), Money(len(input.payment_ids), "EUR"), input.payment_ids)


REFUND = Tool(
    name="refund_payments",
    input=RefundPayments,
    risk=Risk.IRREVERSIBLE,
    effect="refund",
    facts=measure,
    execute=lambda input, ctx: None,
)


def frozen(
    ids: list[str],
    *,
    reason: str = "failed",
    preview: Preview | None = None,
    precondition: Mapping[str, Any] | None = None,
    facts: Facts | None = None,
    **more: Any,
) -> Measured:
    """A frozen refund of these payments."""
    input = RefundPayments(payment_ids=ids, reason=reason)
    return freeze(REFUND, input, facts or measure(input, None), preview, precondition or {}, **more)


def approval(**changed: Any) -> Approval:
    """A pending approval of a refund, with what is `changed`."""
    shown = frozen(["pay_1", "pay_2"])
    made = Approval(
        id=ApprovalId("apr_1"),
        call_id=CallId("call_1"),
        run_id=RunId("run_1"),
        conversation_id=ConversationId("conv_1"),
        status=ApprovalStatus.PENDING,
        revision=1,
        version=1,
        tool=REFUND.name,
        effect=REFUND.effect,
        agent="Refund helper",
        requester=ANA,
        rule=RULE,
        votes=(),
        attempted=False,
        replaces=None,
        replaced_by=None,
        supersessions=0,
        expires_at=NOON,
        escalate_at=None,
        escalated_at=None,
        claim_by=None,
        decided_at=None,
        decided_by=None,
        reason=None,
        outcome=None,
        ended_at=None,
        created_at=NOON,
        now=NOON,
        shown=shown,
        author=None,
        original_input=shown.input,
        rationale=None,
        provider_id="toolu_1",
        call_status=CallStatus.ASKED,
        conversation=Conversation(ConversationId("conv_1"), "T0SHOP", "C0SUPPORT", None),
    )
    return replace(made, **changed)
