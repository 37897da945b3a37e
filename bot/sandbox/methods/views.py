"""views.*: modals and Home tabs (docs.slack.dev/reference/methods/views.open …)."""

from bot.sandbox.errors import Json, SlackError, missing_argument
from bot.sandbox.methods.call import Call
from bot.sandbox.modals import open_modal, publish_home, push_modal, update_view
from bot.sandbox.payloads import view_json


def open_(call: Call) -> Json:
    """Open a modal with a trigger_id that is fresh and unused."""
    trigger = call.slack.triggers.look_up(call.need("trigger_id"))
    view = open_modal(call.slack, trigger.user, call.need("view"), trigger.window)
    trigger.used = True
    return {"view": view_json(view, call.workspace)}


def push(call: Call) -> Json:
    """Push a modal on the stack the trigger_id came from."""
    trigger = call.slack.triggers.look_up(call.need("trigger_id"))
    view = push_modal(call.slack, trigger.user, trigger.view_id, call.need("view"))
    trigger.used = True
    return {"view": view_json(view, call.workspace)}


def update(call: Call) -> Json:
    """Update an open view by its id or external id."""
    view_id, external_id = call.args.get("view_id"), call.args.get("external_id")
    if not view_id and not external_id:
        raise missing_argument("view_id")
    view = call.workspace.find_view(str(view_id or ""), str(external_id or ""))
    if view is None:
        raise SlackError("not_found")
    update_view(call.slack, view, call.need("view"), call.args.get("hash"))
    return {"view": view_json(view, call.workspace)}


def publish(call: Call) -> Json:
    """Publish a person's Home tab."""
    if not call.app.home_tab_enabled:
        raise SlackError("not_enabled")
    user = call.user(str(call.need("user_id")))
    view = publish_home(call.slack, user.id, call.need("view"), call.args.get("hash"))
    return {"view": view_json(view, call.workspace)}
