"""The points at which a process dies, what decides the approval there, and which of these cannot occur."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

REFUND = "refund_payments"


class Decision(StrEnum):
    """What becomes of the approval."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    EXPIRE = "expire"
    MOVED = "world moved"


class Way(StrEnum):
    """How the process is stopped."""

    KILLED = "killed"
    UNANSWERED = "killed while its statement is with the database"
    ASLEEP = "stopped until another process is at its work, then woken, then killed"
    LATE = "stopped until another process has done its work, then woken, then killed"
    OVERSLEPT = "stopped until the deadline is over, then woken"


class Phase(StrEnum):
    """From when on the point counts: it is passed for other reasons before."""

    ASKING = "asking"
    ESCALATING = "escalating"
    DECIDING = "deciding"


@dataclass(frozen=True)
class Hook:
    """A function of the product, and on which side of it the process dies; `only`: for these arguments."""

    module: str
    name: str
    side: Literal["before", "after"]
    only: Literal["any", "refund", "pause", "new card", "ended card"] = "any"


@dataclass(frozen=True)
class Point:
    """A named moment; `impossible` says why a decision never comes by it."""

    name: str
    words: str
    phase: Phase
    hooks: tuple[Hook, ...]
    impossible: Mapping[Decision, str] = field(default_factory=dict)
    way: Way = Way.KILLED
    attempted: bool = False
    """Whether *attempt started* was committed before: what cannot be repeated is unknown afterwards."""
    quick: Decision = Decision.APPROVE
    """The decision of its cell in the quick matrix."""
    once: bool = False
    """Whether that cell has the tool that may not be repeated."""


def _only(
    *decisions: Decision, why: str, besides: Mapping[Decision, str] | None = None
) -> dict[Decision, str]:
    """Every other decision is impossible, and why."""
    return {one: (besides or {}).get(one, why) for one in Decision if one not in decisions}


D = Decision
_NOT_ATTEMPTED = {
    D.REJECT: "what was rejected is never attempted",
    D.EXPIRE: "what expired is never attempted",
    D.MOVED: "that the world moved is found before an attempt starts",
}
_ATTEMPTED = _only(D.APPROVE, D.EDIT, why="", besides=_NOT_ATTEMPTED)
_NOBODY = {D.EXPIRE: "nobody decides: see inside expiry"}
_DECIDING = tuple(Hook("store.approvals", name, "before") for name in ("approve", "reject", "confirm_draft"))
_DECIDED = tuple(Hook("store.approvals", name, "after") for name in ("approve", "reject", "confirm_draft"))
_DRAFT = (Hook("store.approvals", "save_draft", "before"),)
_ONLY_EDIT = _only(D.EDIT, why="nothing is edited")
_EXPIRE = (Hook("store.approvals", "expire", "before"),)
_ONLY_EXPIRE = _only(D.EXPIRE, why="it is decided before its deadline")
_ESCALATE = (Hook("store.approvals", "escalate", "before"),)
_SUPERSEDE = (Hook("store.calls", "supersede", "before"),)
_ONLY_MOVED = _only(
    D.MOVED,
    why="the world is as it was shown",
    besides={
        D.REJECT: "what was rejected is never checked again",
        D.EXPIRE: "what expired is never checked again",
    },
)
_CLAIMED = (Hook("store.calls", "claim", "after"), Hook("store.runs", "claim", "after"))

