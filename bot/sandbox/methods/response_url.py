"""What an app may do with a response_url (docs.slack.dev/interactivity/handling-user-interaction)."""

from bot.sandbox.checks.messages import check_content
from bot.sandbox.errors import Json, SlackError
from bot.sandbox.posting import post, remove, replace, require_something
from bot.sandbox.slack import Slack
from bot.sandbox.triggers import ResponseUrl
from bot.sandbox.workspace import Message


def respond(slack: Slack, key: str, answer: Json) -> None:
    """Post, replace or delete, as the app says; raises SlackError when the URL or content is refused.

    Without a `response_type` the answer is for the one person alone.
    """
    right = slack.response_urls.look_up(key)
    if answer.get("delete_original"):
        remove(slack, _source(right))
    else:
        _write(slack, right, answer)
    right.uses += 1


def show(slack: Slack, user: str, channel_id: str, answer: Json) -> None:
    """The message an app put into its answer to a slash command."""
    content = check_content(answer, slack.unsettled)
    require_something(content)
    channel = slack.workspace.channels[channel_id]
    in_channel = answer.get("response_type") == "in_channel"
    post(slack, channel, content, thread_ts=answer.get("thread_ts"), only_for=None if in_channel else user)


def _write(slack: Slack, right: ResponseUrl, answer: Json) -> None:
    if not answer.get("replace_original"):
        show(slack, right.user, right.channel_id, answer)
        return
    content = check_content(answer, slack.unsettled)
    require_something(content)
    replace(slack, _source(right), content)


def _source(right: ResponseUrl) -> Message:
    if right.source is None or right.source.deleted:
        raise SlackError("message_not_found")
    return right.source
