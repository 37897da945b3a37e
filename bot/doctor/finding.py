"""What one check found, and how several faults of one check become one line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One check: `says` is a clause without a full stop, `do` a sentence where there is something to do."""

    check: str
    status: Status
    says: str
    do: str | None = None


def ok(check: str, says: str) -> Finding:
    """What is as it should be."""
    return Finding(check, "ok", says)


def warning(check: str, says: str, do: str) -> Finding:
    """What works, but not as people may expect."""
    return Finding(check, "warning", says, do)


def failed(check: str, says: str, do: str) -> Finding:
    """What does not work."""
    return Finding(check, "failed", says, do)


def skipped(check: str, why: str) -> Finding:
    """What was not looked at."""
    return Finding(check, "skipped", why)


def skip(checks: Iterable[str], why: str) -> list[Finding]:
    """Several checks that one thing kept from being made."""
    return [skipped(check, why) for check in checks]


def summed(check: str, fine: str, faults: Sequence[Finding]) -> Finding:
    """All faults of one check as one finding, as grave as the gravest; `fine` is said if there is none."""
    if not faults:
        return ok(check, fine)
    gravest: Status = "failed" if any(fault.status == "failed" for fault in faults) else "warning"
    says = dict.fromkeys(fault.says for fault in faults)
    do = dict.fromkeys(fault.do for fault in faults if fault.do)
    return Finding(check, gravest, "; ".join(says), " ".join(do))
