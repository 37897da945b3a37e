"""The answer to /approvals: what waits, oldest first, or what the command understands."""

from collections.abc import Mapping, Sequence

from babel.dates import format_timedelta

from bot.blocks import limits
from bot.blocks.bounded import Block, Message, lines, message, sentence
from bot.blocks.card import title
from bot.blocks.people import moment
from bot.blocks.phrases import Link, Phrase, Words, bold, fill, joined, words
from bot.blocks.values import facts_text, number_text
from bot.texts import Texts
from store.records import Approval, NobodyKnows

MOST_ROWS = 20
_TITLES_IN_TEXT = 5


def approvals_list(
    approvals: Sequence[Approval],
    total: int,
    texts: Texts,
    *,
    mine: bool,
    links: Mapping[str, str] | None = None,
) -> Message:
    """The approvals that wait, in the order given; `total` is how many there are beyond those.

    `links` maps an approval's id to the permalink of its card.
    """
    if not approvals:
        return sentence(fill(texts.list.none_mine if mine else texts.list.none))
    counted = _counted(total, texts, mine=mine)
    shown = approvals[:MOST_ROWS]
    named = [words(title(approval), limits.LINE) for approval in shown[:_TITLES_IN_TEXT]]
    blocks = [lines([bold(counted)]), *rows(shown, total, texts, links or {})]
    return message(joined([counted, *named], "\n"), blocks)


def rows(approvals: Sequence[Approval], total: int, texts: Texts, links: Mapping[str, str]) -> list[Block]:
    """A block for each approval, and how many more there are."""
    made = [_row(approval, texts, links.get(approval.id)) for approval in approvals]
    more = total - len(approvals)
    return [*made, lines([fill(texts.list.more, n=number_text(more, texts.locale))])] if more > 0 else made


def help_message(texts: Texts, unknown: str | None = None) -> Message:
    """What the command understands; `unknown` is the word it did not."""
    first = [fill(texts.list.not_understood, word=words(unknown, limits.NAME))] if unknown else []
    phrases = [*first, *(fill(line) for line in texts.list.help)]
    return message(joined(phrases, "\n"), [lines(phrases)])


def _row(approval: Approval, texts: Texts, link: str | None) -> Block:
    known = NobodyKnows.of(approval)
    age = format_timedelta(
        approval.now - (known.since if known else approval.created_at), locale=texts.locale
    )
    line = fill(
        texts.list.row_unknown if known else texts.list.row,
        agent=words(approval.agent, limits.NAME),
        tool=words(approval.tool, limits.NAME),
        amount=facts_text(approval.shown.facts, texts),
        age=age,
        when=moment(approval.expires_at, texts),
    )
    last: Phrase = (Link(link, texts.common.open_card),) if link else (Words(approval.id),)
    named = words(title(approval), limits.LINE, bold=True)
    return lines([named, joined([line, last], texts.common.separator)], limits.LIST_ROW)


def _counted(total: int, texts: Texts, *, mine: bool) -> Phrase:
    plural = texts.list.mine if mine else texts.list.everyone
    return fill(plural.of(total, texts.locale), n=number_text(total, texts.locale))
