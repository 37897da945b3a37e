"""Rows for the tests of what people see: the story's approval of 38 refunds, changed as a test needs it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from store.records import (
    Actor,
    Approval,
    ApprovalId,
    CallId,
    Conversation,
    ConversationId,
    Draft,
    DraftId,
    Measured,
    Rule,
    RunId,
    Vote,
)
from store.transitions import ApprovalStatus, CallStatus

NOW = datetime(2026, 11, 26, 23, 10, tzinfo=UTC)
MARTA = Actor("person", "T0SHOP", "U0MARTA", "Marta Gil", "support_lead")
ANA = Actor("person", "T0SHOP", "U0ANA", "Ana Ruiz", "admin")
LEO = Actor("person", "T0SHOP", "U0LEO", "Leo", None)
RULE = Rule(("support_lead",), ("admin",), 1, True, 86400.0, 14400.0, 3600.0, "C0APPROVALS")
IN_CHANNEL = Conversation(ConversationId("v1"), "T0SHOP", "C0SUPPORT", "1795000000.000100")

ITEMS = tuple(f"pay_{n:03}" for n in range(1, 39))


def measured(**changes: Any) -> Measured:
    """What the card of the story shows."""
    amount = {"amount": "4120.00", "currency": "EUR"}
    row = ["pay_001", {"amount": "120.00", "currency": "EUR"}, "2026-11-20"]
    made = Measured(
        input={"payment_ids": list(ITEMS), "reason": "charged twice"},
        input_hash="i",
        facts={"count": 38, "amount": amount, "items": list(ITEMS), "more": {}},
        items=ITEMS,
        items_digest="d",
        precondition={"failed payments": 38},
        preview={
            "title": "Refund 38 payments · €4,120.00",
            "impact": ["38 customers get their money back"],
            "columns": ["Payment", "Amount", "Failed on"],
            "sample": [row] * 5,
            "change": None,
            "added": [],
            "largest": 2,
            "hidden": {"lines": 0, "columns": 0, "rows": 33},
        },
        preview_hash="p",
        schema_hash="s",
    )
    return replace(made, **changes)


def approval(status: str = "pending", **changes: Any) -> Approval:
    """The story's approval in any status."""
    shown = changes.pop("shown", measured())
    made = Approval(
        id=ApprovalId("ap_1"),
        call_id=CallId("c1"),
        run_id=RunId("r1"),
        conversation_id=ConversationId("v1"),
        status=ApprovalStatus(status),
        revision=1,
        version=3,
        tool="refund_payments",
        effect="refund",
        agent="Refund helper",
        requester=LEO,
        rule=RULE,
        votes=(),
        attempted=False,
        replaces=None,
        replaced_by=None,
        supersessions=0,
        expires_at=NOW + timedelta(hours=24),
        escalate_at=None,
        escalated_at=None,
        claim_by=None,
        decided_at=None,
        decided_by=None,
        reason=None,
        outcome=None,
        ended_at=None,
        created_at=NOW - timedelta(hours=3),
        now=NOW,
        shown=shown,
        author=None,
        original_input=shown.input,
        rationale="They failed twice and the customers asked.",
        provider_id="toolu_1",
        call_status=CallStatus.ASKED,
        conversation=IN_CHANNEL,
    )
    return replace(made, **changes)


def approved(status: str = "approved", **changes: Any) -> Approval:
    """The same after Marta's approval."""
    decided = {
        "decided_at": NOW,
        "decided_by": MARTA,
        "votes": (Vote(MARTA, NOW.isoformat()),),
        "ended_at": NOW + timedelta(seconds=5),
    }
    return approval(status, **{**decided, **changes})


def draft(**changes: Any) -> Draft:
    """Ana's edit that leaves one payment out."""
    base = measured()
    content = replace(
        base,
        input={"payment_ids": list(ITEMS[1:]), "reason": "charged twice"},
        items=ITEMS[1:],
        facts={**base.facts, "count": 37, "amount": {"amount": "4000.00", "currency": "EUR"}},
        preview={**base.preview, "title": "Refund 37 payments · €4,000.00"},
        precondition={"failed payments": 37},
    )
    made = Draft(DraftId("dr_1"), ApprovalId("ap_1"), 1, ANA, content, None)
    return replace(made, **changes)


def unknown(**changes: Any) -> Approval:
    """The same after an attempt whose answer was lost an hour ago."""
    outcome = {
        "kind": "unknown",
        "text": "refund_payments broke off: TimeoutError",
        "attempts": 1,
        "key": "ap_1",
        "first_attempt_at": (NOW - timedelta(hours=1)).isoformat(),
        "retry_until": (NOW + timedelta(hours=23)).isoformat(),
        "since": (NOW - timedelta(minutes=59)).isoformat(),
    }
    return approved(
        "unknown",
        attempted=True,
        ended_at=None,
        outcome=outcome | changes.pop("outcome", {}),
        **changes,
    )


def settled(*, ran: bool, by: Actor = MARTA, **changes: Any) -> Approval:
    """The same after a person said what became of it."""
    said = {"settled_by": by.to_json(), "text": None, "done": None if ran else []}
    outcome = {**unknown().outcome, **said, "kind": "executed" if ran else "failed", "late": False}
    return approved("executed" if ran else "failed", **{"outcome": outcome, **changes})


def tried_again(status: str = "approved", by: Actor = MARTA) -> Approval:
    """The same after a person let it be tried again."""
    said = {"kind": "tried_again", "tried_again_by": by.to_json(), "tried_again_at": NOW.isoformat()}
    return approved(status, attempted=True, outcome={**unknown().outcome, **said})
