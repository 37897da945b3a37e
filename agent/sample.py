"""What a tool offers to show a person about a call, and which rows of a batch it chooses."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Self, TypeAlias, TypeVar

from agent.canonical import Json, is_short
from agent.money import Money, is_money

Cell: TypeAlias = str | int | Money | None
Row = TypeVar("Row", bound=Sequence[Any])

MOST_ROWS = 5
LARGEST = 2


@dataclass(frozen=True, init=False)
class Preview:
    """What the approver sees: a title, lines of impact, and rows under columns.

    A tool may offer any number of rows; the house shows at most five (see `pick_rows`).
    Let the first column be the item's id, so that what was added can be marked.
    """

    title: str
    impact: tuple[str, ...]
    columns: tuple[str, ...]
    sample: tuple[tuple[Cell, ...], ...]

    def __init__(
        self,
        title: str,
        impact: Sequence[str] = (),
        columns: Sequence[str] = (),
        sample: Sequence[Sequence[object]] = (),
    ) -> None:
        """Check and freeze; a cell is text, a number, Money, a date or None; else ValueError or TypeError."""
        if not isinstance(title, str) or not title.strip():
            raise ValueError("Preview: title must be a line of text")
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "impact", _lines("impact", impact))
        object.__setattr__(self, "columns", _lines("columns", columns))
        object.__setattr__(self, "sample", tuple(_row(cells, len(columns)) for cells in sample))

    def to_json(self) -> dict[str, Json]:
        """Give {"title": …, "impact": […], "columns": […], "sample": [[…]]}."""
        return {
            "title": self.title,
            "impact": list(self.impact),
            "columns": list(self.columns),
            "sample": [[c.to_json() if isinstance(c, Money) else c for c in row] for row in self.sample],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        sample = [[Money.from_json(c) if is_money(c) else c for c in row] for row in data["sample"]]
        return cls(data["title"], data["impact"], data["columns"], sample)


def pick_rows(
    rows: Sequence[Row],
    *,
    limit: int = MOST_ROWS,
    size: Callable[[Row], Any] | None = None,
    added: Collection[object] = (),
) -> list[Row]:
    """Choose at most `limit` rows: the added ones first, then the largest two, then an even spread.

    A row is known by its first cell; `added` holds the first cells of what was added since the last card.
    `size` measures a row; without it a row is as large as its first Money cell, if it has one and all are of
    the same currency.
    """
    return pick(rows, limit=limit, size=size, added=added)[0]


def pick(
    rows: Sequence[Row],
    *,
    limit: int = MOST_ROWS,
    size: Callable[[Row], Any] | None = None,
    added: Collection[object] = (),
) -> tuple[list[Row], int]:
    """The rows of `pick_rows`, and how many of those after the added ones are the largest."""
    size = size or _size_of(rows)
    new = [row for row in rows if row[0] in added]
    old = [row for row in rows if row[0] not in added]
    chosen, _ = _large_and_spread(new, limit, size)
    others, largest = _large_and_spread(old, limit - len(chosen), size)
    return chosen + others, largest


def _large_and_spread(rows: list[Row], limit: int, size: Callable[[Row], Any]) -> tuple[list[Row], int]:
    if len(rows) <= limit:
        return rows, 0
    sizes = [(size(row), at) for at, row in enumerate(rows)]
    by_size = sorted((pair for pair in sizes if pair[0] is not None), key=lambda pair: pair[0], reverse=True)
    largest = [at for _, at in by_size[: min(LARGEST, limit)]]
    rest = [at for at in range(len(rows)) if at not in largest]
    return [rows[at] for at in largest + _spread(rest, limit - len(largest))], len(largest)


def _spread(indexes: list[int], wanted: int) -> list[int]:
    # the middle of each of `wanted` equal stretches: never simply the first ones
    return [indexes[(2 * part + 1) * len(indexes) // (2 * wanted)] for part in range(wanted)]


def _size_of(rows: Sequence[Row]) -> Callable[[Row], Any]:
    amounts = map(_first_money, rows)
    if len({amount.currency for amount in amounts if amount is not None}) > 1:
        return lambda row: None
    return _first_money


def _first_money(row: Sequence[Any]) -> Money | None:
    return next((cell for cell in row if isinstance(cell, Money)), None)


def _lines(name: str, lines: Sequence[str]) -> tuple[str, ...]:
    if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
        raise TypeError(f"Preview: {name} must be a list of texts, not {lines!r}")
    return tuple(lines)


def _row(cells: Sequence[object], width: int) -> tuple[Cell, ...]:
    if isinstance(cells, str) or len(cells) != width:
        raise ValueError(f"Preview: the row {cells!r} must have one cell for each of the {width} columns")
    return tuple(map(_cell, cells))


def _cell(value: object) -> Cell:
    match value:
        case bool():
            return str(value).lower()
        case None | str() | int() | Money():
            return value
        case Decimal():
            return format(value, "f") if is_short(value) else str(value)
        case date():
            return value.isoformat()
        case _:
            raise TypeError(f"Preview: a cell must be text, a number, Money, a date or None, not {value!r}")
