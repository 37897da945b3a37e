"""What one does next in the demo of the shop, step by step, up to the end of its story."""

from collections.abc import Sequence
from datetime import datetime

from agent.tools.shop.words import counted
from bot.demo.board import State
from bot.demo.model import FIRST_WORDS
from bot.sandbox.world import Step
from store.records import Approval, Run
from store.transitions import ApprovalStatus, RunStatus

LEO, MARTA = "U0LEO", "U0MARTA"
_LEO, _MARTA = (LEO, "C0SUPPORT"), (MARTA, "C0APPROVALS")
_AT_WORK = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL})

ASK = Step(
    *_LEO,
    "Ask as Leo in #support.",
    "Ask as Leo: press Send.",
    nearby="Ask in #support.",
    ready=FIRST_WORDS,
)


def next_step(state: State | None, *, failed_more: bool) -> Step | None:
    """Ask, decide, ask again while payments are left, and the end; None while the agent is at work.

    What Marta may not decide is no part of the story, and what waits for that is not at work. `failed_more`
    says whether more payments have failed since the first ones.
    """
    if state is None:
        return ASK
    if waiting := waits_for_marta(state):
        return _decide(waiting[0], failed_more=failed_more, among=_waits(state))
    if _is_at_work(state):
        return None
    if not state.failed:
        return _end(state)
    begun = [run.created_at for run in state.runs if _begins_the_story(run)]
    return _ask_again(state.failed, max(begun)) if begun else ASK


def for_marta(state: State | None) -> list[Approval]:
    """The approvals that are hers to decide, or were."""
    asked = state.approvals if state else ()
    return [one for one in asked if not (one.rule.four_eyes and one.requester.user_id == MARTA)]


def waits_for_marta(state: State | None, tool: str = "") -> list[Approval]:
    """The approvals that she may decide now, of that tool or of any."""
    return [
        one
        for one in for_marta(state)
        if one.status is ApprovalStatus.PENDING
        and tool in {"", one.tool}
        and all(vote.person.user_id != MARTA for vote in one.votes)
    ]


def _is_at_work(state: State) -> bool:
    # nothing waits for her here, so what waits for approval waits for others
    others = {one.run_id for one in _waits(state)}
    # who writes to a run that waits waits too
    held = {run.conversation_id for run in state.runs if run.id in others}
    return any(run.status in _AT_WORK and run.conversation_id not in held for run in state.runs)


def _begins_the_story(run: Run) -> bool:
    return run.requester.user_id == LEO and FIRST_WORDS in run.task


def _waits(state: State) -> list[Approval]:
    return [one for one in state.approvals if one.status is ApprovalStatus.PENDING]


def _decide(card: Approval, *, failed_more: bool, among: Sequence[Approval]) -> Step:
    # one line of a phone each, so that a whole card is above it
    there = "Look into The world first, or decide now."
    if failed_more:
        there = "Press Approve, and see what runs."
    if card.replaces is not None:
        there = "Approve the new card, and see what runs."
    if any(one.requester.user_id != card.requester.user_id for one in among):
        there = f"Decide the card that asks for {card.requester.name}."
    return Step(
        *_MARTA,
        "Be Marta: a card waits in #approvals.",
        there,
        nearby="A card waits in #approvals.",
    )


def _ask_again(failed: int, last: datetime) -> Step:
    left = f"{counted(failed, 'failed payment')} {'is' if failed == 1 else 'are'} left."
    return Step(
        *_LEO,
        f"Ask as Leo again: {left}",
        f"Ask for a refund again: {left}",
        nearby=f"Ask again in #support: {left}",
        ready=FIRST_WORDS,
        since=last.timestamp(),
    )


def _end(state: State) -> Step:
    refunded = len({refund.payment_id for refund in state.refunds})
    once = ", each once" if len(state.refunds) == refunded else ""
    done = f"{counted(refunded, 'payment')} refunded{once}."
    return Step(
        *_LEO,
        f"{done} Read as Leo what the agent says.",
        f"{done} Its thread has the agent's words. {_what_is_left(state.approvals)}",
        name="The end",
        nearby=f"{done} Read in #support what the agent says.",
    )


def _what_is_left(approvals: Sequence[Approval]) -> str:
    edited = any(one.revision > 1 for one in approvals)
    rejected = any(one.status is ApprovalStatus.REJECTED for one in approvals)
    untried = " or ".join(["Edit"] * (not edited) + ["Reject"] * (not rejected))
    return f"Begin a new demo to try {untried} too." if untried else "A new demo begins it again."
