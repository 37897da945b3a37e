"""The state of one Slack workspace: people, channels, messages, views, groups, and the app in it."""

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.sandbox.changes import Changes
from bot.sandbox.clock import Clock
from bot.sandbox.errors import Json

BOT_SCOPES = (
    "app_mentions:read",
    "channels:read",
    "chat:write",
    "commands",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "users:read",
    "usergroups:read",
)
BOT_EVENTS = (
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "channel_archive",
    "channel_deleted",
    "channel_unarchive",
    "member_left_channel",
    "message.im",
    "subteam_members_changed",
    "subteam_updated",
    "tokens_revoked",
    "user_change",
)


@dataclass
class User:
    """A person or a bot, of this workspace or (a stranger) of another one."""

    id: str
    name: str
    real_name: str
    team_id: str
    display_name: str = ""
    email: str = ""
    title: str = ""
    locale: str = "en-US"
    tz: str = "Europe/Madrid"
    is_bot: bool = False
    is_admin: bool = False
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    active: bool = True
    visible_to_bot: bool = True


@dataclass
class Message:
    """A message in a channel or DM; `only_for` makes it ephemeral."""

    channel_id: str
    ts: str
    user: str
    text: str
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    bot_id: str | None = None
    app_id: str | None = None
    metadata: Json | None = None
    client_msg_id: str | None = None
    only_for: str | None = None
    edited: bool = False
    deleted: bool = False
    version: int = 1
    pings: frozenset[str] = frozenset()
    typed: dict[tuple[str, str], Json] = field(default_factory=dict)

    def snapshot(self) -> "Message":
        """A copy of what is shown now, for a client that has not heard of later changes."""
        return copy.deepcopy(self)


@dataclass
class Channel:
    """A channel, or the DM of the bot and `im_with`."""

    id: str
    name: str
    members: set[str] = field(default_factory=set)
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    deleted: bool = False
    im_with: str | None = None
    topic: str = ""
    posting_refused: str | None = None
    history: list[Message] = field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        """Messages that still exist, oldest first, replies included."""
        return [m for m in self.history if not m.deleted]

    @property
    def last(self) -> Message:
        """The newest message; IndexError when there is none."""
        return self.messages[-1]

    def find(self, ts: str) -> Message | None:
        """The message of that `ts` that still exists."""
        return next((m for m in self.messages if m.ts == ts), None)

    def thread(self, ts: str) -> list[Message]:
        """The message of that `ts` and its replies, oldest first."""
        return [m for m in self.messages if ts in {m.ts, m.thread_ts}]


@dataclass
class View:
    """An open modal or a published Home tab, with what its user has typed.

    A modal is open in the one `window` it was asked for in; "": in all of its user's.
    """

    id: str
    user: str
    body: Json
    hash: str
    root_id: str
    previous_id: str | None = None
    typed: dict[tuple[str, str], Json] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    banner: str | None = None
    closed: bool = False
    window: str = ""

    @property
    def type(self) -> str:
        return str(self.body["type"])

    @property
    def title(self) -> str:
        return str(self.body.get("title", {}).get("text", ""))

    @property
    def blocks(self) -> list[Json]:
        return list(self.body["blocks"])

    @property
    def private_metadata(self) -> str:
        return str(self.body.get("private_metadata", ""))

    @property
    def callback_id(self) -> str:
        return str(self.body.get("callback_id", ""))

    @property
    def external_id(self) -> str:
        return str(self.body.get("external_id", ""))


@dataclass
class UserGroup:
    """A user group (`S…`) and its members."""

    id: str
    handle: str
    name: str
    users: list[str] = field(default_factory=list)
    disabled: bool = False


