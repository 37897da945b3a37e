"""Whether the people of the policy's roles can decide, and whether anybody is left who can."""

import asyncio
from collections.abc import Collection

import aiohttp
from slack_sdk.errors import SlackApiError

from agent.gaps import Gap, gaps
from agent.policy import Policy
from bot.doctor.finding import Finding, failed, skip, skipped, summed, warning
from bot.identity import WHAT_NOBODY_IS, Why, ask_for, why_nobody
from bot.slack import NotSlack, Slack, error_code

CHECKS = ("people", "approvers")
AT_ONCE = 5
AGAIN = "Run this again later: it is not known whether they may decide."
Lost = SlackApiError | aiohttp.ClientError | TimeoutError


async def check_people(slack: Slack, policy: Policy, *, home_team: str) -> list[Finding]:
    """The checks "people" and "approvers"; each person is looked up once, five at a time."""
    users = policy.users_of(policy.roles)
    some = asyncio.Semaphore(AT_ONCE)

    async def look_up(user_id: str) -> Why | Lost | None:
        async with some:
            return await _look_up(slack, user_id, home_team)

    found = dict(zip(users, await asyncio.gather(*map(look_up, users)), strict=True))
    if any(isinstance(why, SlackApiError) and error_code(why) == "missing_scope" for why in found.values()):
        why = "Slack does not say who people are without the scope users:read"
        return skip(CHECKS, why)
    faults = [_fault(policy, user_id, why) for user_id, why in found.items() if why is not None]
    nobodies = {user_id for user_id, why in found.items() if isinstance(why, str)}
    return [summed("people", f"all {len(users)} may decide", faults), check_approvers(policy, nobodies)]


def check_approvers(policy: Policy, nobodies: Collection[str]) -> Finding:
    """Whether every tool that asks has enough approvers when the `nobodies` decide nothing."""
    if not policy.asking:
        return skipped("approvers", "no tool can ask")
    faults = [_gap(gap, policy.file) for gap in gaps(policy.without(nobodies))]
    return summed("approvers", "every tool that asks has somebody who can approve", faults)


async def _look_up(slack: Slack, user_id: str, home_team: str) -> Why | Lost | None:
    """Why this user decides nothing, what kept it from being known, or None if they may decide."""
    try:
        user = await ask_for(slack.patient, user_id, home_team)
    except (SlackApiError, aiohttp.ClientError, TimeoutError) as error:
        return error
    return "unknown" if user is None else why_nobody(user)


def _fault(policy: Policy, user_id: str, why: Why | Lost) -> Finding:
    if isinstance(why, NotSlack):
        return failed("people", f"{user_id} could not be looked up", str(why))
    if not isinstance(why, str):
        reason = error_code(why) if isinstance(why, SlackApiError) else type(why).__name__
        return warning("people", f"{user_id} could not be looked up ({reason})", AGAIN)
    roles = [role for role, users in policy.roles.items() if user_id in users]
    return failed(
        "people",
        f"{user_id} ({', '.join(roles)}) {WHAT_NOBODY_IS[why]}",
        f"Replace or remove them in {_tables(roles)} of {policy.file}.",
    )


def _gap(gap: Gap, file: str) -> Finding:
    tools, roles = ", ".join(gap.tools), ", ".join(gap.roles)
    do = f"Name more people in {_tables(gap.roles)} of {file}."
    if gap.people >= gap.quorum:
        return warning(
            "approvers",
            f"{tools}: four_eyes is on and only {_people(gap.people)} of {roles} can approve "
            f"(quorum {gap.quorum}), so their own requests can never be approved",
            do,
        )
    if gap.people == 0:
        return failed("approvers", f"{tools}: nobody of {roles} can approve", do)
    says = f"{tools}: the quorum is {gap.quorum}, and only {_people(gap.people)} of {roles} can approve"
    return failed("approvers", says, do)


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def _tables(roles: Collection[str]) -> str:
    return " or ".join(f"[roles.{role}]" for role in roles)
