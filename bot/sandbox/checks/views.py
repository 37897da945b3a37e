"""What a modal or a Home tab may be."""

import json
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.blocks import check_blocks
from bot.sandbox.checks.checker import PLAIN, Checker
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.unsettled import Unsettled

NAMES = frozenset(
    {
        *("type", "title", "blocks", "close", "submit", "private_metadata", "callback_id"),
        *("clear_on_close", "notify_on_close", "external_id", "submit_disabled"),
    }
)


def check_view(view: Any, kind: str, unsettled: Unsettled) -> Json:
    """The view itself if it is a valid one of `kind` ("modal" or "home"); else raises SlackError."""
    if not isinstance(view, dict):
        raise SlackError("invalid_arguments", ["[ERROR] must be an object [json-pointer:/view]"])
    if len(json.dumps(view, separators=(",", ":"), ensure_ascii=False).encode()) > limits.VIEW_BYTES:
        raise SlackError("view_too_large")
    check = Checker(kind, unsettled)
    check.known(view, NAMES, "/view")
    if view.get("type") != kind:
        check.fail("/view/type", f"must be {kind}")
    blocks = [block for _, block in check.items(view, "blocks", "/view", limits.VIEW_BLOCKS, least=0)]
    check_blocks(check, blocks, "/view/blocks", limits.VIEW_BLOCKS)
    _check_frame(check, view, kind)
    has_input = any(isinstance(b, dict) and b.get("type") == "input" for b in blocks)
    if kind == "modal" and has_input and "submit" not in view:
        check.fail("/view", "missing required field: submit")
    if check.problems:
        raise SlackError("invalid_arguments", [str(p) for p in check.problems])
    return view


def _check_frame(check: Checker, view: Json, kind: str) -> None:
    at = "/view"
    check.text(view, "title", at, limits.VIEW_TITLE, kinds=PLAIN, needed=kind == "modal")
    check.text(view, "submit", at, limits.VIEW_BUTTON, kinds=PLAIN)
    check.text(view, "close", at, limits.VIEW_BUTTON, kinds=PLAIN)
    check.string(view, "callback_id", at, limits.CALLBACK_ID, least=0)
    check.string(view, "external_id", at, limits.EXTERNAL_ID, least=0)
    check.string(view, "private_metadata", at, limits.PRIVATE_METADATA, least=0)
    for name in ("clear_on_close", "notify_on_close", "submit_disabled"):
        check.boolean(view, name, at)
