"""Slack's rate limits per method and workspace (docs.slack.dev/apis/web-api/rate-limits)."""

import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bot.sandbox.clock import Clock

TIER_2 = 20
TIER_3 = 50
TIER_4 = 100
SPECIAL = 300
"""For the limits that are only described as "several hundred per minute"."""

PER_MINUTE: Mapping[str, int] = MappingProxyType(
    {
        "apps.connections.open": TIER_3,
        "auth.test": SPECIAL,
        "chat.delete": TIER_3,
        "chat.getPermalink": SPECIAL,
        "chat.postEphemeral": TIER_4,
        "chat.postMessage": SPECIAL,
        "chat.update": TIER_3,
        "conversations.info": TIER_3,
        "conversations.join": TIER_3,
        "conversations.members": TIER_4,
        "conversations.open": TIER_3,
        "usergroups.list": TIER_2,
        "usergroups.users.list": TIER_2,
        "users.info": TIER_4,
        "users.list": TIER_2,
        "users.lookupByEmail": TIER_3,
        "views.open": TIER_4,
        "views.publish": TIER_4,
        "views.push": TIER_4,
        "views.update": TIER_4,
    }
)


@dataclass(frozen=True)
class RateLimits:
    """How many calls pass: per method and minute, posts per channel and second, events per hour."""

    per_minute: Mapping[str, int]
    posts_per_channel_second: int | None
    events_per_hour: int | None

    @classmethod
    def documented(cls) -> "RateLimits":
        """Slack's own numbers, with "20+" read as 20."""
        return cls(PER_MINUTE, posts_per_channel_second=1, events_per_hour=30_000)

    @classmethod
    def off(cls) -> "RateLimits":
        """No limits, for tests of other things."""
        return cls(MappingProxyType({}), None, None)


class RateLimiter:
    """Counts calls in sliding windows of Slack's clock."""

    def __init__(self, limits: RateLimits, clock: Clock) -> None:
        self.limits = limits
        self._clock = clock
        self._calls: dict[tuple[str, ...], deque[float]] = defaultdict(deque)

    def admit(self, method: str, args: Mapping[str, Any]) -> int | None:
        """Count this call; returns None if it passes, else the seconds for `Retry-After`."""
        windows: list[tuple[tuple[str, ...], int, float]] = []
        if (most := self.limits.per_minute.get(method)) is not None:
            windows.append(((method,), most, 60.0))
        per_second = self.limits.posts_per_channel_second
        if method == "chat.postMessage" and per_second is not None:
            windows.append(((method, str(args.get("channel"))), per_second, 1.0))
        return self._count(windows)

    def admit_event(self) -> bool:
        """Count one delivered event; false when the hour's share is used up."""
        if self.limits.events_per_hour is None:
            return True
        return self._count([(("events",), self.limits.events_per_hour, 3600.0)]) is None

    def _count(self, windows: list[tuple[tuple[str, ...], int, float]]) -> int | None:
        now = self._clock.now()
        for key, most, seconds in windows:
            calls = self._calls[key]
            while calls and calls[0] <= now - seconds:
                calls.popleft()
            if len(calls) >= most:
                return max(1, math.ceil(calls[0] + seconds - now))
        for key, _, _ in windows:
            self._calls[key].append(now)
        return None
