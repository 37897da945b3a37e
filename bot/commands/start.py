"""`vistobueno start`: a run without a message in Slack, for a person and a channel that Slack knows."""

from typing import Annotated
from uuid import uuid4

import typer
from slack_sdk.errors import SlackApiError

from agent.policy import Policy
from agent.start import TaskEmpty, TaskTooLong, start_run
from bot.commands.output import CommandFailed, complete, read_settings
from bot.commands.slack_ids import expect_channel, expect_user
from bot.conversing import MAY_ASK
from bot.databases import existing
from bot.house import build_house
from bot.identity import WHAT_NOBODY_IS, ask_for, why_nobody
from bot.settings import Settings
from bot.slack import (
    UNREACHABLE,
    NotSlack,
    Slack,
    Team,
    channel_of,
    connect,
    error_code,
)
from bot.slack_errors import SlackUnreachable
from store.records import Actor

LONGEST_KEY = 200  # characters


def start(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="What the agent is to do, in words; up to 40,000 characters."),
    ],
    user: Annotated[
        str | None, typer.Option(help="Slack id of the person it is for, like U0LEO; default: the operator.")
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            help="Slack id of the channel for its thread, like C0SUPPORT; default: where most cards go."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Your own name for this start, like nightly-2026-11-30: the same key again starts nothing "
            "and prints the first run's id."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Name of the agent, as in the policy file; there is one so far.")
    ] = None,
) -> None:
    """Start a run without a message in Slack, and print its id; the bot's first message begins its thread.

    Needs SLACK_BOT_TOKEN. A worker, or `vistobueno dev`, does the work.

    Example: `vistobueno start "refund the failed payments" --user U0LEO --channel C0SUPPORT`
    """
    expect_user("--user", user)
    expect_channel("--channel", channel)
    if key is not None:
        _expect_key(key)
    settings = read_settings(quiet=True)
    settings.require_slack("vistobueno start")
    typer.echo(complete(_start(settings, task, user, channel, key or uuid4().hex, agent)))


def _expect_key(key: str) -> None:
    if not key.strip() or not key.isprintable():
        raise CommandFailed(f"--key is {key!r}: write a name in one line, like nightly-2026-11-30.")
    if len(key) > LONGEST_KEY:
        raise CommandFailed(f"--key is too long: write at most {LONGEST_KEY} characters.")


async def _start(
    settings: Settings, task: str, user: str | None, channel: str | None, key: str, agent: str | None
) -> str:
    async with existing(settings) as db, connect(settings.require_slack("vistobueno start")) as slack:
        team = await slack.team()
        async with build_house(settings, db.url, team_id=team.team_id) as house:
            name = house.policy.agent.name
            if agent not in (None, name):
                raise CommandFailed(f"There is no agent {agent!r}: the policy file has {name!r}.")
            requester = await _requester(slack, team, user)
            if channel is not None:
                await _expect_open(slack, channel)
            try:
                started = await start_run(
                    house,
                    team_id=team.team_id,
                    channel_id=channel or _first_channel(house.policy),
                    thread_ts=None,
                    requester=requester,
                    text=task,
                    source_key=f"key:{key}",
                )
            except TaskTooLong as error:
                raise CommandFailed(
                    f"The task is too long: write at most {error.limit:,} characters."
                ) from error
            except TaskEmpty as error:
                raise CommandFailed("The task is empty: write what the agent is to do.") from error
    return started.run.id


def _first_channel(policy: Policy) -> str:
    """The channel where the cards of most tools go; the rule of a tool always names one."""
    channels = [rule.channel for rule in policy.rules.values()]
    if not channels:
        raise CommandFailed("There is no tool, so no rule names a channel: give one with --channel.")
    return max(channels, key=channels.count)


async def _requester(slack: Slack, team: Team, user_id: str | None) -> Actor:
    """Who the run is for; whoever could not ask the bot for it in Slack is refused."""
    if user_id is None:
        return Actor("operator", team_id=None, name="operator")
    try:
        user = await ask_for(slack.patient, user_id, team.team_id)
    except (SlackApiError, *UNREACHABLE) as error:
        raise _unsaid(f"who {user_id} is", error) from error
    why = "unknown" if user is None else why_nobody(user)
    if user is None or why not in (None, *MAY_ASK):
        what = WHAT_NOBODY_IS[why or "unknown"]
        raise CommandFailed(f"--user {user_id} {what}: name a person who may ask the bot.")
    return Actor("person", team.team_id, user_id, user.name)


async def _expect_open(slack: Slack, channel_id: str) -> None:
    """Raise CommandFailed if the bot cannot write in the channel."""
    try:
        channel = await channel_of(slack.patient, channel_id)
    except SlackApiError as error:
        if error_code(error) == "missing_scope":  # somebody's messages with the bot; it may write there
            return
        if error_code(error) != "channel_not_found":
            raise _unsaid(f"whether the bot is in {channel_id}", error) from error
        raise CommandFailed(
            f"--channel {channel_id} does not exist, or is private and the bot is not in it: "
            "correct the ID, or invite the bot."
        ) from error
    except UNREACHABLE as error:
        raise _unsaid(f"whether the bot is in {channel_id}", error) from error
    if channel.get("is_archived"):
        raise CommandFailed(f"--channel {channel_id} is archived: unarchive it, or name another.")
    if not channel.get("is_im") and not channel.get("is_member"):
        raise CommandFailed(f"The bot is not in --channel {channel_id}: invite it there, or name another.")


def _unsaid(what: str, error: Exception) -> SlackUnreachable:
    if isinstance(error, NotSlack):
        return SlackUnreachable(str(error))
    reason = error_code(error) if isinstance(error, SlackApiError) else type(error).__name__
    return SlackUnreachable(f"Slack does not say {what} ({reason}): try again later.")
