"""Slack's clock in the sandbox, which a test may stop or move forward."""

import time


class Clock:
    """Seconds since the epoch; follows the real clock until it is frozen or advanced."""

    def __init__(self) -> None:
        self._shift = 0.0
        self._frozen: float | None = None

    def now(self) -> float:
        """The present time of the sandbox, in seconds since the epoch."""
        return (time.time() if self._frozen is None else self._frozen) + self._shift

    def freeze(self) -> None:
        """Stop the clock where it is, so that a test can stand exactly on a limit."""
        self._frozen = time.time() if self._frozen is None else self._frozen

    def advance(self, seconds: float) -> None:
        """Move the clock forward by `seconds`, frozen or not."""
        self._shift += seconds
