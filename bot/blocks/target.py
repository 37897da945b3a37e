"""What a button and a modal carry: an opaque id and a revision, never content."""

import re
from dataclasses import dataclass

_FORM = re.compile(
    r"([0-9A-Za-z_-]{1,64}):([1-9][0-9]{0,8})(?::([0-9A-Za-z_-]{1,64}))?(?:@([1-9][0-9]{0,8}))?"
)


@dataclass(frozen=True)
class Target:
    """Which content of which approval was on the screen.

    `draft_id` in the modal that confirms an edit; `attempts` where nobody knows what became of so many.
    """

    approval_id: str
    revision: int
    draft_id: str | None = None
    attempts: int | None = None

    @property
    def value(self) -> str:
        """The target as a button's value or a modal's private metadata."""
        draft = f":{self.draft_id}" if self.draft_id else ""
        attempts = f"@{self.attempts}" if self.attempts else ""
        return f"{self.approval_id}:{self.revision}{draft}{attempts}"

    @classmethod
    def read(cls, text: str) -> "Target | None":
        """The reverse of `value`; None for anything else."""
        found = _FORM.fullmatch(text)
        if found is None:
            return None
        return cls(found[1], int(found[2]), found[3], int(found[4]) if found[4] else None)
