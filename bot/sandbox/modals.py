"""Views: opening, pushing, updating, publishing and closing them, and answers to submissions."""

import json
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.views import check_view
from bot.sandbox.delivery import Delivery
from bot.sandbox.elements import kept_typed, with_ids
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import View

TROUBLE = "We had some trouble connecting. Try again?"


def open_modal(slack: Slack, user: str, body: Any, window: str = "") -> View:
    """Show a modal in a window, as the first of a new stack; raises SlackError if the view is refused."""
    stack = slack.workspace.modals.get(user, [])
    view = _new_view(slack, user, body, "modal", None)
    view.window = window
    for old in stack:
        old.closed = True
    slack.workspace.modals[user] = [view]
    slack.workspace.changes.announce()
    return view


def push_modal(slack: Slack, user: str, below: str | None, body: Any) -> View:
    """Show a modal on top of the stack that has the view `below` in it."""
    stack = slack.workspace.modals.get(user, [])
    if below is None or below not in {view.id for view in stack}:
        raise SlackError("not_found")
    if len(stack) >= limits.VIEW_STACK:
        raise SlackError("push_limit_reached")
    view = _new_view(slack, user, body, "modal", stack[-1])
    view.window = stack[-1].window
    stack.append(view)
    slack.workspace.changes.announce()
    return view


def update_view(slack: Slack, view: View, body: Any, given_hash: str | None = None) -> View:
    """Give a view new content; what was typed stays where block_id and action_id stay."""
    checked = check_view(body, view.type, slack.unsettled)
    if given_hash is not None and given_hash != view.hash:
        raise SlackError("hash_conflict")
    _check_external_id(slack, checked, view)
    blocks = with_ids(checked["blocks"], slack.workspace)
    view.typed = kept_typed(view.blocks, view.typed, blocks)
    view.body = {**checked, "blocks": blocks}
    view.hash = slack.workspace.new_hash()
    view.errors, view.banner = {}, None
    slack.workspace.changes.announce()
    return view


def publish_home(slack: Slack, user: str, body: Any, given_hash: str | None = None) -> View:
    """Publish a person's Home tab."""
    shown = slack.workspace.homes.get(user)
    if shown is not None:
        return update_view(slack, shown, body, given_hash)
    view = _new_view(slack, user, body, "home", None)
    if given_hash is not None:
        raise SlackError("hash_conflict")
    slack.workspace.homes[user] = view
    slack.workspace.changes.announce()
    return view


def close_views(slack: Slack, views: list[View]) -> None:
    """Take these views off the screen."""
    for view in views:
        view.closed = True
        stack = slack.workspace.modals[view.user]
        stack[:] = [open_view for open_view in stack if not open_view.closed]
    slack.workspace.changes.announce()


def settle_submission(slack: Slack, view: View, delivery: Delivery) -> None:
    """Do what the app answered to a view_submission; anything Slack cannot use shows the banner."""
    try:
        if not delivery.acked or delivery.status != 200:
            raise SlackError("not_acknowledged")
        answer = json.loads(delivery.body) if delivery.body.strip() else {}
        if not isinstance(answer, dict):
            raise SlackError("invalid_response")
        _follow(slack, view, answer)
    except (SlackError, ValueError):
        view.banner = TROUBLE
    slack.workspace.changes.announce()


def _follow(slack: Slack, view: View, answer: Json) -> None:
    action = answer.get("response_action")
    stack = slack.workspace.modals.get(view.user, [])
    if action is None and not answer:
        close_views(slack, [view])
    elif action == "clear":
        close_views(slack, list(stack))
    elif action == "update":
        update_view(slack, view, answer.get("view"))
    elif action == "push":
        push_modal(slack, view.user, view.id, answer.get("view"))
    elif action == "errors":
        view.errors = _field_errors(view, answer.get("errors"))
    else:
        raise SlackError("invalid_response")


def _field_errors(view: View, errors: Any) -> dict[str, str]:
    inputs = {block["block_id"] for block in view.blocks if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors or not errors.keys() <= inputs:
        raise SlackError("invalid_response")
    return {block_id: str(text) for block_id, text in errors.items()}


def _new_view(slack: Slack, user: str, body: Any, kind: str, below: View | None) -> View:
    checked = check_view(body, kind, slack.unsettled)
    _check_external_id(slack, checked, None)
    workspace = slack.workspace
    view_id = workspace.new_id("V")
    stored = {**checked, "blocks": with_ids(checked["blocks"], workspace)}
    root = below.root_id if below else view_id
    return View(view_id, user, stored, workspace.new_hash(), root, below.id if below else None)


def _check_external_id(slack: Slack, body: Json, own: View | None) -> None:
    external_id = body.get("external_id")
    if not external_id:
        return
    holder = slack.workspace.find_view(external_id=external_id)
    if holder is not None and holder is not own:
        raise SlackError("duplicate_external_id")
