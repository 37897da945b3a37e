"""Sentences with parts: one template, written as rich text, as mrkdwn or as plain text.

A part that came from outside is always text: rich text parses no markup, and mrkdwn gets it escaped.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from string import Formatter
from typing import Any, TypeAlias

from bot.blocks.characters import cut, escape, escaped_width, tidy, tidy_line, width
from bot.blocks.limits import LINE

Element = dict[str, Any]


@dataclass(frozen=True)
class Words:
    """Text that is shown as it is."""

    text: str
    bold: bool = False

    def element(self) -> Element:
        """The part as an element of rich text."""
        style = {"style": {"bold": True}} if self.bold else {}
        return {"type": "text", "text": self.text, **style}

    def mrkdwn(self) -> str:
        """The part as mrkdwn; bold is left out, because an asterisk in the text could end it."""
        return escape(self.text)

    def plain(self) -> str:
        """The part as plain text."""
        return self.text


@dataclass(frozen=True)
class When:
    """A moment, shown in each reader's own time zone by a format of Slack's date tokens."""

    at: datetime
    format: str

    def element(self) -> Element:
        """The part as an element of rich text."""
        return {"type": "date", "timestamp": self._epoch, "format": self.format, "fallback": self.plain()}

    def mrkdwn(self) -> str:
        """The part as a date token: https://docs.slack.dev/messaging/formatting-message-text#date-formatting"""
        return f"<!date^{self._epoch}^{self.format}|{self.plain()}>"

    def plain(self) -> str:
        """The moment in UTC."""
        return self.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")

    @property
    def _epoch(self) -> int:
        return int(self.at.timestamp())


@dataclass(frozen=True)
class User:
    """A person of the workspace, who is notified of it."""

    user_id: str

    def element(self) -> Element:
        """The part as an element of rich text."""
        return {"type": "user", "user_id": self.user_id}

    def mrkdwn(self) -> str:
        """The part as a mention."""
        return f"<@{escape(self.user_id)}>"

    def plain(self) -> str:
        """The id."""
        return self.user_id


@dataclass(frozen=True)
class Channel:
    """A channel of the workspace, shown by its name."""

    channel_id: str

    def element(self) -> Element:
        """The part as an element of rich text."""
        return {"type": "channel", "channel_id": self.channel_id}

    def mrkdwn(self) -> str:
        """The part as a link to the channel."""
        return f"<#{escape(self.channel_id)}>"

    def plain(self) -> str:
        """The id."""
        return self.channel_id


@dataclass(frozen=True)
class Link:
    """A link to a message of ours."""

    url: str
    text: str

    def element(self) -> Element:
        """The part as an element of rich text."""
        return {"type": "link", "url": self.url, "text": self.text}

    def mrkdwn(self) -> str:
        """The part as a link; a bar in the address would end it early."""
        return f"<{escape(self.url).replace('|', '%7C')}|{escape(self.text)}>"

    def plain(self) -> str:
        """The words of the link."""
        return self.text


Part: TypeAlias = Words | When | User | Channel | Link
Phrase: TypeAlias = tuple[Part, ...]


def words(text: str, limit: int = LINE, *, bold: bool = False) -> Phrase:
    """A phrase of one line of text from anywhere, cleaned and cut to `limit`; a dash for an empty one."""
    return (Words(tidy_line(text, limit) or "—", bold),)


def paragraph(text: str, limit: int) -> Phrase:
    """Like `words`, with the lines of `text` kept."""
    return (Words(tidy(text, limit) or "—"),)


def fill(template: str, **parts: "Phrase | Part | str") -> Phrase:
    """Put parts into a template of bot.texts; a plain string is taken as a line from outside."""
    phrase: list[Part] = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            phrase.append(Words(literal))
        if name is not None:
            phrase += _phrase(parts[name])
    return tuple(phrase)


def bold(phrase: Phrase) -> Phrase:
    """The phrase with all its text in bold."""
    return tuple(Words(part.text, bold=True) if isinstance(part, Words) else part for part in phrase)


def joined(phrases: Iterable[Phrase], separator: str = " ") -> Phrase:
    """The phrases after one another, with `separator` between them."""
    parts: list[Part] = []
    for phrase in phrases:
        parts += [Words(separator), *phrase] if parts else phrase
    return tuple(parts)


def elements(phrase: Phrase, limit: int) -> list[Element]:
    """The phrase as elements of rich text with at most `limit` characters of text."""
    return [
        Words(cut(part.text, room), part.bold).element() if isinstance(part, Words) else part.element()
        for part, room in _fitting(phrase, limit, lambda part: width(part.plain()))
    ]


def mrkdwn(phrase: Phrase, limit: int) -> str:
    """The phrase as mrkdwn of at most `limit` characters; a token that does not fit whole is left out."""
    return "".join(
        escape(cut(part.text, room, escaped_width)) if isinstance(part, Words) else part.mrkdwn()
        for part, room in _fitting(phrase, limit, lambda part: width(part.mrkdwn()))
    )


def plain(phrase: Phrase) -> str:
    """The phrase as plain text, moments in UTC."""
    return "".join(part.plain() for part in phrase)


def _fitting(phrase: Phrase, limit: int, size: Callable[[Part], int]) -> Iterator[tuple[Part, int]]:
    # the parts up to the first that does not fit, each with the room it has; words may still be cut
    room = limit
    for part in phrase:
        taken = size(part)
        if taken <= room or (room > 0 and isinstance(part, Words)):
            yield part, room
        room -= taken
        if room <= 0:
            return


def _phrase(part: Phrase | Part | str) -> Phrase:
    if isinstance(part, str):
        return words(part)
    return part if isinstance(part, tuple) else (part,)
