"""The Web API methods the sandbox speaks, by name; every other one is `unknown_method`."""

from collections.abc import Mapping
from types import MappingProxyType

from bot.sandbox.methods import auth, chat, conversations, usergroups, users, views
from bot.sandbox.methods.call import Call, Method

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "apps.connections.open": Method(auth.open_connection, token="app"),
        "auth.test": Method(auth.test),
        "chat.delete": Method(chat.delete, "chat:write"),
        "chat.getPermalink": Method(chat.get_permalink),
        "chat.postEphemeral": Method(chat.post_ephemeral, "chat:write"),
        "chat.postMessage": Method(chat.post_message, "chat:write"),
        "chat.update": Method(chat.update, "chat:write"),
        "conversations.info": Method(conversations.info),
        "conversations.join": Method(conversations.join, "channels:join"),
        "conversations.members": Method(conversations.members),
        "conversations.open": Method(conversations.open_),
        "usergroups.list": Method(usergroups.list_, "usergroups:read"),
        "usergroups.users.list": Method(usergroups.users_list, "usergroups:read"),
        "users.info": Method(users.info, "users:read"),
        "users.list": Method(users.list_, "users:read"),
        "users.lookupByEmail": Method(users.look_up_by_email, "users:read.email"),
        "views.open": Method(views.open_),
        "views.publish": Method(views.publish),
        "views.push": Method(views.push),
        "views.update": Method(views.update),
    }
)

__all__ = ["METHODS", "Call", "Method"]
