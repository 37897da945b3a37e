"""Blocks as text for a terminal: the words of a card, from the same blocks that Slack is given."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bot.aligned import aligned, broken, columns, joined
from bot.blocks.bounded import Block

_CONTROL = re.compile(r"<([^<>\n]+)>")


def as_text(blocks: Iterable[Block], room: int) -> str:
    """The blocks one below the other, an empty line between them, no line wider than `room` columns.

    Ids of people and channels stay ids, with @ and # before them; moments are in UTC; buttons stand in
    brackets. Only words that are longer than a line pass it. Raises KeyError for a block no card has.
    """
    return "\n\n".join("\n".join(_BLOCKS[block["type"]](block, room)) for block in blocks)


def _header(block: Block, room: int) -> Iterator[str]:
    lines = list(broken(block["text"]["text"], room))
    yield from lines
    yield "─" * max(map(columns, lines))


def _section(block: Block, room: int) -> Iterator[str]:
    texts = [block["text"]] if "text" in block else block["fields"]
    for text in texts:
        yield from broken(_text(text), room)


def _context(block: Block, room: int) -> Iterator[str]:
    for element in block["elements"]:
        yield from broken(_text(element), room)


def _rich_text(block: Block, room: int) -> Iterator[str]:
    for part in block["elements"]:
        before = _BEFORE.get(part["type"], "")
        text = "".join(map(_inline, part["elements"]))
        yield from (f"{before}{line}" for line in broken(text, room - len(before)))


def _table(block: Block, room: int) -> Iterator[str]:
    settings = block["column_settings"]
    right = {at for at, column in enumerate(settings) if column["align"] == "right"}
    rows = [[cell["text"] for cell in row] for row in block["rows"]]
    yield from map(joined, aligned(rows, right=right, room=room))


def _actions(block: Block, room: int) -> Iterator[str]:
    yield from broken("  ".join(f"[{button['text']['text']}]" for button in block["elements"]), room)


def _divider(block: Block, room: int) -> Iterator[str]:
    yield "─" * room


_BEFORE = {"rich_text_quote": "> ", "rich_text_preformatted": "    "}
_BLOCKS: Mapping[str, Callable[[Block, int], Iterator[str]]] = {
    "actions": _actions,
    "context": _context,
    "divider": _divider,
    "header": _header,
    "rich_text": _rich_text,
    "section": _section,
    "table": _table,
}


def _text(text: Mapping[str, Any]) -> str:
    shown = str(text["text"])
    if text["type"] == "plain_text":
        return shown
    named = _CONTROL.sub(lambda match: _resolved(match[1]), shown)
    # the reverse of characters.escape, in the reverse order
    return named.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def _resolved(control: str) -> str:
    target, _, label = control.partition("|")
    return label or target


def _inline(element: Mapping[str, Any]) -> str:
    match element["type"]:
        case "user":
            return f"@{element['user_id']}"
        case "channel":
            return f"#{element['channel_id']}"
        case "date":
            return str(element["fallback"])
        case _:
            return str(element["text"])
