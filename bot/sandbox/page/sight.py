"""What the reader's client makes of ids, links and moments in a text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from urllib.parse import parse_qs, urlsplit

from bot.sandbox.page.dates import date_token
from bot.sandbox.page.html import Html, tag
from bot.sandbox.page.place import DM, Place
from bot.sandbox.render import Reader, decode
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Channel, User, Workspace

ARCHIVE = re.compile(r"/archives/(\w+)/p(\d+)(\d{6})")
SLACKBOT = "USLACKBOT"


@dataclass(frozen=True)
class Sight:
    """The eyes of the person at a place."""

    place: Place
    unsettled: Unsettled

    @property
    def workspace(self) -> Workspace:
        return self.place.workspace

    @property
    def user(self) -> User:
        return self.place.user

    @property
    def zone(self) -> tzinfo:
        return self.place.zone

    @property
    def reader(self) -> Reader:
        return Reader(self.workspace, self.unsettled)

    def moment(self, seconds: float) -> datetime:
        """A moment in the reader's own time zone."""
        return datetime.fromtimestamp(seconds, self.zone)

    def now(self) -> datetime:
        """The present moment of the workspace, in the reader's time zone."""
        return self.moment(self.workspace.clock.now())

    def name(self, user_id: str) -> str:
        """What a person or bot is called."""
        if user_id == SLACKBOT:
            return "Slackbot"
        user = self.workspace.users.get(user_id)
        return (user.display_name or user.real_name) if user else user_id

    def control(self, inner: str) -> Html | str:
        """What stands between < and > in mrkdwn, as it is shown."""
        target, _, label = inner.partition("|")
        label = decode(label)
        if target.startswith("@"):
            return self.mention(target[1:], label)
        if target.startswith("#"):
            return self.channel(target[1:], label)
        if target.startswith("!subteam^"):
            return self.group(target[9:].partition("^")[0], label)
        if target.startswith("!date^"):
            _, epoch, shape, *_ = [*target.split("^"), "", ""]
            return date_token(epoch, shape, label, self.zone, self.workspace.clock.now())
        if target.startswith("!"):
            return tag("span", f"@{label or target[1:]}", class_="mention")
        return self.link(decode(target), label)

    def mention(self, user_id: str, label: str = "") -> Html:
        """A person's name, marked where it is the reader's own."""
        own = " own" if user_id == self.user.id else ""
        known = user_id in self.workspace.users
        return tag("span", f"@{self.name(user_id) if known else label or user_id}", class_=f"mention{own}")

    def channel(self, channel_id: str, label: str = "") -> Html:
        """A channel's name, as a link if the reader is in it."""
        channel = self.workspace.channels.get(channel_id)
        if channel is None or not self._enters(channel):
            return tag("span", f"#{label or 'private-channel'}", class_="mention")
        return tag("a", f"#{channel.name}", class_="mention", href=self.place.at(channel_id).address())

    def group(self, group_id: str, label: str = "") -> Html:
        """A user group's handle."""
        group = self.workspace.groups.get(group_id)
        return tag("span", f"@{group.handle if group else label or group_id}", class_="mention")

    def link(self, url: str, label: str = "", inside: Iterable[Html] = ()) -> Html | str:
        """A link; one to a message of this workspace leads to it here."""
        shown = [*inside] or label or url
        if local := self._message_at(url):
            return tag("a", shown, href=local)
        if urlsplit(url).scheme not in {"http", "https", "mailto"}:
            return tag("span", shown)
        return tag("a", shown, href=url, target="_blank", rel="noopener noreferrer")

    def _message_at(self, url: str) -> str | None:
        parts = urlsplit(url)
        found = ARCHIVE.fullmatch(parts.path)
        if parts.hostname != f"{self.workspace.domain}.slack.com" or found is None:
            return None
        channel = self.workspace.channels.get(found[1])
        if channel is None or not self._enters(channel):
            return None
        ts = f"{found[2]}.{found[3]}"
        thread = parse_qs(parts.query).get("thread_ts", [None])[0]
        there = self.place.at(DM if channel.im_with else channel.id, thread)
        return f"{there.address()}#{'t' if thread else 'm'}-{ts.replace('.', '-')}"

    def _enters(self, channel: Channel) -> bool:
        return self.user.id in channel.members and not channel.deleted
