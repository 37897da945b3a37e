"""Where a person is on the page: who, in which channel, DM or Home, in which thread; all in the address."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from urllib.parse import urlencode

from bot.sandbox.page.dates import zone_of
from bot.sandbox.page.errors import NotThereError
from bot.sandbox.workspace import Channel, User, Workspace

HOME, DM = "home", "dm"


@dataclass(frozen=True)
class Place:
    """A person and what they look at: a channel's id, "dm" or "home", and the `ts` of an open thread.

    `browser_zone` names the time zone that their browser says it is in; "" where it says nothing.
    """

    workspace: Workspace
    user: User
    inside: str
    thread: str | None = None
    browser_zone: str = ""

    @property
    def zone(self) -> tzinfo:
        """The time zone of what they read: their browser's, else that of their profile."""
        return zone_of(self.browser_zone, self.user.tz)

    @property
    def channel(self) -> Channel | None:
        """The channel or DM; None for Home."""
        if self.inside == HOME:
            return None
        return (
            self.workspace.dm_with(self.user.id)
            if self.inside == DM
            else self.workspace.channels[self.inside]
        )

    def query(self, **more: str) -> str:
        """The part of an address after the question mark."""
        fields = {"as": self.user.id, "in": self.inside, **({"thread": self.thread} if self.thread else {})}
        return urlencode(fields | more)

    def address(self, path: str = "/", **more: str) -> str:
        """The address of this place, or of something done from here."""
        return f"{path}?{self.query(**more)}"

    def at(self, inside: str, thread: str | None = None) -> "Place":
        """The same person elsewhere."""
        return replace(self, inside=inside, thread=thread)

    def seen_by(self, user: User) -> "Place":
        """This place for another person, or the first one they may see; threads of DMs stay behind."""
        if self.inside in {HOME, DM}:
            return Place(self.workspace, user, self.inside)
        if any(channel.id == self.inside for channel in channels_of(self.workspace, user)):
            return replace(self, user=user)
        return Place(self.workspace, user, _first(self.workspace, user))

    @property
    def is_first(self) -> bool:
        """Whether this is where the person comes first."""
        return self.inside == _first(self.workspace, self.user)


def people_of(workspace: Workspace) -> list[User]:
    """Everybody who can sit at a client."""
    return [user for user in workspace.users.values() if not (user.is_bot or user.deleted)]


def channels_of(workspace: Workspace, user: User) -> list[Channel]:
    """The channels this person is in."""
    return [
        channel
        for channel in workspace.channels.values()
        if channel.im_with is None and user.id in channel.members and not channel.deleted
    ]


def read_place(workspace: Workspace, fields: Mapping[str, str]) -> Place:
    """The place an address names; NotThereError for an id that names nothing this person can see."""
    user = _user(workspace, fields.get("as"))
    inside = fields.get("in") or _first(workspace, user)
    known = {HOME, DM, *(channel.id for channel in channels_of(workspace, user))}
    if inside not in known:
        raise NotThereError(f"{user.real_name} sees no channel {inside!r} here.")
    place = Place(workspace, user, inside)
    thread = fields.get("thread")
    if not thread:
        return place
    if place.channel is None or place.channel.find(thread) is None:
        raise NotThereError(f"There is no message {thread!r} here.")
    return replace(place, thread=thread)


def _user(workspace: Workspace, user_id: str | None) -> User:
    people = people_of(workspace)
    if not user_id:
        if not people:
            raise NotThereError("Nobody is in this workspace.")
        # a colleague without an office is who asks the bot for something
        return next((user for user in people if what_they_are(user) == COLLEAGUE), people[0])
    found = next((user for user in people if user.id == user_id), None)
    if found is None:
        raise NotThereError(f"Nobody in this workspace has the id {user_id!r}.")
    return found


COLLEAGUE = "Colleague"


def what_they_are(user: User) -> str:
    """What a person is in the workspace, in a word or two."""
    if user.is_stranger:
        return "From another workspace"
    if user.is_restricted or user.is_ultra_restricted:
        return "Guest"
    return user.title or ("Admin" if user.is_admin else COLLEAGUE)


def _first(workspace: Workspace, user: User) -> str:
    channels = channels_of(workspace, user)
    return channels[0].id if channels else DM
