"""How far this machine's clock is from another one, and when that is too far."""

from dataclasses import dataclass

from bot.doctor.finding import Finding, failed, ok, warning

WARNING_SECONDS = 30.0
FAILED_SECONDS = 300.0
"""Older and younger requests are refused: https://docs.slack.dev/authentication/verifying-requests-from-slack"""


@dataclass(frozen=True)
class Asked:
    """When somebody was asked for their time, by this machine's clock, in seconds since the epoch."""

    began: float
    ended: float

    def ahead_of(self, told: float) -> float:
        """The seconds this machine is ahead of whom told this time in between."""
        return (self.began + self.ended) / 2 - told


def compare(check: str, whose: str, ahead: float, do: str) -> Finding:
    """What it means to be so many seconds ahead of `whose` clock, or behind it if they are negative."""
    if abs(ahead) <= WARNING_SECONDS:
        return ok(check, f"{abs(ahead):.0f} s from {whose}")
    says = f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {whose}"
    return (failed if abs(ahead) > FAILED_SECONDS else warning)(check, says, do)
