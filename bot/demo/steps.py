"""What one does next in the demo of the shop, step by step, up to the end of its story."""

from agent.tools.shop.words import counted
from bot.demo.board import State
from bot.sandbox.world import Step
from store.transitions import ApprovalStatus, RunStatus

_LEO, _MARTA = ("U0LEO", "C0SUPPORT"), ("U0MARTA", "C0APPROVALS")
_AT_WORK = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL})

ASK = Step(*_LEO, "Ask as Leo in #support.", "Ask as Leo: press Send.")
# one line of a phone each, so that a whole card is above it
_WAITS = "Be Marta: a card waits in #approvals."
DECIDE = Step(*_MARTA, _WAITS, "Let something happen in the world first.")
DECIDE_THEN = Step(*_MARTA, _WAITS, "Press Approve, and see what runs.")


def next_step(state: State | None, *, failed_more: bool) -> Step | None:
    """Ask, decide, ask again while payments are left, and the end; None while the agent is at work.

    `failed_more` says whether more payments have failed since the first ones.
    """
    if state is None or not state.runs:
        return ASK
    if waits(state):
        return DECIDE_THEN if failed_more else DECIDE
    if any(run.status in _AT_WORK for run in state.runs):
        return None
    return _ask_again(state.failed) if state.failed else _end(state)


def waits(state: State | None, tool: str = "") -> bool:
    """Whether a card waits for approval, of that tool or of any."""
    asked = state.approvals if state else ()
    return any(one.status is ApprovalStatus.PENDING and tool in {"", one.tool} for one in asked)


def _ask_again(failed: int) -> Step:
    left = f"{counted(failed, 'failed payment')} {'is' if failed == 1 else 'are'} left."
    return Step(*_LEO, f"Ask as Leo again: {left}", f"Ask for a refund again: {left}")


def _end(state: State) -> Step:
    refunded = len({refund.payment_id for refund in state.refunds})
    once = ", each once" if len(state.refunds) == refunded else ""
    done = f"{counted(refunded, 'payment')} refunded{once}."
    return Step(
        *_LEO,
        f"{done} Read as Leo what the agent says.",
        f"{done} Begin a new demo to try Edit or Reject too.",
        name="The end",
    )
