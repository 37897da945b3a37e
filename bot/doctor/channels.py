"""Whether the bot can write where the policy wants its cards."""

from collections.abc import Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

from agent.policy import Policy
from bot.doctor.finding import Finding, failed, skipped, summed, warning
from bot.slack import UNREACHABLE, NotSlack, Slack, channel_of, error_code

CHECK = "channels"


async def check_channels(slack: Slack, policy: Policy, *, bot_name: str) -> Finding:
    """Whether the channels of all tools that ask exist, are open, and have the bot as a member."""
    names = list(dict.fromkeys(policy.rule_for(tool).channel for tool in policy.asking))
    if not names:
        return skipped(CHECK, "no tool can ask")
    faults = [await _fault(slack, name, bot_name) for name in names]
    return summed(
        CHECK, f"the bot is in {', '.join(names)}", [fault for fault in faults if fault is not None]
    )


async def _fault(slack: Slack, channel_id: str, bot_name: str) -> Finding | None:
    try:
        channel = await channel_of(slack.patient, channel_id)
    except NotSlack as error:
        return failed(CHECK, f"{channel_id} could not be looked up", str(error))
    except SlackApiError as error:
        return _refused(channel_id, error_code(error), bot_name)
    except UNREACHABLE as error:
        return _unknown(channel_id, type(error).__name__)
    return _unfit(channel_id, channel, bot_name)


def _unfit(channel_id: str, channel: Mapping[str, Any], bot_name: str) -> Finding | None:
    name = f"{channel_id} (#{channel.get('name', '')})"
    if channel.get("is_archived"):
        return failed(CHECK, f"{name} is archived", "Unarchive it, or name another channel in the policy.")
    if not channel.get("is_member"):
        return failed(CHECK, f"the bot is not in {name}", _invite(channel_id, bot_name))
    return None


def _refused(channel_id: str, code: str, bot_name: str) -> Finding:
    if code == "channel_not_found":
        return failed(
            CHECK,
            f"{channel_id} does not exist, or is private and the bot is not in it",
            f"Correct its ID in the policy, or write `/invite @{bot_name}` in the channel.",
        )
    if code == "missing_scope":
        return failed(
            CHECK,
            f"Slack does not say whether the bot is in {channel_id}",
            "Give the token its scopes, as said above, and run this again.",
        )
    return _unknown(channel_id, code)


def _unknown(channel_id: str, reason: str) -> Finding:
    return warning(CHECK, f"{channel_id} could not be looked up ({reason})", "Run this again later.")


def _invite(channel_id: str, bot_name: str) -> str:
    return f"Write `/invite @{bot_name}` in {channel_id}, or name another channel in the policy."
