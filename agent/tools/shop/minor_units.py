"""Amounts as Stripe takes them: whole numbers of the currency's smallest unit."""

from agent.tool import Money, ToolError

# https://docs.stripe.com/currencies: which are not those of ISO 4217
_NO_DIGITS = frozenset(
    {
        "BIF",
        "CLP",
        "DJF",
        "GNF",
        "JPY",
        "KMF",
        "KRW",
        "MGA",
        "PYG",
        "RWF",
        "VND",
        "VUV",
        "XAF",
        "XOF",
        "XPF",
    }
)
_TWO_ZEROS = frozenset({"ISK", "UGX"})
"""Written with two digits, which must be zeros."""
_THREE_DIGITS = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})
"""Of which the last must be a zero."""


def minor_units(amount: Money) -> int:
    """Give the amount in Stripe's smallest unit: 81.63 EUR is 8163, 500 JPY is 500, 1.250 KWD is 1250.

    ToolError if Stripe has no such amount; nothing is rounded.
    """
    scaled = amount.amount.scaleb(exponent(amount.currency))
    step = _step(amount.currency)
    if scaled <= 0 or scaled % step != 0:
        raise ToolError(f"Stripe cannot refund {amount}: it has no such amount in {amount.currency}")
    return int(scaled)


def exponent(currency: str) -> int:
    """How many digits after the point Stripe writes for the currency."""
    if currency in _NO_DIGITS:
        return 0
    return 3 if currency in _THREE_DIGITS else 2


def _step(currency: str) -> int:
    if currency in _TWO_ZEROS:
        return 100
    return 10 if currency in _THREE_DIGITS else 1
