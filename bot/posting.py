"""Posting to Slack: what a refusal means, which other form of a message to try, and when to try again."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError

from bot.blocks import limits
from bot.blocks.bounded import Message, text_only
from bot.slack import BROKEN, UNREACHABLE, NotSlack, error_code, retry_after
from store.errors import WrittenByNewer

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
GROWS_UNTIL = 8  # failures: the next pause is the longest

# what a message can be refused for because of what it is made of
REFUSED_CONTENT = frozenset(
    {
        "invalid_blocks",
        "invalid_attachments",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "msg_too_long",
        "block_mismatch",
    }
)
# the message is gone, or may not be changed any more: it is posted again
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})

# nothing goes until somebody gives us another token
REFUSED_TOKEN = frozenset(
    {"invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed"}
)

Render = Callable[[], Message]


@dataclass(frozen=True)
class Fault:
    """Why something could not be posted: Slack's error, no answer, or our own; `pause` as Slack asks.

    `unanswered`: whether Slack has done it, or will, nobody knows. `passes`: it says nothing about what was
    sent, which will go once it is over, however long that takes.
    """

    code: str
    pause: float | None = None
    unanswered: bool = False
    passes: bool = False

    @classmethod
    def of(cls, error: Exception) -> "Fault":
        """The fault of an error of Slack, of the way there, or of what nobody foresaw."""
        if isinstance(error, NotSlack):
            return cls(error_code(error), unanswered=True, passes=True)
        if isinstance(error, SlackApiError):
            code, pause = error_code(error), retry_after(error)
            # without a code it was not Slack that answered: something in between, which may have passed it on
            between = code.startswith("http_") and not code.startswith("http_4")
            unanswered = pause is None and (between or code in BROKEN)
            return cls(code, pause, unanswered, passes=unanswered or code in REFUSED_TOKEN)
        if isinstance(error, UNREACHABLE):
            return cls(f"no answer from Slack ({type(error).__name__})", unanswered=True, passes=True)
        if isinstance(error, WrittenByNewer):
            return cls("a row of another version of the app", passes=True)
        return cls(f"a fault of the bot's own ({type(error).__name__})")

    def retry_in(self, failures: int) -> float:
        """Seconds until the next try after that many failures: what Slack asks, else 2, 4, 8 … 300."""
        if self.pause is not None:
            return self.pause
        return float(min(FIRST_PAUSE * 2 ** min(failures, 10), LONGEST_PAUSE))

    def counts(self, failures: int) -> bool:
        """Whether it uses up a try, after that many failures; what passes only makes the pauses grow."""
        return self.pause is None and not (self.passes and failures >= GROWS_UNTIL)

    def log(self, what: str, retry_in: float | None, **subject: object) -> None:
        """A line for the operator, with what to do; waiting as Slack asks is nothing to worry about."""
        write = log.info if self.pause is not None else log.error
        write(what, error=self.code, advice=advice(self.code), retry_in=retry_in, **subject)


class Held:
    """The places to which Slack wants nothing sent for a while, as far as this process was told.

    Posts are limited for each channel, updates for the whole workspace, and what is sent nevertheless makes
    the wait longer: https://docs.slack.dev/apis/web-api/rate-limits
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    @contextmanager
    def told(self, place: str) -> Iterator[None]:
        """Hold the place if Slack asks for that in the block."""
        try:
            yield
        except SlackApiError as error:
            pause = retry_after(error)
            if pause is not None:
                self._until[place] = max(self._clock() + pause, self._until.get(place, 0.0))
            raise

    def left(self, place: str) -> float:
        """For how many seconds more a place is held; 0: it is not."""
        return max(self._until.get(place, 0.0) - self._clock(), 0.0)

    def places(self) -> list[str]:
        """Those that are held now."""
        now = self._clock()
        self._until = {place: until for place, until in self._until.items() if until > now}
        return list(self._until)


async def first_accepted(send: Callable[[Message], Awaitable[Any]], forms: Iterable[Render]) -> Any:
    """Slack's answer to the first form of a message that can be made and whose content it does not refuse.

    Raises SlackApiError when it refuses them all, or for any other reason at once; and what `made` raises.
    """
    refusal: SlackApiError | None = None
    for message in made(forms):
        try:
            return await send(message)
        except SlackApiError as error:
            if error_code(error) not in REFUSED_CONTENT:
                raise
            log.warning("Slack refused a form of a message", error=error_code(error))
            refusal = error
    assert refusal is not None, "or `made` had raised"
    raise refusal


def plainer(message: Message) -> tuple[Render, ...]:
    """The message, and what is left of it for a Slack that refuses its blocks, or so long a text."""
    return (lambda: message, lambda: text_only(message), lambda: text_only(message, limits.SHORT_TEXT))


def made(forms: Iterable[Render]) -> Iterator[Message]:
    """The forms of a message that can be made, in order; raises the last one's fault when none can."""
    some = False
    fault: Exception = AssertionError("a message has at least one form")
    for render in forms:
        try:
            message = render()
        except Exception as error:
            # it is made of what tools, models and people wrote, and any fault is one of this form only:
            # a plainer one tells the same with less, and people must be told
            log.exception("a form of a message cannot be made")
            fault = error
            continue
        some = True
        yield message
    if not some:
        raise fault


def advice(code: str) -> str:
    """What the operator can do about one of Slack's errors."""
    match code:
        case "not_in_channel" | "channel_not_found":
            return "invite the bot to the channel (/invite), or change `channel` in the policy file"
        case "is_archived" | "is_inactive":
            return "unarchive the channel, or change `channel` in the policy file"
        case _ if code in REFUSED_TOKEN:
            return "install the Slack app again and set SLACK_BOT_TOKEN"
        case "missing_scope" | "restricted_action" | "messages_tab_disabled":
            return "compare the Slack app's settings with manifest.yml and install it again"
        case "no_slack":
            return "what answers is no Slack Web API: check SLACK_API_URL"
        case _:
            return "it is tried again by itself"
