"""`vistobueno policy`: whether the policy file can be used, and what it says."""

import typer

from agent.policy import Policy, load_policy, warnings
from agent.tool import Risk
from agent.toolbox import load_tools
from bot.commands.output import TRYING, JsonOption, duration, print_json, print_table, read_settings


def register(cli: typer.Typer) -> None:
    """Add the commands to `vistobueno`."""
    group = typer.Typer(no_args_is_help=True, help="The rules: who decides, and how long it waits.")
    group.callback()(_group)
    group.command("check")(check)
    cli.add_typer(group, name="policy", rich_help_panel=TRYING)


def _group() -> None:
    """The rules: who decides, and how long it waits."""


def check(as_json: JsonOption = False) -> None:
    """Read the policy file as every start does, and show who decides what.

    The file is policy.toml, or the one that VISTOBUENO_POLICY names. If it cannot be used, the error names
    the place to change, and the exit code is 1.
    """
    settings = read_settings()
    tools = load_tools(settings.tools)
    policy = load_policy(settings.policy, tools)
    rules = {name: policy.rule_for(name) for name, tool in tools.items() if tool.risk is not Risk.READ_ONLY}
    if as_json:
        return print_json({"policy": policy.file, "rules": rules, "warnings": warnings(policy)})
    typer.echo(f"{policy.file} can be used")
    rows = [
        (name, ", ".join(rule.approvers), rule.quorum, duration(rule.expires_after), rule.channel)
        for name, rule in rules.items()
    ]
    print_table(("tool", "approvers", "quorum", "expires after", "channel"), rows, "No tool can ask.")
    return _print_warnings(policy)


def _print_warnings(policy: Policy) -> None:
    for warning in warnings(policy):
        typer.echo(f"warning: {warning}")
