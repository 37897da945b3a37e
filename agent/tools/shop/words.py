"""Counts and lists as people read them."""

from collections import Counter
from collections.abc import Sequence

from babel.numbers import format_decimal


def counted(count: int, noun: str, plural: str | None = None, locale: str = "en") -> str:
    """Write a count with its noun: "1 payment", "1,204 customers", "2 people"."""
    return f"{format_decimal(count, locale=locale)} {noun if count == 1 else plural or noun + 's'}"


def repeated(ids: Sequence[str], most: int = 5) -> str:
    """Name the ids that are there more than once: "a, b and 3 more"; "" if each is there once."""
    found = [one for one, times in Counter(ids).items() if times > 1]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
