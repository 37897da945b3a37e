"""Whether Slack takes the token, with the right scopes, and whether requests can be verified."""

import re
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.policy import Policy
from bot.doctor.channels import check_channels
from bot.doctor.clocks import Asked, compare
from bot.doctor.finding import Finding, failed, ok, skip, skipped, summed, warning
from bot.doctor.people import check_people
from bot.doctor.scopes import BOT_SCOPES
from bot.settings import Settings, SettingsError, SlackSettings
from bot.slack import Slack, connect, introduce, open_socket
from bot.slack_errors import SlackRefusedToken, SlackUnreachable

CHECKS = (
    "slack",
    "slack clock",
    "scopes",
    "signing secret",
    "socket mode",
    "channels",
    "people",
    "approvers",
)
OF_THE_POLICY = CHECKS[-3:]
HALF_A_SECOND = 0.5  # a Date has whole seconds, so on average this much is missing
SIGNING_SECRET = re.compile(r"[0-9a-f]{32}")
SET_CLOCK = (
    "Set this machine's clock, with NTP for example: what Slack sends is refused when the two are more than "
    "5 minutes apart."
)
INSTALL_AGAIN = "on your Slack app's page OAuth & Permissions, and install the app again."


@dataclass(frozen=True)
class Introduced:
    """Slack's answer to auth.test, and when it was asked."""

    answer: AsyncSlackResponse
    asked: Asked

    @property
    def headers(self) -> Mapping[str, str]:
        """The answer's headers, by their names in small letters."""
        return {name.lower(): value for name, value in self.answer.headers.items()}


async def check_slack(settings: Settings, policy: Policy | None) -> list[Finding]:
    """The eight checks of Slack, and of who can decide there."""
    secret = check_signing_secret(settings)
    async with AsyncExitStack() as stack:
        try:
            slack = await stack.enter_async_context(connect(_credentials(settings)))
            introduced = await _introduced(slack)
        except SettingsError as error:
            return _without_slack(secret, "there is no token", str(error))
        except SlackRefusedToken as error:
            return _without_slack(secret, "the token is refused", str(error))
        except SlackUnreachable as error:
            return _without_slack(secret, "Slack cannot be asked", str(error))
        before = [
            *(_token(introduced.answer), _clock(introduced), _scopes(introduced.headers), secret),
            await _socket_mode(slack, settings.slack_app_token),
        ]
        return [*before, *await _of_the_policy(slack, introduced.answer, policy)]


def check_signing_secret(settings: Settings) -> Finding:
    """Whether there is a signing secret that can be one."""
    check, secret = "signing secret", settings.slack_signing_secret
    if secret is None and settings.slack_app_token is not None:
        return ok(check, "none is needed in Socket Mode")
    if secret is None:
        return failed(
            check,
            "there is none",
            "Set SLACK_SIGNING_SECRET: copy it from your Slack app's page Basic Information.",
        )
    if not SIGNING_SECRET.fullmatch(secret):
        return failed(
            check,
            "SLACK_SIGNING_SECRET is not one of Slack's, which are 32 digits of 0-9 and a-f",
            "Copy the Signing Secret from your Slack app's page Basic Information, "
            "not the Client Secret or the Verification Token.",
        )
    return ok(check, "it has the form of one")


def _credentials(settings: Settings) -> SlackSettings:
    return settings.require_slack("vistobueno worker")


async def _introduced(slack: Slack) -> Introduced:
    began = time.time()
    answer = await introduce(slack.once)
    return Introduced(answer, Asked(began, time.time()))


def _without_slack(secret: Finding, why: str, do: str) -> list[Finding]:
    skipped_checks = skip(CHECKS, why)
    skipped_checks[CHECKS.index("signing secret")] = secret
    return [failed("slack", why, do), *skipped_checks[1:]]


def _token(answer: AsyncSlackResponse) -> Finding:
    user, team = _name(answer, "user", "user_id"), _name(answer, "team", "url")
    return ok("slack", f"the token is that of {user} in {team} ({answer['team_id']})")


def _name(answer: AsyncSlackResponse, name: str, otherwise: str) -> str:
    return str(answer.get(name) or answer[otherwise])


def _clock(introduced: Introduced) -> Finding:
    told = _seconds(introduced.headers.get("date", ""))
    if told is None:
        return skipped("slack clock", "Slack's answer has no date")
    return compare("slack clock", "Slack's", introduced.asked.ahead_of(told + HALF_A_SECOND), SET_CLOCK)


async def _socket_mode(slack: Slack, app_token: str | None) -> Finding:
    if app_token is None:
        return ok("socket mode", "SLACK_APP_TOKEN is not set, so Slack sends to the app's request URL")
    try:
        await open_socket(slack.once, app_token)
    except SlackRefusedToken as error:
        return failed("socket mode", "Slack opens no connection", str(error))
    except SlackUnreachable as error:
        return failed("socket mode", "Slack cannot be asked for a connection", str(error))
    return ok("socket mode", "Slack opens a connection for SLACK_APP_TOKEN")


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _scopes(headers: Mapping[str, str]) -> Finding:
    if "x-oauth-scopes" not in headers:
        return skipped("scopes", "Slack's answer does not name them")
    granted = {scope.strip() for scope in headers["x-oauth-scopes"].split(",")} - {""}
    missing, unused = sorted(BOT_SCOPES.keys() - granted), sorted(granted - BOT_SCOPES.keys())
    faults = []
    if missing:
        named = ", ".join(f"{scope} ({BOT_SCOPES[scope]})" for scope in missing)
        faults += [failed("scopes", f"the token lacks {named}", f"Add what is missing {INSTALL_AGAIN}")]
    if unused:
        says = f"the token has more than it needs: {', '.join(unused)}"
        faults += [warning("scopes", says, f"Remove what is not needed {INSTALL_AGAIN}")]
    return summed("scopes", f"all {len(BOT_SCOPES)} are there, and no other", faults)


async def _of_the_policy(slack: Slack, answer: AsyncSlackResponse, policy: Policy | None) -> list[Finding]:
    if policy is None:
        return skip(OF_THE_POLICY, "the policy cannot be used")
    channels = await check_channels(slack, policy, bot_name=_name(answer, "user", "user_id"))
    return [channels, *await check_people(slack, policy, home_team=answer["team_id"])]
