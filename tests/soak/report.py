"""What came of the soak, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.soak.__main__ import Soaked

MOST = 20


def report(soaked: Soaked) -> str:
    """The table."""
    verdict, asked = soaked.verdict, soaked.asked
    rows = [
        ("runs asked for", asked.runs),
        *((f"  {status}", n) for status, n in sorted(verdict.runs.items())),
        ("approvals", verdict.approvals.total()),
        *((f"  {status}", n) for status, n in sorted(verdict.approvals.items())),
        ("refunds approved and executed", verdict.approved_items),
        ("refunds counted at the provider", verdict.refunds),
        ("  of distinct payments", verdict.distinct),
        ("presses of buttons", verdict.presses),
        *((f"  told: {what}", n) for what, n in sorted(verdict.told.items())),
        ("cards in Slack", verdict.cards),
        ("events on the record, verified", verdict.events),
        ("blows", sum(soaked.harm.values())),
        *((f"  {what}", n) for what, n in sorted(soaked.harm.items())),
        ("processes started", sum(soaked.starts.values())),
        ("  after they had ended by themselves", soaked.left),
    ]
    lines = [f"{name:40} {n:>7,}" for name, n in rows]
    wrong = verdict.violations
    lines += [f"{'seconds':40} {soaked.seconds:>7,.0f}", f"{'violations':40} {len(wrong):>7,}"]
    lines += [f"  {sentence}" for sentence in wrong[:MOST]]
    if len(wrong) > MOST:
        lines.append(f"  and {len(wrong) - MOST} more")
    if wrong:
        lines.append(f"seed {asked.seed}; what the processes said is in {soaked.logs}")
    return "\n".join(lines)


def to_json(soaked: Soaked) -> dict[str, Any]:
    """The numbers."""
    verdict, asked = soaked.verdict, soaked.asked
    return {
        "asked": vars(asked) | {"pause": list(asked.pause)},
        "seconds": round(soaked.seconds, 1),
        "runs": dict(verdict.runs),
        "approvals": dict(verdict.approvals),
        "refunds": verdict.refunds,
        "distinct_payments": verdict.distinct,
        "approved_refunds": verdict.approved_items,
        "presses": verdict.presses,
        "told": dict(verdict.told),
        "cards": verdict.cards,
        "events": verdict.events,
        "blows": soaked.harm,
        "starts": soaked.starts,
        "ended_by_themselves": soaked.left,
        "violations": verdict.violations,
    }
