"""auth.test and apps.connections.open: who the token is, and Socket Mode's door."""

from bot.sandbox.errors import Json, SlackError
from bot.sandbox.methods.call import Call


def test(call: Call) -> Json:
    """The team and the bot behind the token."""
    workspace, app = call.workspace, call.app
    return {
        "url": f"https://{workspace.domain}.slack.com/",
        "team": workspace.name,
        "user": workspace.users[app.bot_user].name,
        "team_id": workspace.team_id,
        "user_id": app.bot_user,
        "bot_id": app.bot_id,
        "is_enterprise_install": False,
    }


def open_connection(call: Call) -> Json:
    """A URL for one connection, refused unless the app is in Socket Mode."""
    sockets = call.slack.deliverer.sockets
    if sockets is None:
        raise SlackError("forbidden_team")
    return {"url": sockets.new_url()}
