"""What may surround a sandbox Slack and is no part of it: what its page shows of it and lets happen."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Tone = Literal["", "waits", "good", "bad"]


class DeedRefusedError(Exception):
    """The world does not do what was asked; the text is one sentence for the person."""


@dataclass(frozen=True)
class Control:
    """A button: the name of its deed, what it shows and why, and what became of it.

    `on` makes it a switch; one that is `spent` cannot be used (now), and `said` says why.
    """

    deed: str
    label: str
    why: str
    said: str = ""
    on: bool | None = None
    spent: bool = False


@dataclass(frozen=True)
class Moment:
    """A time in seconds since 1970, shown in the reader's own zone after the word before it."""

    word: str
    seconds: float


@dataclass(frozen=True)
class Figure:
    """A number and what it counts; `note` is a few words more."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Item:
    """One thing of a list: what it is, where it stands, and its details in short."""

    title: str
    status: str
    tone: Tone = ""
    details: tuple[str | Moment, ...] = ()


@dataclass(frozen=True)
class Listing:
    """A list under its name, the newest first; `empty` stands there without items, `more` below them."""

    name: str
    items: tuple[Item, ...]
    empty: str
    more: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the world under its own heading; `about` is one sentence on it."""

    heading: str
    about: str = ""
    controls: tuple[Control, ...] = ()
    figures: tuple[Figure, ...] = ()
    listings: tuple[Listing, ...] = ()


@dataclass(frozen=True)
class Step:
    """What a person does next, as that user in that channel: in words `there`, and in words for elsewhere.

    `name` is what stands before these words; those of `nearby` are for that person at another place. What is
    `ready` stands in the field there, addressed to the app, until that person has said it after `since`, in
    seconds of the epoch.
    """

    user: str
    channel: str
    elsewhere: str
    there: str
    name: str = "Next"
    nearby: str = ""
    ready: str = ""
    since: float = 0.0


@dataclass(frozen=True)
class Welcome:
    """What stands where nobody has written: what all this is `about`, and an `invitation` to write.

    The invitation stands in the empty field of the first channel; "" where none is needed.
    """

    about: str
    invitation: str = ""


class World(Protocol):
    """What the page shows beside the Slack; it announces a change of the workspace when it changes."""

    def sections(self) -> Sequence[Section]:
        """What there is, as far as is known."""

    def welcome(self) -> Welcome:
        """What meets whoever comes first."""

    def next_step(self) -> Step | None:
        """What one does next to see what this is about, if there is such a thing."""

    async def look(self) -> None:
        """Learn what there is now."""

    def watched(self) -> AbstractContextManager[None]:
        """While open, somebody looks: what there is is to be learned again and again."""

    async def do(self, deed: str) -> None:
        """Do what one of the controls names; raises DeedRefusedError."""
