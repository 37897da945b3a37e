"""Text for a terminal: how many columns it takes there, lines broken to a width, rows in columns."""

import unicodedata
from collections.abc import Collection, Iterator, Sequence

from bot.blocks.characters import clusters, cut

GAP = "  "
_NARROWEST = 3
_EMOJI_FORM = "\ufe0f"


def columns(text: str) -> int:
    """How many columns `text` takes: 2 for each wide character and emoji, none for a mark on a letter.

    The widths of https://www.unicode.org/reports/tr11/.
    """
    return sum(map(_columns_of_cluster, clusters(text)))


def _columns_of_cluster(cluster: str) -> int:
    first = cluster[0]
    if unicodedata.category(first) in {"Mn", "Me", "Cf"}:
        return 0
    is_flag = "\U0001f1e6" <= first <= "\U0001f1ff" and len(cluster) == 2
    is_wide = unicodedata.east_asian_width(first) in {"W", "F"}
    return 2 if is_wide or is_flag or _EMOJI_FORM in cluster else 1


def broken(text: str, room: int) -> Iterator[str]:
    """The lines of `text`, each broken between words to `room` columns; a longer word stays whole."""
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and columns(longer) > room:
                yield line
                longer = word
            line = longer
        yield line


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), room: int | None = None
) -> list[list[str]]:
    """The cells padded to the width of their column; the columns in `right` are set to the right.

    With `room` the widest columns are narrowed until a row fits it, and their longer cells end with “…”.
    """
    widths = _widths(rows, room)
    return [
        [_placed(cell, width, at in right) for at, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]


def joined(cells: Sequence[str]) -> str:
    """One aligned row as a line."""
    return GAP.join(cells).rstrip()


def _widths(rows: Sequence[Sequence[str]], room: int | None) -> list[int]:
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    if room is None:
        return widths
    room -= len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _placed(cell: str, width: int, to_the_right: bool) -> str:
    shown = cut(cell, width, columns)
    padding = " " * (width - columns(shown))
    return padding + shown if to_the_right else shown + padding
