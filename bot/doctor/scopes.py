"""The bot scopes that vistobueno needs, each with what for; the same as in manifest.yml."""

from collections.abc import Mapping
from types import MappingProxyType

BOT_SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "a mention starts a run",
        "channels:read": "who is in a channel",
        "chat:write": "cards and answers",
        "commands": "/approvals",
        "groups:read": "who is in a private channel",
        "im:history": "a message to the bot starts a run",
        "im:write": "copies of a card in an approver's messages",
        "usergroups:read": "groups as roles",
        "users:read": "who an approver is",
    }
)
