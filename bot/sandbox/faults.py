"""Faults a test orders for the next calls of a Web API method."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal

from bot.sandbox.errors import Json


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one call, and whether the call takes effect before it does."""

    kind: Literal["error", "other", "http", "rate_limited", "hang", "drop"]
    performed: bool = False
    status: int = 200
    retry_after: int = 0
    body: Json = field(default_factory=dict)
    text: str = ""
    media_type: str = ""

    @classmethod
    def error(cls, code: str, **fields: object) -> "Fault":
        """Slack answers 200 with this error code; nothing is done."""
        return cls("error", body={"ok": False, "error": code, **fields})

    @classmethod
    def other(cls, text: str, media_type: str = "application/json", *, performed: bool = False) -> "Fault":
        """Not Slack answers, but something else, with status 200."""
        return cls("other", performed, text=text, media_type=media_type)

    @classmethod
    def http(cls, status: int = 500) -> "Fault":
        """A server error; nothing is done."""
        return cls("http", status=status)

    @classmethod
    def rate_limited(cls, retry_after: int = 1) -> "Fault":
        """429 with `Retry-After` in seconds; nothing is done."""
        return cls("rate_limited", status=429, retry_after=retry_after)

    @classmethod
    def hang(cls, *, performed: bool = False) -> "Fault":
        """No answer until the caller gives up or the sandbox stops."""
        return cls("hang", performed=performed)

    @classmethod
    def drop_before(cls) -> "Fault":
        """The connection breaks; nothing is done."""
        return cls("drop")

    @classmethod
    def drop_after(cls) -> "Fault":
        """The call is performed, then the connection breaks without an answer."""
        return cls("drop", performed=True)


class Faults:
    """The faults still to come, per method, first ordered first."""

    def __init__(self) -> None:
        self._ordered: dict[str, deque[Fault]] = defaultdict(deque)

    def add(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let the next `times` calls of `method` ("respond" for response_urls) go wrong this way."""
        self._ordered[method].extend([fault] * times)

    def clear(self) -> None:
        """Forget all faults not yet used."""
        self._ordered.clear()

    def take(self, method: str) -> Fault | None:
        """The fault for this call, if one is ordered; it is used up."""
        return self._ordered[method].popleft() if self._ordered[method] else None
