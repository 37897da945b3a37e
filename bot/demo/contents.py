"""What there is in the demo's world, in the words of the sandbox's page."""

from collections.abc import Mapping
from types import MappingProxyType

from agent.money import Money
from agent.tools.shop.words import counted
from bot.blocks.status import moved_text
from bot.blocks.values import amount_text
from bot.demo.board import Clicks, State
from bot.sandbox.world import Figure, Item, Listing, Moment, Tone
from bot.texts.en import ENGLISH
from store.records import Approval, Run
from store.transitions import ApprovalStatus, RunStatus

SHOWN = 4  # of each list
TONES: Mapping[str, Tone] = MappingProxyType(
    {
        RunStatus.AWAITING_APPROVAL: "waits",
        RunStatus.COMPLETED: "good",
        RunStatus.FAILED: "bad",
        RunStatus.EXHAUSTED: "bad",
        ApprovalStatus.PENDING: "waits",
        ApprovalStatus.EXECUTED: "good",
        ApprovalStatus.FAILED: "bad",
        ApprovalStatus.UNKNOWN: "bad",
    }
)


def figures(state: State, *, has_shop: bool) -> tuple[Figure, ...]:
    """The numbers that tell the story; those of the shop only where there is one."""
    clicks = state.clicks
    return (
        *(_of_the_shop(state) if has_shop else ()),
        Figure(str(clicks.made), "Clicks", delivered(clicks) if clicks.made else ""),
        Figure(str(state.totals.decisions), "Decisions"),
    )


def _of_the_shop(state: State) -> tuple[Figure, ...]:
    refunds = state.refunds
    total = sum((refund.amount for refund in refunds), Money(0, "EUR")).text(ENGLISH.locale)
    payments = counted(len({refund.payment_id for refund in refunds}), "payment")
    return (
        Figure(str(state.failed), "Failed payments in the shop"),
        Figure(str(len(refunds)), "Refunds at the provider", f"of {payments}, {total}" if refunds else ""),
    )


def listings(state: State) -> tuple[Listing, ...]:
    """The newest approvals and runs."""
    asked, found = state.approvals[:SHOWN], state.runs[:SHOWN]
    return (
        Listing(
            "Approvals",
            tuple(map(_approval, asked)),
            "No call has asked for approval yet.",
            _older(state.totals.approvals - len(asked)),
        ),
        Listing(
            "Runs",
            tuple(map(_run, found)),
            "Nobody has asked the agent for anything yet.",
            _older(state.totals.runs - len(found)),
        ),
    )


def delivered(clicks: Clicks) -> str:
    """How often the clicks were delivered."""
    if clicks.delivered == 2 * clicks.made:
        return "delivered twice" if clicks.made == 1 else "each delivered twice"
    return f"delivered {counted(clicks.delivered, 'time')}"


def _older(count: int) -> str:
    return f"and {count} older" if count > 0 else ""


def _run(run: Run) -> Item:
    return Item(run.task, _words(run.status), TONES.get(run.status, ""), (f"asked by {run.requester.name}",))


def _approval(approval: Approval) -> Item:
    title = str(approval.shown.preview["title"])
    asked = f"asked by {approval.requester.name}"
    details = [asked, f"revision {approval.revision}", *_sizes(approval, title)]
    return Item(
        title,
        _words(approval.status),
        TONES.get(approval.status, ""),
        (*details, *_when_or_who(approval), *_moved(approval)),
    )


def _sizes(approval: Approval, title: str) -> list[str]:
    """The count and the amount, where the title does not have them."""
    facts = approval.shown.facts
    amount = amount_text(facts["amount"], ENGLISH.locale) if facts["amount"] else ""
    return [size for size in (f"count {facts['count']}", amount) if size.removeprefix("count ") not in title]


def _when_or_who(approval: Approval) -> list[str | Moment]:
    if approval.status is ApprovalStatus.PENDING:
        return [Moment("until", approval.expires_at.timestamp()), "if nobody decides, nothing runs"]
    return [f"by {approval.decided_by.name}"] if approval.decided_by is not None else []


def _moved(approval: Approval) -> list[str]:
    return [moved_text(one, ENGLISH) for one in (approval.outcome or {}).get("moved") or []]


def _words(status: RunStatus | ApprovalStatus) -> str:
    return status.value.replace("_", " ")
