"""One call of a Web API method, and the questions the methods share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.sandbox.errors import Json, SlackError, missing_argument
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import App, Channel, User, Workspace


@dataclass(frozen=True)
class Call:
    """The decoded arguments of one call, and the Slack it is made to."""

    slack: Slack
    args: Json

    @property
    def workspace(self) -> Workspace:
        return self.slack.workspace

    @property
    def app(self) -> App:
        return self.slack.workspace.app

    def need(self, name: str) -> Any:
        """The argument, or `invalid_arguments`."""
        value = self.args.get(name)
        if value is None or value == "":
            raise missing_argument(name)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean argument, as JSON or as a form field."""
        value = self.args.get(name, default)
        return value if isinstance(value, bool) else str(value).lower() in {"true", "1"}

    def need_scope(self, *any_of: str) -> None:
        """Refuse with `missing_scope` unless the bot token has one of these scopes."""
        if not self.app.scopes & set(any_of):
            provided = ",".join(sorted(self.app.scopes))
            raise SlackError("missing_scope", needed=",".join(any_of), provided=provided)

    def user(self, user_id: str, error: str = "user_not_found") -> User:
        """The user of that id; another error code if it is unknown or hidden from the bot."""
        user = self.workspace.users.get(user_id)
        if user is None:
            raise SlackError(error)
        if not user.visible_to_bot:
            raise SlackError("user_not_visible")
        return user

    def channel(self, reference: str) -> Channel:
        """The channel of that id if the bot may know of it, else `channel_not_found`."""
        channel = self.workspace.channels.get(reference)
        if channel is None or channel.deleted:
            raise SlackError("channel_not_found")
        if (channel.is_private or channel.im_with) and self.app.bot_user not in channel.members:
            raise SlackError("channel_not_found")
        return channel


Run = Callable[[Call], Json]


@dataclass(frozen=True)
class Method:
    """A method: what it does, the scope it always needs, and the token it takes."""

    run: Run
    scope: str | None = None
    token: str = "bot"


def page(call: Call, items: list[Any], default: int = 200) -> tuple[list[Any], Json]:
    """One page of a cursor-paged list, and its `response_metadata`."""
    limit = int(call.args.get("limit") or default)
    cursor = str(call.args.get("cursor") or "0")
    if not cursor.isdigit():
        raise SlackError("invalid_cursor")
    start = int(cursor)
    following = str(start + limit) if start + limit < len(items) else ""
    return items[start : start + limit], {"next_cursor": following}