POINTS = (
    Point(
        "answer",
        "after the model's answer, before it is saved",
        Phase.ASKING,
        (Hook("store.runs", "save_turn", "before", "refund"),),
        quick=D.EDIT,
    ),
    Point(
        "saved",
        "after the save, before the proposal",
        Phase.ASKING,
        (Hook("store.runs", "save_turn", "after", "refund"),),
        quick=D.REJECT,
        once=True,
    ),
    Point(
        "proposed",
        "after the proposal, before the card",
        Phase.ASKING,
        (Hook("store.runs", "propose", "after", "pause"),),
        quick=D.MOVED,
    ),
    Point(
        "card",
        "after the card, before its ts is stored",
        Phase.ASKING,
        (Hook("store.cards", "posted", "before", "new card"),),
        once=True,
    ),
    Point(
        "draft", "inside edit: before the draft is stored", Phase.DECIDING, _DRAFT, _ONLY_EDIT, quick=D.EDIT
    ),
    Point(
        "draft-sent",
        "inside edit: the draft is sent, and nothing answered",
        Phase.DECIDING,
        _DRAFT,
        _ONLY_EDIT,
        Way.UNANSWERED,
        quick=D.EDIT,
        once=True,
    ),
    Point(
        "decision",
        "before the decision is recorded",
        Phase.DECIDING,
        _DECIDING,
        _NOBODY,
        quick=D.REJECT,
        once=True,
    ),
    Point(
        "decision-sent",
        "the decision is sent, and nothing answered",
        Phase.DECIDING,
        _DECIDING,
        _NOBODY,
        Way.UNANSWERED,
        quick=D.EDIT,
    ),
    Point("decided", "after the decision, before the ack", Phase.DECIDING, _DECIDED, _NOBODY),
    Point("claimed", "after the claim", Phase.DECIDING, _CLAIMED, quick=D.MOVED, once=True),
    Point(
        "started",
        "after *attempt started*, before the tool",
        Phase.DECIDING,
        (Hook("store.calls", "start_attempt", "after"),),
        _ATTEMPTED,
        attempted=True,
        once=True,
    ),
    Point(
        "halfway",
        "inside the tool: after one effect of a batch",
        Phase.DECIDING,
        (Hook("agent.tools.shop.refund_payments", "_mark_refunded", "before"),),
        _ATTEMPTED,
        attempted=True,
    ),
    Point(
        "effect",
        "after the effect, before it is recorded",
        Phase.DECIDING,
        (Hook("store.calls", "finish_done", "before"),),
        _ATTEMPTED,
        attempted=True,
        quick=D.EDIT,
        once=True,
    ),
    Point(
        "recorded",
        "after the record, before the run goes on",
        Phase.DECIDING,
        (Hook("store.calls", "finish_done", "after"), Hook("store.calls", "supersede", "after")),
        {
            D.REJECT: "the decision's own statement records it: see after the decision",
            D.EXPIRE: "the expiry's own statement records it: see inside expiry",
        },
    ),
    Point(
        "expiry",
        "inside expiry: before its statement",
        Phase.DECIDING,
        _EXPIRE,
        _ONLY_EXPIRE,
        quick=D.EXPIRE,
        once=True,
    ),
    Point(
        "expiry-sent",
        "inside expiry: sent, and nothing answered",
        Phase.DECIDING,
        _EXPIRE,
        _ONLY_EXPIRE,
        Way.UNANSWERED,
        quick=D.EXPIRE,
    ),
    Point("escalation", "inside escalation: before its statement", Phase.ESCALATING, _ESCALATE),
    Point(
        "escalation-sent",
        "inside escalation: sent, and nothing answered",
        Phase.ESCALATING,
        _ESCALATE,
        way=Way.UNANSWERED,
        quick=D.EXPIRE,
        once=True,
    ),
    Point(
        "supersession",
        "inside supersession: before its statement",
        Phase.DECIDING,
        _SUPERSEDE,
        _ONLY_MOVED,
        quick=D.MOVED,
    ),
    Point(
        "supersession-sent",
        "inside supersession: sent, and nothing answered",
        Phase.DECIDING,
        _SUPERSEDE,
        _ONLY_MOVED,
        Way.UNANSWERED,
        quick=D.MOVED,
        once=True,
    ),
    Point(
        "update",
        "inside a card's update: before Slack is asked",
        Phase.DECIDING,
        (Hook("bot.publish", "SlackPublisher._update_card", "before", "ended card"),),
    ),
    Point(
        "updated",
        "inside a card's update: Slack has it, and nothing is recorded",
        Phase.DECIDING,
        (Hook("bot.publish", "SlackPublisher._card_shown", "before", "ended card"),),
        quick=D.REJECT,
        once=True,
    ),
    Point(
        "claimed-asleep",
        "asleep after the claim, until another process executes",
        Phase.DECIDING,
        (Hook("store.calls", "claim", "after"),),
        _ATTEMPTED,
        Way.ASLEEP,
        once=True,
    ),
    Point(
        "started-asleep",
        "asleep after *attempt started*, until another process has ended it",
        Phase.DECIDING,
        (Hook("store.calls", "start_attempt", "after"),),
        _ATTEMPTED,
        Way.LATE,
        attempted=True,
        once=True,
    ),
    Point(
        "effect-asleep",
        "asleep after the effect, until another process has ended it",
        Phase.DECIDING,
        (Hook("store.calls", "finish_done", "before"),),
        _ATTEMPTED,
        Way.LATE,
        attempted=True,
    ),
    Point(
        "decision-asleep",
        "asleep before the decision is recorded, until the deadline is over",
        Phase.DECIDING,
        (Hook("store.approvals", "approve", "before"),),
        _only(D.EXPIRE, why="its deadline does not come by: see expire"),
        Way.OVERSLEPT,
        quick=D.EXPIRE,
    ),
)
