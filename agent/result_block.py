"""Puts a stored result into the provider's form, within a size, and never silently shortened."""

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from agent.canonical import Json

BLOCK_LIMIT = 100_000  # bytes of UTF-8
_NOTE_ROOM = 400


def tool_result_block(provider_id: str, result_json: Mapping[str, Any]) -> dict[str, Any]:
    """Give Anthropic's tool_result block for a stored result, {"content", "is_error"}.

    Its content is JSON text, never empty and at most 100 kB; what does not fit says so where it is missing.
    """
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": provider_id,
        "content": _spell(fitting(result_json["content"])),
    }
    return block | ({"is_error": True} if result_json["is_error"] else {})


def shorten(value: Json, limit: int) -> Json:
    """Give the value, or an object that says it was too long and has its beginning, in `limit` bytes."""
    spelled = _spell(value)
    size = len(spelled.encode())
    if size <= limit:
        return value
    # quoted again, a character may take up to six bytes more: the longest beginning that still fits is sought
    room = max(limit - _NOTE_ROOM, 0)
    lengths = range(min(len(spelled), room) + 1)
    fitting = bisect_right(lengths, room, key=lambda length: len(_spell(spelled[:length]).encode()))
    begin = spelled[: max(fitting - 1, 0)]
    return {
        "truncated": True,
        "note": f"This value is {size} bytes long and was cut; begin has its first {len(begin)} characters.",
        "begin": begin,
    }


def fitting(content: dict[str, Json], limit: int = BLOCK_LIMIT) -> dict[str, Json]:
    """Shorten the longest values alike, so that what happened and what to do stay readable."""
    sizes = {key: len(_spell(value).encode()) for key, value in content.items()}
    room = limit - (len(_spell(dict.fromkeys(content, 0)).encode()) - len(content))
    for place, size in enumerate(sorted(sizes.values())):
        level = room // (len(sizes) - place)
        if size > level:
            return {k: shorten(value, level) if sizes[k] > level else value for k, value in content.items()}
        room -= size
    return content


def _spell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