@dataclass
class App:
    """The app under test as it is installed here: tokens, scopes, subscriptions and tabs."""

    id: str = "A0VISTO"
    name: str = "vistobueno"
    bot_user: str = "U0BOT"
    bot_id: str = "B0BOT"
    bot_token: str = "xoxb-sandbox"
    app_token: str = "xapp-sandbox"
    signing_secret: str = "sandbox-signing-secret"
    verification_token: str = "sandbox-verification-token"
    scopes: set[str] = field(default_factory=lambda: set(BOT_SCOPES))
    events: set[str] = field(default_factory=lambda: set(BOT_EVENTS))
    commands: set[str] = field(default_factory=lambda: {"/approvals"})
    should_escape: bool = False
    home_tab_enabled: bool = True
    messages_tab_enabled: bool = True
    messages_tab_read_only: bool = False
    token_revoked: bool = False


@dataclass
class Workspace:
    """One team with everything in it; every change is announced through `changes`."""

    team_id: str
    name: str
    domain: str
    app: App = field(default_factory=App)
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    groups: dict[str, UserGroup] = field(default_factory=dict)
    ephemerals: list[Message] = field(default_factory=list)
    modals: dict[str, list[View]] = field(default_factory=dict)
    homes: dict[str, View] = field(default_factory=dict)
    has_user_groups: bool = True
    edit_window: float | None = None
    clock: Clock = field(default_factory=Clock)
    changes: Changes = field(default_factory=Changes)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _last_ts: int = 0

    def add_user(self, user: User) -> User:
        """Put a user into the directory."""
        self.users[user.id] = user
        self.changes.announce()
        return user

    def add_channel(self, channel: Channel) -> Channel:
        """Open a channel."""
        self.channels[channel.id] = channel
        self.changes.announce()
        return channel

    def add_group(self, group: UserGroup) -> UserGroup:
        """Create a user group."""
        self.groups[group.id] = group
        self.changes.announce()
        return group

    def new_id(self, prefix: str) -> str:
        """A fresh id such as `V0000001`."""
        return f"{prefix}{next(self._numbers):07d}"

    def new_ts(self) -> str:
        """A message's timestamp, later than every one before."""
        self._last_ts = max(self._last_ts + 1, int(self.clock.now() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def new_hash(self) -> str:
        """A view's hash, different from every one before."""
        return f"{int(self.clock.now())}.{self.new_id('h')}"

    def dm_with(self, user_id: str) -> Channel:
        """The DM of the bot and this person, opened if need be."""
        for channel in self.channels.values():
            if channel.im_with == user_id:
                return channel
        dm = Channel(f"D0{user_id}", "directmessage", {user_id, self.app.bot_user}, im_with=user_id)
        return self.add_channel(dm)

    def find_view(self, view_id: str = "", external_id: str = "") -> View | None:
        """The open modal or published Home with that id, or that external id."""
        views = [v for stack in self.modals.values() for v in stack] + list(self.homes.values())
        for view in views:
            if (view_id and view.id == view_id) or (external_id and view.external_id == external_id):
                return view
        return None

    def find_message(self, ts: str) -> Message | None:
        """A message by its `ts`, in any channel or among the ephemerals."""
        everywhere = itertools.chain(self.ephemerals, *(c.messages for c in self.channels.values()))
        return next((m for m in everywhere if m.ts == ts and not m.deleted), None)

    @classmethod
    def shop(cls) -> "Workspace":
        """The workspace of the example shop, with its cast and its two channels."""
        shop = cls("T0SHOP", "Shop", "shop")
        bot = User("U0BOT", "vistobueno", "vistobueno", "T0SHOP", is_bot=True)
        people = [
            User("U0MARTA", "marta", "Marta", "T0SHOP", title="Support lead"),
            User("U0ANA", "ana", "Ana", "T0SHOP", is_admin=True),
            User("U0LEO", "leo", "Leo", "T0SHOP"),
            User("U0GUEST", "gwen", "Gwen", "T0SHOP", is_restricted=True),
        ]
        for user in [bot, *people]:
            user.email = "" if user.is_bot else f"{user.name}@shop.example"
            shop.add_user(user)
        everyone = set(shop.users)
        shop.add_channel(Channel("C0SUPPORT", "support", set(everyone)))
        shop.add_channel(Channel("C0APPROVALS", "approvals", set(everyone)))
        return shop
