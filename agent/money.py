"""Exact amounts in one currency."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from typing import Any, Self

from babel.numbers import format_currency

from agent.canonical import Json, is_short

# ISO 4217: the currencies that do not have two digits after the point
_NO_DIGITS = frozenset(
    {
        "BIF",
        "CLP",
        "DJF",
        "GNF",
        "ISK",
        "JPY",
        "KMF",
        "KRW",
        "PYG",
        "RWF",
        "UGX",
        "VND",
        "VUV",
        "XAF",
        "XOF",
        "XPF",
    }
)
_THREE_DIGITS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})
_AMOUNT = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,8})?")
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, init=False, slots=True)
class Money:
    """An amount of an ISO currency; two amounts are compared or added only in the same currency."""

    amount: Decimal
    currency: str

    def __init__(self, amount: str | int | Decimal, currency: str) -> None:
        """Take text like "4120.00", an int or a Decimal; a float raises TypeError, other text ValueError."""
        if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
            raise TypeError(f"Money takes text, an int or a Decimal, never a {type(amount).__name__}")
        text = amount if isinstance(amount, str) else _written(Decimal(amount))
        if not _AMOUNT.fullmatch(text):
            raise ValueError(f"{amount!r} is not an amount; write it like '4120.00'")
        if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
            raise ValueError(f"{currency!r} is not a currency; write its three letters, like 'EUR'")
        object.__setattr__(self, "amount", _spelled(Decimal(text), currency))
        object.__setattr__(self, "currency", currency)

    def __add__(self, other: "Money") -> "Money":
        return Money(_exact().add(self.amount, self._same(other)), self.currency)

    def __sub__(self, other: "Money") -> "Money":
        return Money(_exact().subtract(self.amount, self._same(other)), self.currency)

    def __lt__(self, other: "Money") -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: "Money") -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: "Money") -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: "Money") -> bool:
        return self.amount >= self._same(other)

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"

    def text(self, locale: str = "en") -> str:
        """Write the amount as people of `locale` do, every digit of it: "€4,120.00"."""
        written: str = format_currency(self.amount, self.currency, locale=locale, decimal_quantization=False)
        return written

    def to_json(self) -> dict[str, Json]:
        """Give {"amount": "4120.00", "currency": "EUR"}."""
        return {"amount": format(self.amount, "f"), "currency": self.currency}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(data["amount"], data["currency"])

    def _same(self, other: object) -> Decimal:
        if not isinstance(other, Money):
            raise TypeError(f"{self} can only be compared with or added to Money, not {other!r}")
        if other.currency != self.currency:
            raise TypeError(f"{self} and {other} are different currencies; convert one of them first")
        return other.amount


def is_money(value: object) -> bool:
    """Say whether `value` is the JSON form of Money."""
    return isinstance(value, dict) and value.keys() == {"amount", "currency"}


def _written(amount: Decimal) -> str:
    # written out, 1e+999999999 would have a billion digits
    return format(amount, "f") if is_short(amount) else str(amount)


def _exact() -> Context:
    # exact or not at all: a sum that does not fit raises instead of being rounded
    return Context(prec=100, traps=[Inexact])


def _digits(currency: str) -> int:
    if currency in _NO_DIGITS:
        return 0
    return 3 if currency in _THREE_DIGITS else 2


def _spelled(amount: Decimal, currency: str) -> Decimal:
    # one spelling per amount, or 50 and 50.00, or 0 and -0, would have two hashes
    exact = _exact()
    shortest = amount.normalize(exact).as_tuple().exponent
    assert isinstance(shortest, int), "the pattern admits finite amounts only"
    digits = max(_digits(currency), -shortest)
    return exact.plus(amount.quantize(Decimal(1).scaleb(-digits), context=exact))
