"""Makes text from outside safe to show and to store: nothing invisible, endless or unstorable."""

import re
import unicodedata
from collections.abc import Mapping

from agent.canonical import Json

ELLIPSIS = "…"
# fillers, joiners and selectors that Unicode calls letters or marks, and nobody sees
_ALSO_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def visible(text: str) -> str:
    """Take out controls, bidi and zero-width characters; a line break or tab becomes a space."""
    return "".join(_visible(character) for character in text)


def line(text: str, limit: int) -> str:
    """Give one line of at most `limit` characters: visible ones only, single spaces, an ellipsis if cut."""
    return cut(" ".join(visible(text).split()), limit)


def cut(text: str, limit: int) -> str:
    """Give the text, or its beginning and an ellipsis, in at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def error_text(error: BaseException) -> str:
    """Give "Type: words" for an exception of user code, whose words are user code too and may raise."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except BaseException:
        return f"{type(error).__name__}, whose words cannot be read"


def all_visible(value: Json) -> Json:
    """Give a JSON value with every text and key of it made visible, none of them cut."""
    match value:
        case str():
            return visible(value)
        case list():
            return [all_visible(part) for part in value]
        case Mapping():
            return {visible(key): all_visible(part) for key, part in value.items()}
        case _:
            return value


def storable(value: Json) -> Json:
    """Give a JSON value with � for NUL and for halves of pairs, which Postgres refuses.

    https://www.postgresql.org/docs/current/datatype-json.html
    """
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case list():
            return [storable(part) for part in value]
        case Mapping():
            return {_UNSTORABLE.sub("\ufffd", key): storable(part) for key, part in value.items()}
        case _:
            return value


def is_storable(text: str) -> bool:
    """Say whether Postgres takes the text as it is."""
    return _UNSTORABLE.search(text) is None


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    # control, format (bidi and zero-width among them), surrogate: https://www.unicode.org/reports/tr44/#GC_Values_Table
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") or character in _ALSO_INVISIBLE
    return "" if hidden else character
