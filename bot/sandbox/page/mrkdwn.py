"""Slack's mrkdwn as HTML (docs.slack.dev/messaging/formatting-message-text)."""

import re

from bot.sandbox.page.html import Child, Html, joined, tag, text
from bot.sandbox.page.sight import Sight
from bot.sandbox.render import decode

FENCE = re.compile(r"```\n?(.*?)```", re.DOTALL)
QUOTED = re.compile(r"(?:&gt;|>) ?")
INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|<(?P<control>[^<>\n]+)>"
    r"|(?<![\w*])\*(?P<b>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])"
    r"|(?<![\w_])_(?P<i>[^\s_](?:[^_\n]*[^\s_])?)_(?![\w_])"
    r"|(?<![\w~])~(?P<s>[^\s~](?:[^~\n]*[^\s~])?)~(?![\w~])"
)
BREAK = tag("br")


def mrkdwn(source: str, sight: Sight) -> Html:
    """A mrkdwn text: fences, quotations and lines, with what stands in them."""
    parts: list[Child] = []
    for at, piece in enumerate(FENCE.split(source)):
        if at % 2:
            parts.append(tag("pre", decode(piece)))
        elif piece.strip("\n"):
            parts.append(_lines(piece.strip("\n") if len(source) != len(piece) else piece, sight))
    return text(parts)


def _lines(source: str, sight: Sight) -> Html:
    shown: list[Child] = []
    plain: list[Html] = []
    quoted: list[Html] = []
    for line in source.split("\n"):
        mark = QUOTED.match(line)
        if mark is None and quoted:
            shown.append(tag("blockquote", joined(quoted, BREAK)))
            quoted = []
        if mark is not None and plain:
            shown.append(joined(plain, BREAK))
            plain = []
        (plain if mark is None else quoted).append(inline(line[mark.end() :] if mark else line, sight))
    if quoted:
        shown.append(tag("blockquote", joined(quoted, BREAK)))
    return text(shown, joined(plain, BREAK))


def inline(source: str, sight: Sight) -> Html:
    """One line of mrkdwn."""
    parts: list[Child] = []
    end = 0
    for match in INLINE.finditer(source):
        parts += [decode(source[end : match.start()]), _marked(match, sight)]
        end = match.end()
    return text(parts, decode(source[end:]))


def _marked(match: re.Match[str], sight: Sight) -> Child:
    kind = match.lastgroup or ""
    inner = match[kind]
    if kind == "code":
        return tag("code", decode(inner))
    return sight.control(inner) if kind == "control" else tag(kind, inline(inner, sight))
