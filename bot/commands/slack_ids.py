"""Slack's ids as arguments of commands."""

import re

from bot.commands.output import CommandFailed

# https://docs.slack.dev/reference/objects/user-object and …/conversation-object
_USER_ID, _CHANNEL_ID = re.compile(r"[UW][A-Z0-9]{2,}"), re.compile(r"[CDG][A-Z0-9]{2,}")


def expect_user(option: str, value: str | None) -> None:
    """Raise CommandFailed for what is no user's id."""
    _expect(option, value, _USER_ID, "the member ID from the person's profile in Slack, like U0MARTA")


def expect_channel(option: str, value: str | None) -> None:
    """Raise CommandFailed for what is no channel's id."""
    _expect(option, value, _CHANNEL_ID, "the ID from the channel's details in Slack, like C0SUPPORT")


def _expect(option: str, value: str | None, form: re.Pattern[str], what: str) -> None:
    if value is not None and not form.fullmatch(value):
        raise CommandFailed(f"{option} is {value!r}: write {what}.")
