"""Values on their way into PostgreSQL and back: JSON, text, new ids."""

import json
import re
import secrets
from typing import Any

_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def text(value: str) -> str:
    """`value` as PostgreSQL can store it: no NUL, no half of a surrogate pair."""
    return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def dump(value: Any) -> str | None:
    """A JSON value for a `::jsonb` parameter; None is SQL's NULL."""
    if value is None:
        return None
    return text(_ESCAPED_NUL.sub(r"\1\\ufffd", json.dumps(value, ensure_ascii=False)))


def new_id(kind: str) -> str:
    """An opaque id that nobody can guess, such as `apr_3f9c…`."""
    return f"{kind}_{secrets.token_hex(10)}"
