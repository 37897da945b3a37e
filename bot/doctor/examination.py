"""Every check, in an order in which the first failure explains the next."""

from collections.abc import Mapping

from bot.doctor import database, slack
from bot.doctor.configuration import check_configuration, check_variables
from bot.doctor.database import check_database
from bot.doctor.finding import Finding, skip
from bot.doctor.model import check_model
from bot.doctor.program import check_program
from bot.doctor.rules import check_rules
from bot.doctor.slack import check_slack
from bot.doctor.tool_checks import check_tools
from bot.settings import Settings

BEYOND_SETTINGS = (*database.CHECKS, "tools", "policy", "model", *slack.CHECKS)


async def examine(environ: Mapping[str, str]) -> list[Finding]:
    """All findings for the settings in these variables of the environment; nothing is changed."""
    program, variables = check_program(), check_variables(environ)
    if variables.status == "failed":
        return [*program, variables, *skip(BEYOND_SETTINGS, "the configuration cannot be used")]
    settings = Settings.read(environ)
    rules, policy = check_rules(settings)
    return [
        *program,
        check_configuration(settings),
        *await check_database(settings),
        *rules,
        *await check_tools(settings),
        await check_model(settings, None if policy is None else policy.agent.model),
        *await check_slack(settings, policy),
    ]
