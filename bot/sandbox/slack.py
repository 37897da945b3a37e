"""The one Slack that the Web API, the people and the administrator act on."""

from collections.abc import Mapping
from types import MappingProxyType

from bot.sandbox.delivery import Deliverer, Delivery, Target
from bot.sandbox.errors import Json
from bot.sandbox.faults import Faults
from bot.sandbox.payloads import event_callback, message_json
from bot.sandbox.ratelimit import RateLimiter, RateLimits
from bot.sandbox.triggers import ResponseUrls, Triggers
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Channel, Message, Workspace

EVENT_SCOPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "app_mention": frozenset({"app_mentions:read"}),
        "message.im": frozenset({"im:history"}),
        "channel_archive": frozenset({"channels:read", "groups:read"}),
        "channel_deleted": frozenset({"channels:read", "groups:read"}),
        "channel_unarchive": frozenset({"channels:read", "groups:read"}),
        "member_left_channel": frozenset({"channels:read", "groups:read"}),
        "subteam_members_changed": frozenset({"usergroups:read"}),
        "subteam_updated": frozenset({"usergroups:read"}),
        "user_change": frozenset({"users:read"}),
    }
)


class Slack:
    """A workspace with everything that happens around it: limits, faults, triggers, deliveries.

    With `repeats_clicks` every click and every submission is delivered once more, the very same request.
    """

    def __init__(
        self, workspace: Workspace, unsettled: Unsettled, limits: RateLimits, deliverer: Deliverer
    ) -> None:
        self.workspace = workspace
        self.unsettled = unsettled
        self.deliverer = deliverer
        self.limiter = RateLimiter(limits, workspace.clock)
        self.faults = Faults()
        self.triggers = Triggers(workspace.clock, unsettled)
        self.response_urls = ResponseUrls(workspace.clock)
        self.repeats_clicks = False

    async def emit(
        self, event: Json, subscription: str, *, channel: Channel | None = None, to: Target = None
    ) -> Delivery | None:
        """Deliver an event if the app is subscribed to it and has the scope; None if it is not told."""
        app = self.workspace.app
        if not self.deliverer.has_app and not isinstance(to, str):
            return None
        needed = EVENT_SCOPES.get(subscription, frozenset())
        if subscription not in app.events or (needed and not needed & app.scopes):
            return None
        if not self.limiter.admit_event():
            await self._say_rate_limited(to)
            return None
        ext_shared = channel is not None and channel.is_ext_shared
        payload = event_callback(event, self.workspace, ext_shared=ext_shared)
        request = self.deliverer.sign_json("event_callback", payload)
        return await self.deliverer.deliver(request, to, again=True)

    def echo(self, message: Message, subtype: str | None = None) -> None:
        """Tell the app, in the background, of its own message in a DM, as Slack does."""
        channel = self.workspace.channels[message.channel_id]
        if channel.im_with is None or message.only_for is not None or not self.deliverer.has_app:
            return
        shown = message_json(message, self.workspace, self.unsettled)
        event: Json = {"channel": channel.id, "channel_type": "im", "event_ts": self.workspace.new_ts()}
        if subtype is None:
            event = {**shown, **event}
        elif subtype == "message_changed":
            event = {
                "type": "message",
                "subtype": subtype,
                "message": shown,
                "ts": event["event_ts"],
                **event,
            }
        else:
            event = {"type": "message", "subtype": subtype, "deleted_ts": message.ts, "hidden": True, **event}
            event |= {"ts": event["event_ts"], "previous_message": shown}
        self.deliverer.run(self.emit(event, "message.im", channel=channel))

    async def _say_rate_limited(self, to: Target) -> None:
        workspace = self.workspace
        payload: Json = {
            "type": "app_rate_limited",
            "token": workspace.app.verification_token,
            "team_id": workspace.team_id,
            "api_app_id": workspace.app.id,
            "minute_rate_limited": int(workspace.clock.now()) // 60 * 60,
        }
        request = self.deliverer.sign_json("app_rate_limited", payload)
        await self.deliverer.deliver(request, to, again=False)
