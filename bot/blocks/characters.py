"""Text from outside made harmless and short: what it may hold, how long it is, where it may be cut."""

import re
import unicodedata
from collections.abc import Callable, Iterator

from agent.legible import ELLIPSIS, visible

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_READ = 8  # times what is shown: a text that is longer is not read to its end
_MOST_MARKS = 8  # on one letter; more of them cover the lines around


def clean(text: str) -> str:
    """Take out what cannot be seen or reorders what can: control, bidi and zero-width characters.

    Line ends stay, as "\\n"; a tab becomes a space; outer white space goes.
    """
    return "\n".join(map(visible, _LINE_ENDS.sub("\n", text).split("\n"))).strip()


def one_line(text: str) -> str:
    """Clean `text` and put it on one line."""
    return " ".join(clean(text).split())


def tidy(text: str, limit: int) -> str:
    """Clean `text`, with its lines, and cut it to `limit`."""
    return cut(clean(text[: _READ * limit]), limit)


def tidy_line(text: str, limit: int) -> str:
    """Clean `text`, put it on one line and cut it to `limit`."""
    return cut(one_line(text[: _READ * limit]), limit)


def width(text: str) -> int:
    """The length in UTF-16 units, the strictest way in which Slack may count."""
    return len(text) + sum(1 for c in text if ord(c) > 0xFFFF)


def escape(text: str) -> str:
    """Replace Slack's three control characters, and nothing else, by entities.

    https://docs.slack.dev/messaging/formatting-message-text
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escaped_width(text: str) -> int:
    """The length `text` has once it is escaped."""
    return width(escape(text))


def cut(text: str, limit: int, measure: Callable[[str], int] = width) -> str:
    """Shorten `text` to at most `limit` by `measure`, never inside a character people see as one.

    A text that is cut ends with an ellipsis. Escape afterwards, so that no entity is cut.
    """
    if measure(text) <= limit:
        return text
    kept, room = [], limit - measure(ELLIPSIS)
    for cluster in clusters(text):
        room -= measure(cluster)
        if room < 0:
            break
        kept.append(cluster)
    return "".join(kept).rstrip() + ELLIPSIS


def clusters(text: str) -> Iterator[str]:
    """Split `text` into what people see as one character: a letter with its marks, a flag, an emoji.

    The rules of https://www.unicode.org/reports/tr29/ that matter once format characters are gone.
    """
    cluster = ""
    for c in text:
        if cluster and _joins(cluster, c):
            cluster += c
        else:
            if cluster:
                yield cluster
            cluster = c
    if cluster:
        yield cluster


def _joins(cluster: str, c: str) -> bool:
    if _is_mark(c):
        return len(cluster) <= _MOST_MARKS
    if _is_flag_half(c):
        return len(cluster) == 1 and _is_flag_half(cluster)
    return _is_jamo(cluster[-1]) and "\u1160" <= c <= "\u11ff"


def _is_mark(c: str) -> bool:
    return unicodedata.category(c) in {"Mn", "Mc", "Me"} or "\U0001f3fb" <= c <= "\U0001f3ff"


def _is_flag_half(c: str) -> bool:
    return "\U0001f1e6" <= c <= "\U0001f1ff"


def _is_jamo(c: str) -> bool:
    return "\u1100" <= c <= "\u11ff" or "\uac00" <= c <= "\ud7a3"
