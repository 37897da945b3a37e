"""Newer blocks: rich text, markdown, alert, card, carousel, plan and task card."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.checker import Checker
from bot.sandbox.checks.elements import Check, check_element, check_image
from bot.sandbox.errors import Json

PARTS = frozenset({"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"})
INLINE = frozenset(
    {"text", "link", "user", "usergroup", "channel", "emoji", "broadcast", "team", "date", "color"}
)
LEVELS = frozenset({"default", "info", "warning", "error", "success"})
STATUSES = frozenset({"pending", "in_progress", "complete", "error"})
UNBOUNDED = 1_000_000


def check_rich_text(check: Checker, block: Any, at: str) -> None:
    """A rich text block, as a block of its own, a table's cell or a task's details."""
    if not isinstance(block, dict) or block.get("type") != "rich_text":
        check.fail(at, "must be a rich_text block")
        return
    check.known(block, {"type", "block_id", "elements"}, at)
    for pointer, part in check.items(block, "elements", at, UNBOUNDED):
        _part(check, part, pointer)


def _part(check: Checker, part: Any, at: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PARTS:
        check.fail(at, f"unsupported rich text element: {kind}")
        return
    check.known(part, {"type", "elements", "style", "indent", "offset", "border", "language"}, at)
    for pointer, element in check.items(part, "elements", at, UNBOUNDED, least=0):
        if kind == "rich_text_list":
            _part(check, element, pointer)
        else:
            _inline(check, element, pointer)


def _inline(check: Checker, element: Any, at: str) -> None:
    kind = element.get("type") if isinstance(element, dict) else None
    if kind not in INLINE:
        check.fail(at, f"unsupported rich text element: {kind}")
    elif kind == "text":
        check.text_chars += len(check.string(element, "text", at, UNBOUNDED, needed=True))
    elif kind == "link":
        check.string(element, "url", at, UNBOUNDED, needed=True)


def _markdown(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "text"}, at)
    check.markdown_chars += len(check.string(block, "text", at, UNBOUNDED, needed=True))
    if check.markdown_chars > limits.MARKDOWN_BLOCKS_TEXT:
        check.fail(
            f"{at}/text", f"markdown blocks: at most {limits.MARKDOWN_BLOCKS_TEXT} characters in a message"
        )


def _alert(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "text", "level"}, at)
    check.text(block, "text", at, limits.ALERT_TEXT, needed=True)
    check.choice(block, "level", at, LEVELS)


def _card(check: Checker, block: Json, at: str) -> None:
    names = {"type", "block_id", "hero_image", "icon", "title", "subtitle", "body", "actions", "slack_icon"}
    check.known(block, names, at)
    if not block.keys() & {"hero_image", "title", "actions", "body"}:
        check.fail(at, "at least one of hero_image, title, actions, or body is required")
    check.text(block, "title", at, limits.CARD_TITLE)
    check.text(block, "subtitle", at, limits.CARD_TITLE)
    check.text(block, "body", at, limits.CARD_BODY)
    for name in ("hero_image", "icon"):
        if name in block:
            check_image(check, block[name], f"{at}/{name}")
    elements = check.items(block, "actions", at, limits.CARD_BUTTONS, needed=False)
    for pointer, element in elements:
        check_element(check, element, pointer, frozenset({"button"}))
    check.action_ids(elements)


def _carousel(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "elements"}, at)
    for pointer, card in check.items(block, "elements", at, limits.CAROUSEL_CARDS):
        if not isinstance(card, dict) or card.get("type") != "card":
            check.fail(pointer, "must be a card")
        else:
            check.block_id(card, pointer)
            _card(check, card, pointer)


def _task_card(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "task_id", "title", "details", "output", "sources", "status"}, at)
    check.string(block, "task_id", at, limits.BLOCK_ID, needed=True)
    check.string(block, "title", at, UNBOUNDED, needed=True)
    check.choice(block, "status", at, STATUSES, needed=True)
    for name in ("details", "output"):
        if name in block:
            check_rich_text(check, block[name], f"{at}/{name}")


def _plan(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "title", "tasks"}, at)
    check.string(block, "title", at, UNBOUNDED, needed=True)
    for pointer, task in check.items(block, "tasks", at, UNBOUNDED, least=0, needed=False):
        if not isinstance(task, dict):
            check.fail(pointer, "must be a task_card")
        else:
            _task_card(check, task, pointer)


RICH_BLOCKS: Mapping[str, Check] = MappingProxyType(
    {
        "rich_text": check_rich_text,
        "markdown": _markdown,
        "alert": _alert,
        "card": _card,
        "carousel": _carousel,
        "task_card": _task_card,
        "plan": _plan,
    }
)
