"""usergroups.*: groups and their members (docs.slack.dev/reference/methods/usergroups.list …)."""

from bot.sandbox.errors import Json, SlackError
from bot.sandbox.methods.call import Call
from bot.sandbox.payloads import group_json


def list_(call: Call) -> Json:
    """The groups of the workspace."""
    with_disabled = _with_disabled(call)
    groups = [g for g in call.workspace.groups.values() if with_disabled or not g.disabled]
    with_users = call.flag("include_users")
    return {"usergroups": [group_json(g, call.workspace, with_users=with_users) for g in groups]}


def users_list(call: Call) -> Json:
    """The user ids of one group."""
    with_disabled = _with_disabled(call)
    group = call.workspace.groups.get(str(call.need("usergroup")))
    if group is None or (group.disabled and not with_disabled):
        raise SlackError("no_such_subteam")
    return {"users": list(group.users)}


def _with_disabled(call: Call) -> bool:
    if not call.workspace.has_user_groups:
        raise SlackError("plan_upgrade_required")
    return call.flag("include_disabled", call.slack.unsettled.include_disabled_groups)
