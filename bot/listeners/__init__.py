"""One file per Slack interaction; `register_all` lists them in the order in which Bolt asks them."""

from slack_bolt.async_app import AsyncApp

from bot.bot import Bot
from bot.listeners import (
    command,
    decision,
    directory,
    edit,
    home,
    mention,
    message,
    mistakes,
    other,
    reject,
    settling,
)


def register_all(app: AsyncApp, bot: Bot) -> None:
    """Register every listener; `other` takes what is left, so it comes last."""
    people = (decision, edit, reject, settling, mention, message, command, home)
    for interaction in (*people, directory, mistakes, other):
        interaction.register(app, bot)
