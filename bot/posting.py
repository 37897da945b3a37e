"""Posting to Slack: what a refusal means, which other form of a message to try, and when to try again."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError

from bot.blocks.bounded import Message
from bot.slack import UNREACHABLE, NotSlack, error_code, retry_after

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0

# what a message can be refused for because of its blocks
REFUSED_BLOCKS = frozenset(
    {
        "invalid_blocks",
        "invalid_attachments",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "block_mismatch",
    }
)
# the message is gone, or may not be changed any more: it is posted again
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})

Render = Callable[[], Message]


@dataclass(frozen=True)
class Fault:
    """Why something could not be posted: Slack's error, no answer, or our own; `pause` as Slack asks.

    `unanswered`: whether Slack has done it, or will, nobody knows.
    """

    code: str
    pause: float | None = None
    unanswered: bool = False

    @classmethod
    def of(cls, error: Exception) -> "Fault":
        """The fault of an error of Slack, of the way there, or of what nobody foresaw."""
        if isinstance(error, NotSlack):
            return cls(error_code(error), unanswered=True)
        if isinstance(error, SlackApiError):
            return cls(error_code(error), retry_after(error))
        if isinstance(error, UNREACHABLE):
            return cls(f"no answer from Slack ({type(error).__name__})", unanswered=True)
        return cls(f"a fault of the bot's own ({type(error).__name__})")

    def retry_in(self, failures: int) -> float:
        """Seconds until the next try after that many failures: what Slack asks, else 2, 4, 8 … 300."""
        if self.pause is not None:
            return self.pause
        return float(min(FIRST_PAUSE * 2 ** min(failures, 10), LONGEST_PAUSE))

    def log(self, what: str, retry_in: float | None, **subject: object) -> None:
        """A line for the operator, with what to do; waiting as Slack asks is nothing to worry about."""
        write = log.info if self.pause is not None else log.error
        write(what, error=self.code, advice=advice(self.code), retry_in=retry_in, **subject)


async def first_accepted(send: Callable[[Message], Awaitable[Any]], forms: Iterable[Render]) -> Any:
    """Slack's answer to the first form of a message that can be made and whose blocks it does not refuse.

    Raises SlackApiError when it refuses them all, or for any other reason at once; and what `made` raises.
    """
    refusal: SlackApiError | None = None
    for message in made(forms):
        try:
            return await send(message)
        except SlackApiError as error:
            if error_code(error) not in REFUSED_BLOCKS:
                raise
            log.warning("Slack refused the blocks of a message", error=error_code(error))
            refusal = error
    assert refusal is not None, "or `made` had raised"
    raise refusal


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
        case "invalid_auth" | "token_revoked" | "account_inactive" | "not_authed":
            return "install the Slack app again and set SLACK_BOT_TOKEN"
        case "missing_scope" | "restricted_action" | "messages_tab_disabled":
            return "compare the Slack app's settings with manifest.yml and install it again"
        case "no_slack":
            return "what answers is no Slack Web API: check SLACK_API_URL"
        case _:
            return "it is tried again by itself"
