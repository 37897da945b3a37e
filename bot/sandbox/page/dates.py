"""Moments as the reader's client shows them (docs.slack.dev/messaging/formatting-message-text)."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.sandbox.page.html import Html, tag

FORMAT = re.compile(r"\{([a-z_]+)\}")


def zone_of(*names: str) -> tzinfo:
    """The first of these time zones that this machine knows, else UTC."""
    for name in filter(None, names):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # a name may come from outside, and be a folder
            continue
    return UTC


def date_token(epoch: str, shape: str, fallback: str, zone: tzinfo, now: float) -> Html | str:
    """A date token as the reader sees it, or its fallback where Slack could not read it."""
    try:
        at = datetime.fromtimestamp(int(epoch), zone)
    except (ValueError, OverflowError, OSError):
        return fallback
    today = datetime.fromtimestamp(now, zone)
    shown = FORMAT.sub(lambda match: _part(match[1], at, today) or match[0], shape)
    return tag("time", shown, datetime=at.isoformat(), title=long_moment(at))


def clock(at: datetime) -> str:
    """The time of day, as "11:10 PM"."""
    return f"{at.hour % 12 or 12}:{at.minute:02d} {'AM' if at.hour < 12 else 'PM'}"


def long_moment(at: datetime) -> str:
    """The whole moment with its zone."""
    return f"{_long(at)} at {clock(at)} ({at.tzname()})"


def day_name(at: datetime, today: datetime) -> str:
    """Today, Yesterday, or the day itself."""
    near = _near(at, today)
    return near.capitalize() if near else f"{at:%A}, {at:%B} {_ordinal(at.day)}"


def _part(name: str, at: datetime, today: datetime) -> str | None:
    kind, _, pretty = name.partition("_pretty")
    if name.endswith("_pretty") and not pretty and (near := _near(at, today)):
        return near
    shapes = {
        "date_num": f"{at:%Y-%m-%d}",
        "date_slash": f"{at:%m/%d/%Y}",
        "date": f"{at:%B} {_ordinal(at.day)}, {at.year}",
        "date_short": f"{at:%b} {at.day}, {at.year}",
        "date_long": _long(at),
        "time": clock(at),
        "time_secs": f"{at.hour % 12 or 12}:{at:%M:%S} {'AM' if at.hour < 12 else 'PM'}",
        "ago": _ago(today - at),
    }
    return shapes.get(kind)


def _near(at: datetime, today: datetime) -> str | None:
    days = (at.date() - today.date()).days
    return {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(days)


def _long(at: datetime) -> str:
    return f"{at:%A}, {at:%B} {_ordinal(at.day)}, {at.year}"


def _ordinal(day: int) -> str:
    ending = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def _ago(passed: timedelta) -> str:
    minutes = int(passed.total_seconds() // 60)
    if minutes < 1:
        return "just now" if passed >= timedelta(0) else "soon"
    for unit, size in (("day", 1440), ("hour", 60), ("minute", 1)):
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
