"""trigger_ids and response_urls: short-lived rights that an interaction gives the app."""

from dataclasses import dataclass
from secrets import token_hex

from bot.sandbox import limits
from bot.sandbox.clock import Clock
from bot.sandbox.errors import SlackError
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Message


@dataclass
class Trigger:
    """The right to show `user` one view, in the `window` they pressed in ("": in all of theirs).

    `view_id` is the modal it came from, if any.
    """

    user: str
    issued: float
    view_id: str | None = None
    window: str = ""
    used: bool = False


class Triggers:
    """Every trigger_id given out."""

    def __init__(self, clock: Clock, unsettled: Unsettled) -> None:
        self._clock = clock
        self._unsettled = unsettled
        self._given: dict[str, Trigger] = {}

    def issue(self, user: str, view_id: str | None = None, window: str = "") -> str:
        """A fresh trigger_id; its three seconds begin now."""
        trigger_id = f"{len(self._given) + 1000}.{int(self._clock.now())}.{token_hex(16)}"
        self._given[trigger_id] = Trigger(user, self._clock.now(), view_id, window)
        return trigger_id

    def look_up(self, trigger_id: object) -> Trigger:
        """The trigger if it can still be exchanged; else Slack's refusal."""
        trigger = self._given.get(trigger_id) if isinstance(trigger_id, str) else None
        if trigger is None:
            raise SlackError("invalid_trigger_id")
        if trigger.used:
            raise SlackError("exchanged_trigger_id")
        if self._clock.now() - trigger.issued > limits.TRIGGER_SECONDS:
            if self._unsettled.expired_trigger_as_invalid_arguments:
                raise SlackError("invalid_arguments", ["[ERROR] expired_trigger_id"])
            raise SlackError("expired_trigger_id")
        return trigger


@dataclass
class ResponseUrl:
    """The right to answer one interaction or command of `user` in `channel_id`."""

    user: str
    channel_id: str
    issued: float
    source: Message | None
    uses: int = 0


class ResponseUrls:
    """Every response_url given out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._given: dict[str, ResponseUrl] = {}
        self.base_url = ""

    def issue(self, user: str, channel_id: str, source: Message | None = None) -> str:
        """A fresh URL that works five times within thirty minutes."""
        key = token_hex(12)
        self._given[key] = ResponseUrl(user, channel_id, self._clock.now(), source)
        return f"{self.base_url}/respond/{key}"

    def look_up(self, key: str) -> ResponseUrl:
        """The right behind the URL if it can still be used; else Slack's refusal."""
        right = self._given.get(key)
        if right is None:
            raise SlackError("invalid_url")
        if self._clock.now() - right.issued > limits.RESPONSE_URL_SECONDS:
            raise SlackError("expired_url")
        if right.uses >= limits.RESPONSE_URL_USES:
            raise SlackError("used_url")
        return right
