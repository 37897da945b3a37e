"""Constructors of Block Kit that cannot break a limit of Slack: they clean, cut and never leave a text empty.

Values from outside reach Slack only as plain text without emoji, as table cells or as text elements of rich
text, where no markup is parsed; in mrkdwn stand our own words, escaped, and tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.legible import ELLIPSIS
from bot.blocks import limits
from bot.blocks.characters import cut, one_line, tidy, tidy_line
from bot.blocks.phrases import Phrase, Words, elements, mrkdwn, plain
from bot.blocks.target import Target

Block = dict[str, Any]
View = dict[str, Any]

EMPTY = "—"  # Slack refuses an empty text


@dataclass(frozen=True)
class Message:
    """A message: blocks, and the text a notification and a screen reader use (escaped, at most 4,000)."""

    text: str
    blocks: tuple[Block, ...]

    def arguments(self) -> dict[str, Any]:
        """The arguments of chat.postMessage, chat.update, chat.postEphemeral and of a response_url."""
        return {"text": self.text, "blocks": list(self.blocks)}


def message(text: Phrase, blocks: Iterable[Block]) -> Message:
    """A message of at most 50 blocks; its text is never empty."""
    return Message(mrkdwn(text, limits.MESSAGE_TEXT) or EMPTY, tuple(blocks)[: limits.BLOCKS_PER_MESSAGE])


def text_only(shown: Message, limit: int = limits.MESSAGE_TEXT) -> Message:
    """The message without its blocks, its text cut to `limit`, but inside no token and no entity."""
    text = cut(shown.text, limit)
    for begin, end in ("<>", "&;"):
        at = text.rfind(begin)
        if at > text.rfind(end):
            text = text[:at].rstrip() + ELLIPSIS
    return Message(text, ())


def sentence(phrase: Phrase) -> Message:
    """A message that is one paragraph."""
    return message(phrase, [lines([phrase])])


def plain_text(text: str, limit: int) -> dict[str, Any]:
    """A plain text object; `:names:` in it are no emoji."""
    return {"type": "plain_text", "text": tidy(text, limit) or EMPTY, "emoji": False}


def plain_line(text: str, limit: int) -> dict[str, Any]:
    """A plain text object of one line."""
    return {"type": "plain_text", "text": tidy_line(text, limit) or EMPTY, "emoji": False}


def header(text: str) -> Block:
    """A header of one line."""
    return {"type": "header", "text": plain_line(text, limits.HEADER)}


def section(phrase: Phrase) -> Block:
    """A section of mrkdwn: for our own words, mentions and dates."""
    text = mrkdwn(phrase, limits.SECTION_TEXT) or EMPTY
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def plain_section(phrase: Phrase) -> Block:
    """A section of plain text, moments in UTC: the block that every Slack takes."""
    return {"type": "section", "text": plain_text(plain(phrase), limits.SECTION_TEXT)}


def context(phrase: Phrase) -> Block:
    """One line of small print."""
    return {"type": "context", "elements": [plain_line(plain(phrase), limits.CONTEXT)]}


def lines(phrases: Iterable[Phrase], limit: int = limits.RICH_TEXT) -> Block:
    """Rich text, one phrase a line."""
    whole: list[Any] = []
    for phrase in phrases:
        whole += [Words("\n"), *phrase] if whole else phrase
    return _rich_text("rich_text_section", tuple(whole), limit)


def quote(text: str, limit: int) -> Block:
    """Words of somebody else, set off as a quotation."""
    return _rich_text("rich_text_quote", (Words(tidy(text, limit) or EMPTY),), limit)


def code(text: str, limit: int) -> Block:
    """Data as it is, in letters of equal width."""
    return _rich_text("rich_text_preformatted", (Words(tidy(text, limit) or EMPTY),), limit)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> Block:
    """A table with `columns` as its first row; `right` are the columns set to the right.

    A message can hold one table only: https://docs.slack.dev/reference/block-kit/blocks/table-block
    """
    shown = [list(row)[: limits.TABLE_CELLS] for row in [columns, *rows][: limits.TABLE_ROWS]]
    room = max(1, min(limits.CELL, limits.TABLE_TEXT // max(1, sum(map(len, shown)))))
    aligned = set(right)
    return {
        "type": "table",
        "column_settings": [
            {"align": "right" if at in aligned else "left", "is_wrapped": True} for at in range(len(shown[0]))
        ],
        "rows": [[_cell(cell, room) for cell in row] for row in shown],
    }


def divider() -> Block:
    """A line across."""
    return {"type": "divider"}


def button(label: str, action_id: str, target: Target, described: str, style: str | None = None) -> Block:
    """A button that carries a target; `described` is what a screen reader says."""
    made: Block = {
        "type": "button",
        "text": plain_text(label, limits.BUTTON_TEXT),
        "action_id": action_id,
        "value": target.value,
        "accessibility_label": tidy_line(described, limits.ACCESSIBILITY_LABEL) or EMPTY,
    }
    return made | {"style": style} if style else made


def asks_first(button: Block, title: str, text: str, yes: str, no: str) -> Block:
    """The button with a dialog that asks before it is pressed; `yes` goes on."""
    dialog = {
        "title": plain_line(title, limits.CONFIRM_TITLE),
        "text": plain_text(text, limits.CONFIRM_TEXT),
        "confirm": plain_line(yes, limits.CONFIRM_BUTTON),
        "deny": plain_line(no, limits.CONFIRM_BUTTON),
        "style": "danger",
    }
    return button | {"confirm": dialog}


def actions(buttons: Sequence[Block]) -> Block:
    """A row of buttons; one at least."""
    return {"type": "actions", "elements": list(buttons)[: limits.ACTIONS_ELEMENTS]}


def input_block(
    block_id: str, action_id: str, element: Block, label: str, hint: str = "", *, optional: bool = False
) -> Block:
    """An input with its label above and its hint below."""
    made: Block = {
        "type": "input",
        "block_id": block_id,
        "element": element | {"action_id": action_id},
        "label": plain_line(label, limits.LINE),
        "optional": optional,
    }
    return made | {"hint": plain_line(hint, limits.LINE)} if one_line(hint) else made


def text_input(
    initial: str = "", *, multiline: bool = False, longest: int | None = None, shortest: int = 0
) -> Block:
    """A text input; `initial` must fit into 3,000 characters."""
    made: Block = {
        "type": "plain_text_input",
        "multiline": multiline,
        "max_length": min(longest or limits.PLAIN_TEXT_INPUT, limits.PLAIN_TEXT_INPUT),
    }
    if 0 < shortest <= made["max_length"]:
        made["min_length"] = shortest
    return made | {"initial_value": initial} if initial else made


def option(text: str, value: str) -> Block:
    """A choice of a select; `value` is ours and short."""
    return {"text": plain_line(text, limits.OPTION_TEXT), "value": value}


def modal(
    title: str,
    blocks: Iterable[Block],
    *,
    callback_id: str,
    target: Target | None,
    close: str,
    submit: str | None = None,
) -> View:
    """A modal; without `submit` it cannot be sent. `target` is all that it remembers."""
    view: View = {
        "type": "modal",
        "title": plain_line(title, limits.VIEW_TITLE),
        "close": plain_line(close, limits.VIEW_TITLE),
        "callback_id": callback_id,
        "private_metadata": target.value if target else "",
        "blocks": list(blocks)[: limits.BLOCKS_PER_VIEW],
    }
    return view | {"submit": plain_line(submit, limits.VIEW_TITLE)} if submit else view


def home(blocks: Iterable[Block]) -> View:
    """An App Home."""
    return {"type": "home", "blocks": list(blocks)[: limits.BLOCKS_PER_VIEW]}


def _rich_text(kind: str, phrase: Phrase, limit: int) -> Block:
    made = elements(phrase, limit) or [{"type": "text", "text": EMPTY}]
    return {"type": "rich_text", "elements": [{"type": kind, "elements": made}]}


def _cell(text: str, room: int) -> Block:
    return {"type": "raw_text", "text": tidy_line(text, room) or EMPTY}
