"""What must be true after the story, read from the provider, the database and the sandbox."""

from dataclasses import dataclass
from typing import Any

from bot.demo.errors import DemoFailed
from bot.demo.world import World
from store import approvals, audit, runs
from store.engine import Database
from store.records import AuditEvent
from store.transitions import RunStatus

DECIDED = frozenset({"approval.voted", "approval.approved", "approval.rejected", "approval.edited"})
RIGHT_REFUNDS = 41
RIGHT_APPROVALS = (("superseded", 38), ("executed", 41))
RIGHT_DECISIONS = 2


@dataclass(frozen=True)
class Facts:
    """The numbers of the story; `broken` are the faults that verifying the record found."""

    refunds: int
    distinct_payments: int
    approvals: tuple[tuple[str, int], ...]
    clicks: int
    decisions: int
    linked: bool
    run_status: str
    broken: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The last line of `demo --play --json`."""
        return {
            "refunds": self.refunds,
            "distinct_payments": self.distinct_payments,
            "approvals": [{"status": status, "count": count} for status, count in self.approvals],
            "clicks": self.clicks,
            "decisions": self.decisions,
        }

    def check(self) -> None:
        """Raise DemoFailed with everything that does not hold."""
        wrong = [sentence for holds, sentence in self._expectations() if not holds]
        if wrong:
            raise DemoFailed(f"The story ended wrongly: {'; '.join(wrong)}.")

    def _expectations(self) -> list[tuple[bool, str]]:
        return [
            (self.refunds == RIGHT_REFUNDS, f"the provider made {self.refunds} refunds, not 41"),
            (self.distinct_payments == self.refunds, f"they are of {self.distinct_payments} payments"),
            (self.approvals == RIGHT_APPROVALS, f"the approvals are {self.approvals}"),
            (self.linked, "the second approval does not say that it replaces the first"),
            (self.decisions == RIGHT_DECISIONS, f"there are {self.decisions} decisions, not 2"),
            (self.clicks > self.decisions, f"there were only {self.clicks} clicks"),
            (self.run_status == RunStatus.COMPLETED, f"the run is {self.run_status}"),
            (not self.broken, f"the record is not whole ({', '.join(self.broken)})"),
        ]


async def gather(db: Database, world: World) -> Facts:
    """Count, in the world as it is now; the newest run is the story's."""
    run = (await runs.listed(db, unfinished_only=False, limit=1))[0]
    asked = await approvals.of_run(db, run.id)
    refunds = world.provider.refunds
    clicks = [d for d in world.sandbox.deliveries if d.payload.get("type") == "block_actions"]
    events = await audit.of(db, run.id)
    return Facts(
        refunds=len(refunds),
        distinct_payments=len({refund.payment_id for refund in refunds}),
        approvals=tuple((a.status.value, int(a.shown.facts["count"])) for a in asked),
        clicks=len(clicks),
        decisions=sum(_is_decision(event) for event in events),
        linked=len(asked) == 2 and asked[1].replaces == asked[0].id,
        run_status=run.status.value,
        broken=(await audit.verify(db)).broken,
    )


def _is_decision(event: AuditEvent) -> bool:
    return event.kind in DECIDED
