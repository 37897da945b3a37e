"""Counts as people read them."""

from babel.numbers import format_decimal


def counted(count: int, noun: str, plural: str | None = None, locale: str = "en") -> str:
    """Write a count with its noun: "1 payment", "1,204 customers", "2 people"."""
    return f"{format_decimal(count, locale=locale)} {noun if count == 1 else plural or noun + 's'}"
