"""The classic blocks, and the walk over all blocks of a surface."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.checker import ANY_TEXT, PLAIN, Checker
from bot.sandbox.checks.elements import (
    IN_ACTIONS,
    IN_CONTEXT_ACTIONS,
    IN_INPUT,
    IN_SECTION,
    Check,
    check_element,
    check_image,
)
from bot.sandbox.checks.rich import RICH_BLOCKS
from bot.sandbox.checks.surfaces import container_children, surfaces_of
from bot.sandbox.checks.tables import TABLES
from bot.sandbox.errors import Json


def check_blocks(check: Checker, blocks: list[Any], at: str, most: int) -> None:
    """All blocks of a message, an attachment or a view; problems are collected in `check`."""
    if len(blocks) > most:
        check.fail(at, f"no more than {most} items allowed")
    for i, block in enumerate(blocks):
        check_block(check, block, f"{at}/{i}")


def check_block(check: Checker, block: Any, at: str) -> None:
    """One block: its type, its surface, its id, then its own rules."""
    kind = block.get("type") if isinstance(block, dict) else None
    known = {**CLASSIC, **RICH_BLOCKS, **TABLES, "container": _container, "auth_provider": _anything}
    if not isinstance(kind, str) or kind not in known:
        check.fail(at, f"unsupported type: {kind}")
        return
    if check.surface not in surfaces_of(kind, check.unsettled):
        check.fail(at, f"unsupported type on this surface: {kind}")
    check.block_id(block, at)
    known[kind](check, block, at)


def _anything(check: Checker, block: Json, at: str) -> None:
    check.string(block, "value", at, limits.OPTION_VALUE, needed=True)


def _section(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "text", "fields", "accessory", "expand"}, at)
    check.text(block, "text", at, limits.SECTION_TEXT, needed="fields" not in block)
    for pointer, field in check.items(block, "fields", at, limits.SECTION_FIELDS, needed=False):
        check.text_object(field, pointer, limits.SECTION_FIELD)
    if "accessory" in block:
        check_element(check, block["accessory"], f"{at}/accessory", IN_SECTION)


def _header(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "text"}, at)
    check.text(block, "text", at, limits.HEADER_TEXT, kinds=PLAIN, needed=True)


def _divider(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id"}, at)


def _actions(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "elements"}, at)
    elements = check.items(block, "elements", at, limits.ACTIONS_ELEMENTS)
    for pointer, element in elements:
        check_element(check, element, pointer, IN_ACTIONS)
    check.action_ids(elements)


def _context(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "elements"}, at)
    for pointer, element in check.items(block, "elements", at, limits.CONTEXT_ELEMENTS):
        if isinstance(element, dict) and element.get("type") == "image":
            check_image(check, element, pointer)
        else:
            check.text_object(element, pointer, limits.TEXT, ANY_TEXT)


def _context_actions(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "elements"}, at)
    elements = check.items(block, "elements", at, limits.CONTEXT_ACTIONS_ELEMENTS)
    for pointer, element in elements:
        check_element(check, element, pointer, IN_CONTEXT_ACTIONS)
    check.action_ids(elements)


def _input(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "label", "element", "hint", "optional", "dispatch_action"}, at)
    check.text(block, "label", at, limits.INPUT_LABEL, kinds=PLAIN, needed=True)
    check.text(block, "hint", at, limits.INPUT_HINT, kinds=PLAIN)
    check.boolean(block, "optional", at)
    check.boolean(block, "dispatch_action", at)
    check_element(check, block.get("element"), f"{at}/element", IN_INPUT)


def _image(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "image_url", "alt_text", "title", "slack_file"}, at)
    check.string(block, "alt_text", at, limits.ALT_TEXT, needed=True)
    check.string(block, "image_url", at, limits.IMAGE_URL, needed="slack_file" not in block)
    check.text(block, "title", at, limits.IMAGE_TITLE, kinds=PLAIN)


def _video(check: Checker, block: Json, at: str) -> None:
    names = {
        *("type", "block_id", "alt_text", "author_name", "description", "provider_icon_url"),
        *("provider_name", "title", "title_url", "thumbnail_url", "video_url"),
    }
    check.known(block, names, at)
    check.text(block, "title", at, limits.VIDEO_TITLE, kinds=PLAIN, needed=True)
    check.string(block, "author_name", at, limits.VIDEO_AUTHOR)
    for name in ("alt_text", "thumbnail_url", "video_url"):
        check.string(block, name, at, limits.IMAGE_URL, needed=True)


def _file(check: Checker, block: Json, at: str) -> None:
    check.known(block, {"type", "block_id", "external_id", "source"}, at)
    check.string(block, "external_id", at, limits.EXTERNAL_ID, needed=True)
    check.choice(block, "source", at, {"remote"}, needed=True)


def _container(check: Checker, block: Json, at: str) -> None:
    from_title = "rich_text_title" not in block
    names = {
        *("type", "block_id", "title", "rich_text_title", "subtitle", "child_blocks", "width", "icon"),
        *("is_collapsible", "default_collapsed", "has_header_divider"),
    }
    check.known(block, names, at)
    check.text(block, "title", at, limits.CONTAINER_TITLE, kinds=PLAIN, needed=from_title)
    check.text(block, "subtitle", at, limits.CONTAINER_TITLE)
    check.choice(block, "width", at, {"narrow", "standard", "wide", "full"})
    if block.get("is_collapsible") and block.get("has_header_divider"):
        check.fail(at, "has_header_divider cannot be set when is_collapsible is true")
    takes = container_children(check.unsettled)
    for pointer, child in check.items(block, "child_blocks", at, limits.CONTAINER_CHILDREN):
        kind = child.get("type") if isinstance(child, dict) else None
        if kind not in takes:
            check.fail(pointer, f"unsupported type in a container: {kind}")
        else:
            check_block(check, child, pointer)


CLASSIC: Mapping[str, Check] = MappingProxyType(
    {
        "section": _section,
        "header": _header,
        "divider": _divider,
        "actions": _actions,
        "context": _context,
        "context_actions": _context_actions,
        "input": _input,
        "image": _image,
        "video": _video,
        "file": _file,
    }
)
