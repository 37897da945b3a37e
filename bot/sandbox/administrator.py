"""What an administrator does to the workspace, and the events the app hears of it."""

from dataclasses import dataclass
from typing import Any

from bot.sandbox.delivery import Delivery
from bot.sandbox.payloads import group_json, user_json
from bot.sandbox.posting import remove
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import Channel


@dataclass(frozen=True)
class Administrator:
    """Changes channels, groups, people and the app's installation."""

    slack: Slack

    async def kick(self, channel_id: str, user_id: str | None = None) -> Delivery | None:
        """Remove a member (the bot if none is named) from a channel."""
        workspace = self.slack.workspace
        channel = workspace.channels[channel_id]
        user_id = user_id or workspace.app.bot_user
        channel.members.discard(user_id)
        kind = "G" if channel.is_private else "C"
        details = {"user": user_id, "channel_type": kind, "team": workspace.team_id}
        return await self._channel_event("member_left_channel", channel, **details)

    def invite(self, channel_id: str, user_id: str | None = None) -> None:
        """Add a member (the bot if none is named) to a channel."""
        channel = self.slack.workspace.channels[channel_id]
        channel.members.add(user_id or self.slack.workspace.app.bot_user)
        self.slack.workspace.changes.announce()

    async def archive(self, channel_id: str, by: str = "U0ANA") -> Delivery | None:
        """Archive a channel."""
        channel = self.slack.workspace.channels[channel_id]
        channel.is_archived = True
        return await self._channel_event("channel_archive", channel, user=by)

    async def unarchive(self, channel_id: str, by: str = "U0ANA") -> Delivery | None:
        """Bring an archived channel back; the bot has to be invited again."""
        channel = self.slack.workspace.channels[channel_id]
        channel.is_archived = False
        channel.members.discard(self.slack.workspace.app.bot_user)
        return await self._channel_event("channel_unarchive", channel, user=by)

    async def delete_channel(self, channel_id: str) -> Delivery | None:
        """Delete a channel with all it holds."""
        channel = self.slack.workspace.channels[channel_id]
        channel.deleted = True
        return await self._channel_event("channel_deleted", channel)

    def delete_message(self, channel_id: str, ts: str) -> None:
        """Delete anybody's message; the app hears nothing of it in a channel."""
        message = self.slack.workspace.channels[channel_id].find(ts)
        if message is None:
            raise LookupError(f"There is no message {ts} in {channel_id}.")
        remove(self.slack, message)

    async def set_group(self, group_id: str, users: list[str]) -> Delivery | None:
        """Give a user group these members."""
        workspace = self.slack.workspace
        group = workspace.groups[group_id]
        before, group.users = group.users, list(users)
        workspace.changes.announce()
        event = {
            "type": "subteam_members_changed",
            "subteam_id": group_id,
            "team_id": workspace.team_id,
            "date_previous_update": int(workspace.clock.now()),
            "date_update": int(workspace.clock.now()),
            "added_users": [u for u in users if u not in before],
            "added_users_count": len(set(users) - set(before)),
            "removed_users": [u for u in before if u not in users],
            "removed_users_count": len(set(before) - set(users)),
            "event_ts": workspace.new_ts(),
        }
        return await self.slack.emit(event, "subteam_members_changed")

    async def disable_group(self, group_id: str) -> Delivery | None:
        """Disable a user group."""
        workspace = self.slack.workspace
        group = workspace.groups[group_id]
        group.disabled = True
        workspace.changes.announce()
        subteam = group_json(group, workspace, with_users=True)
        event = {"type": "subteam_updated", "subteam": subteam, "event_ts": workspace.new_ts()}
        return await self.slack.emit(event, "subteam_updated")

    async def change_user(self, user_id: str, **fields: Any) -> Delivery | None:
        """Change fields of a user, such as `deleted=True` or `real_name="…"`."""
        workspace = self.slack.workspace
        user = workspace.users[user_id]
        for name, value in fields.items():
            if not hasattr(user, name):
                raise LookupError(f"A user has no {name}.")
            setattr(user, name, value)
        workspace.changes.announce()
        event = {
            "type": "user_change",
            "user": user_json(user, with_email="users:read.email" in workspace.app.scopes),
            "cache_ts": int(workspace.clock.now()),
            "event_ts": workspace.new_ts(),
        }
        return await self.slack.emit(event, "user_change")

    async def deactivate(self, user_id: str) -> Delivery | None:
        """Deactivate a person's account."""
        return await self.change_user(user_id, deleted=True)

    async def uninstall(self) -> Delivery | None:
        """Remove the app: its tokens die."""
        self.slack.workspace.app.token_revoked = True
        event = {"type": "app_uninstalled", "event_ts": self.slack.workspace.new_ts()}
        return await self.slack.emit(event, "app_uninstalled")

    async def revoke_token(self) -> Delivery | None:
        """Revoke the bot token."""
        app = self.slack.workspace.app
        app.token_revoked = True
        tokens = {"oauth": [], "bot": [app.bot_user]}
        event = {"type": "tokens_revoked", "tokens": tokens, "event_ts": self.slack.workspace.new_ts()}
        return await self.slack.emit(event, "tokens_revoked")

    async def verify_request_url(self, to: int | str | None = None) -> Delivery:
        """Send Slack's url_verification challenge to the request URL."""
        app = self.slack.workspace.app
        challenge = self.slack.workspace.new_id("challenge")
        payload = {"type": "url_verification", "token": app.verification_token, "challenge": challenge}
        return await self.slack.deliverer.send(
            self.slack.deliverer.sign_json("url_verification", payload), to
        )

    async def _channel_event(self, kind: str, channel: Channel, **fields: str) -> Delivery | None:
        self.slack.workspace.changes.announce()
        event = {"type": kind, "channel": channel.id, **fields, "event_ts": self.slack.workspace.new_ts()}
        return await self.slack.emit(event, kind, channel=channel)
