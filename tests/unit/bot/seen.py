"""What a reader sees of blocks, and Slack's limits as the sandbox enforces them."""

from collections.abc import Iterator
from typing import Any

from bot.blocks import limits
from bot.blocks.bounded import Message, View
from bot.blocks.characters import width
from bot.sandbox.checks.messages import check_content
from bot.sandbox.checks.views import check_view
from bot.sandbox.unsettled import Unsettled

STRICTEST_UPDATE = 4_000


def accepted(message: Message) -> Message:
    """The message, after a strict Slack has taken it for chat.postMessage and chat.update."""
    check_content(message.arguments(), Unsettled(), text_limit=STRICTEST_UPDATE)
    assert message.text.strip()
    assert width(message.text) <= STRICTEST_UPDATE
    assert sum(map(width, texts_in(message.blocks))) <= limits.BLOCKS_TEXT
    return message


def accepted_view(view: View) -> View:
    """The view, after a strict Slack has taken it."""
    check_view(view, view["type"], Unsettled())
    return view


def texts_in(value: Any) -> Iterator[str]:
    """Every text of blocks, mrkdwn and plain."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in {"text", "fallback"} and isinstance(part, str):
                yield part
            else:
                yield from texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part)


def read(message: Message | View) -> str:
    """All that stands in the blocks, in one text."""
    blocks = message.blocks if isinstance(message, Message) else message["blocks"]
    return "".join(texts_in(list(blocks))) if isinstance(message, dict) else "".join(texts_in(blocks))


def parsed_as_markup(value: Any) -> Iterator[str]:
    """Every text in which Slack would parse mentions, links and styles."""
    if isinstance(value, dict):
        if value.get("type") == "mrkdwn":
            yield value["text"]
        for part in value.values():
            yield from parsed_as_markup(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from parsed_as_markup(part)


def buttons(message: Message) -> list[dict[str, Any]]:
    """The buttons of a message, in order."""
    return [e for block in message.blocks if block["type"] == "actions" for e in block["elements"]]
