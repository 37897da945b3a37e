"""App Home: what waits for the person who looks at it."""

from collections.abc import Mapping, Sequence

from bot.blocks.bounded import View, header, home, lines
from bot.blocks.listing import MOST_ROWS, rows
from bot.blocks.phrases import fill
from bot.texts import Texts
from store.records import Approval


def home_view(
    approvals: Sequence[Approval], total: int, texts: Texts, *, links: Mapping[str, str] | None = None
) -> View:
    """The approvals that wait for this person, in the order given, each with a link to its card."""
    if not approvals:
        return home([header(texts.list.home), lines([fill(texts.list.none_mine)])])
    return home([header(texts.list.home), *rows(approvals[:MOST_ROWS], total, texts, links or {})])
