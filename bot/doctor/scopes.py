"""The bot scopes that vistobueno needs, each with what for; the same as in manifest.yml."""

from collections.abc import Mapping
from types import MappingProxyType

BOT_SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "a mention starts a run",
        "channels:read": "whether the bot is in a channel, and whether it was archived",
        "chat:write": "cards and answers",
        "commands": "/approvals",
        "groups:read": "whether the bot is in a private channel, and whether it was archived",
        "im:history": "a message to the bot starts a run; no other history is read",
        "im:write": "copies of a card in an approver's messages",
        "usergroups:read": "nothing yet: Slack tells of changes of user groups, and nothing is done with it",
        "users:read": "who somebody is: a colleague, a guest, somebody who left",
    }
)
