"""What code measured about a call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from agent.canonical import Json, canonical, digest, plain
from agent.money import Money, is_money


@dataclass(frozen=True, init=False, eq=False)
class Facts:
    """Count, amount and item ids of one call, plus any named values; equal when their JSON is equal.

    `items` are kept sorted, so the order in which a query gives them does not matter.
    A named value reads as an attribute: `Facts(count=1, country="PT").country`.
    """

    count: int
    amount: Money | None
    items: tuple[str, ...]
    more: Mapping[str, Any]

    def __init__(
        self, count: int, amount: Money | None = None, items: Iterable[str] = (), **more: object
    ) -> None:
        """Check and freeze the facts; TypeError or ValueError says which part is wrong."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"Facts: count must be a whole number from 0, not {count!r}")
        if amount is not None and not isinstance(amount, Money):
            raise TypeError(f"Facts: amount must be Money, not {amount!r}")
        for name, value in more.items():
            if hasattr(type(self), name):
                raise ValueError(f"Facts: {name!r} already means something; choose another name")
            plain(value)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "amount", amount)
        object.__setattr__(self, "items", _checked_items(items))
        object.__setattr__(self, "more", MappingProxyType(dict(more)))

    def __getattr__(self, name: str) -> Any:
        # reached only for names that are no field; `__dict__` because `more` may not be set yet
        more: Mapping[str, Any] = self.__dict__.get("more", {})
        if name in more:
            return more[name]
        raise AttributeError(f"these facts have no {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and canonical(self) == canonical(other)

    def __hash__(self) -> int:
        return hash(canonical(self))

    @property
    def items_digest(self) -> str:
        """The hash of the sorted item ids."""
        return digest(self.items)

    def to_json(self) -> dict[str, Json]:
        """Give {"count": …, "amount": … or None, "items": […], "more": {…}}."""
        return {
            "count": self.count,
            "amount": self.amount.to_json() if self.amount else None,
            "items": list(self.items),
            "more": {name: plain(value) for name, value in self.more.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        amount = Money.from_json(data["amount"]) if data["amount"] else None
        more = {n: Money.from_json(v) if is_money(v) else v for n, v in data["more"].items()}
        return cls(data["count"], amount, data["items"], **more)


def _checked_items(items: Iterable[str]) -> tuple[str, ...]:
    if isinstance(items, str):
        raise TypeError(f"Facts: items must be a list of ids, not the text {items!r}")
    ids = tuple(items)
    for item in ids:
        if not isinstance(item, str) or not item:
            raise TypeError(f"Facts: every item must be an id as text, not {item!r}")
    if len(set(ids)) != len(ids):
        twice = next(item for item in ids if ids.count(item) > 1)
        raise ValueError(f"Facts: the item {twice!r} is there twice; give every item once")
    return tuple(sorted(ids))
