"""Values on their way into PostgreSQL and back: JSON, text, new ids."""

import json
import re
import secrets
from typing import Any

_WRITE = json.JSONEncoder(ensure_ascii=False).encode
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def text(value: str) -> str:
    """`value` as PostgreSQL can store it: no NUL, no half of a surrogate pair."""
    value = value.replace("\x00", "\ufffd")
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def dump(value: Any) -> str | None:
    """A JSON value for a `::jsonb` parameter; None is SQL's NULL."""
    if value is None:
        return None
    written = _WRITE(value)
    if "\\u0000" in written:
        written = _ESCAPED_NUL.sub(r"\1\\ufffd", written)
    return text(written)


def new_id(kind: str) -> str:
    """An opaque id that nobody can guess, such as `apr_3f9c…`."""
    return f"{kind}_{secrets.token_hex(10)}"
