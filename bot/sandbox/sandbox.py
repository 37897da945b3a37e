"""The sandbox as tests and the demo use it: a strict local Slack, started and stopped in one call."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from bot.sandbox.administrator import Administrator
from bot.sandbox.clock import Clock
from bot.sandbox.delivery import Deliverer, Delivery, SignedRequest, Target
from bot.sandbox.faults import Faults
from bot.sandbox.people import Person, spread
from bot.sandbox.ratelimit import RateLimits
from bot.sandbox.server import ApiCall, HttpServer, WebApi
from bot.sandbox.slack import Slack
from bot.sandbox.sockets import Sockets
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Channel, Message, User, Workspace
from bot.sandbox.world import World

T = TypeVar("T")


class Sandbox:
    """A running local Slack; made by `start` or `running`, never by hand."""

    def __init__(self, slack: Slack, suggestion: str = "") -> None:
        self.slack = slack
        self.admin = Administrator(slack)
        self.web_api = WebApi(slack, suggestion)
        self._server = HttpServer(self.web_api.app())
        self.base_url = ""

    @classmethod
    async def start(
        cls,
        workspace: Workspace | None = None,
        *,
        port: int = 0,
        app_urls: Iterable[str] = (),
        rate_limits: RateLimits | None = None,
        unsettled: Unsettled | None = None,
        suggestion: str = "",
        ack_timeout: float = 3.0,
        retry_delays: Sequence[float] = (0.0, 60.0, 300.0),
        socket_mode: bool = False,
    ) -> "Sandbox":
        """Serve a workspace (the shop if none is given) on 127.0.0.1; port 0 takes any free one.

        Limits are the documented ones unless `rate_limits` says otherwise. `ack_timeout` and
        `retry_delays` are seconds; the latter are Slack's waits before an event is sent again.
        `suggestion` is what the page offers to say to the bot in the first channel while nobody has written
        there. With `socket_mode` the app is sent everything over the connections that it opens.
        """
        workspace = workspace or Workspace.shop()
        deliverer = Deliverer(workspace.app.signing_secret, workspace.changes, ack_timeout, retry_delays)
        limits = rate_limits or RateLimits.documented()
        if socket_mode:
            deliverer.sockets = Sockets(workspace.app.id, workspace.changes)
            await deliverer.sockets.start()
        sandbox = cls(Slack(workspace, unsettled or Unsettled(), limits, deliverer), suggestion)
        sandbox.base_url = f"http://127.0.0.1:{await sandbox._server.start(port)}"
        sandbox.slack.response_urls.base_url = sandbox.base_url
        sandbox.connect(*app_urls)
        return sandbox

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        workspace: Workspace | None = None,
        *,
        port: int = 0,
        app_urls: Iterable[str] = (),
        rate_limits: RateLimits | None = None,
        unsettled: Unsettled | None = None,
        suggestion: str = "",
        ack_timeout: float = 3.0,
        retry_delays: Sequence[float] = (0.0, 60.0, 300.0),
        socket_mode: bool = False,
    ) -> AsyncIterator["Sandbox"]:
        """`start` for the time of an `async with`."""
        sandbox = await cls.start(
            workspace,
            port=port,
            app_urls=app_urls,
            rate_limits=rate_limits,
            unsettled=unsettled,
            suggestion=suggestion,
            ack_timeout=ack_timeout,
            retry_delays=retry_delays,
            socket_mode=socket_mode,
        )
        try:
            yield sandbox
        finally:
            await sandbox.stop()

    async def stop(self) -> None:
        """End retries and hung calls, and close the server."""
        await self.slack.deliverer.stop()
        if self.slack.deliverer.sockets is not None:
            await self.slack.deliverer.sockets.stop()
        self.web_api.closing.set()
        self.workspace.changes.announce()  # so that pages that follow the changes end
        await self._server.stop()

    @property
    def api_url(self) -> str:
        """The base URL for a Web API client, with the slash at the end."""
        return f"{self.base_url}/api/"

    @property
    def workspace(self) -> Workspace:
        return self.slack.workspace

    @property
    def clock(self) -> Clock:
        return self.slack.workspace.clock

    @property
    def faults(self) -> Faults:
        return self.slack.faults

    @property
    def deliveries(self) -> list[Delivery]:
        """Every attempt to deliver something to the app, in the order in which they ended."""
        return self.slack.deliverer.log

    @property
    def calls(self) -> list[ApiCall]:
        """Every call the app made, in order."""
        return self.web_api.calls

    @property
    def sockets(self) -> Sockets:
        """The app's connections; LookupError unless it is in Socket Mode."""
        sockets = self.slack.deliverer.sockets
        if sockets is None:
            raise LookupError("This workspace sends over HTTP: start it with socket_mode=True.")
        return sockets

    def connect(self, *urls: str) -> None:
        """Deliver to these URLs of the app from now on, in turn; `/slack/events` is added if missing."""
        self.slack.deliverer.connect(urls)

    def surround(self, world: World) -> None:
        """Show this world beside the Slack on every page opened from now on."""
        self.web_api.site.world = world

    def person(self, user_id: str) -> Person:
        """A person of the workspace; KeyError if there is none of that id."""
        return Person(self.slack, self.workspace.users[user_id])

    def add_person(
        self,
        user_id: str,
        name: str,
        channels: Iterable[str] = ("C0SUPPORT", "C0APPROVALS"),
        *,
        team_id: str = "",
    ) -> Person:
        """Let a new person join; another `team_id` makes them a stranger from another workspace."""
        own = self.workspace.team_id
        user = User(user_id, name.lower(), name, team_id or own, is_stranger=bool(team_id) and team_id != own)
        self.workspace.add_user(user)
        for channel_id in channels:
            channel = self.channel(channel_id)
            channel.members.add(user_id)
            channel.is_ext_shared = channel.is_ext_shared or user.is_stranger
        return self.person(user_id)

    def channel(self, channel_id: str) -> Channel:
        """A channel; KeyError if there is none of that id."""
        return self.workspace.channels[channel_id]

    def dm(self, user_id: str) -> Channel:
        """The DM of the bot and this person."""
        return self.workspace.dm_with(user_id)

    def ephemerals_for(self, user_id: str) -> list[Message]:
        """The private notes on this person's screen, oldest first."""
        return self.person(user_id).ephemerals

    async def send_identical(
        self, request: SignedRequest, times: int, to: Target | Sequence[int | str] = None
    ) -> list[Delivery]:
        """Send the very same signed request `times` times at once; several targets take turns."""
        sends = [self.slack.deliverer.send(request, target) for target in spread(to, times)]
        return list(await asyncio.gather(*sends))

    def until(self, predicate: Callable[[], T], timeout: float = 10.0) -> Coroutine[Any, Any, T]:
        """Wait until `predicate()` is true after some change of the workspace, and return its value.

        Raises TimeoutError after `timeout` seconds.
        """
        return self.workspace.changes.until(predicate, timeout)
