"""One file per Slack interaction; `register_all` lists them in the order in which Bolt asks them."""

from slack_bolt.async_app import AsyncApp

from bot.bot import Bot
from bot.listeners import command, decision, edit, home, mention, message, mistakes, other, reject


def register_all(app: AsyncApp, bot: Bot) -> None:
    """Register every listener; `other` takes what is left, so it comes last."""
    for interaction in (decision, edit, reject, mention, message, command, home, mistakes, other):
        interaction.register(app, bot)
