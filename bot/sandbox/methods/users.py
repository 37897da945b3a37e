"""users.*: the directory (docs.slack.dev/reference/methods/users.info …)."""

from bot.sandbox.errors import Json, SlackError
from bot.sandbox.methods.call import Call, page
from bot.sandbox.payloads import user_json
from bot.sandbox.workspace import User


def info(call: Call) -> Json:
    """One user, with the email only under `users:read.email`."""
    return {"user": _shown(call, call.user(str(call.need("user"))))}


def list_(call: Call) -> Json:
    """All users the bot may see, deactivated ones included, paged."""
    visible = [user for user in call.workspace.users.values() if user.visible_to_bot]
    users, following = page(call, visible)
    return {"members": [_shown(call, user) for user in users], "response_metadata": following}


def look_up_by_email(call: Call) -> Json:
    """The active user with that email."""
    wanted = str(call.need("email")).lower()
    for user in call.workspace.users.values():
        if user.email and user.email.lower() == wanted and not user.deleted:
            return {"user": _shown(call, user)}
    raise SlackError("users_not_found")


def _shown(call: Call, user: User) -> Json:
    return user_json(user, with_email="users:read.email" in call.app.scopes)
