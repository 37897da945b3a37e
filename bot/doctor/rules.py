"""Whether the tools can be loaded, and whether the policy holds for them."""

from agent.policy import Policy, PolicyError, load_policy, warnings
from agent.toolbox import ToolsError, load_tools
from bot.doctor.finding import Finding, failed, ok, skipped, warning
from bot.settings import Settings


def check_rules(settings: Settings) -> tuple[list[Finding], Policy | None]:
    """The checks "tools" and "policy", and the policy if it can be used."""
    try:
        tools = load_tools(settings.tools)
    except ToolsError as error:
        found = failed("tools", "they cannot be loaded", str(error))
        return [found, skipped("policy", "the tools cannot be loaded")], None
    loaded = ok("tools", f"{len(tools)} in {settings.tools}")
    try:
        policy = load_policy(settings.policy, tools)
    except PolicyError as error:
        return [loaded, failed("policy", "it cannot be used", str(error))], None
    return [loaded, _policy(policy)], policy


def _policy(policy: Policy) -> Finding:
    told = warnings(policy)
    if told:
        return warning("policy", f"{policy.file} can be used, with a warning", " ".join(told))
    return ok("policy", f"{policy.file} can be used")
