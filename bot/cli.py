"""The `vistobueno` command: its sub-commands, and one line with what to do when one of them fails."""

import sys

import typer

from agent.policy import PolicyError
from agent.toolbox import ToolsError
from bot.commands import approvals, audit, policy, processes, runs
from bot.commands.output import CommandFailed
from bot.demo.errors import DemoFailed
from bot.process import PortTaken, WorkerEnded
from bot.settings import SettingsError
from bot.slack import UNREACHABLE, SlackRefusedToken
from store.embedded import EmbeddedError
from store.errors import StoreError

FOR_PEOPLE = (
    CommandFailed,
    DemoFailed,
    EmbeddedError,
    PolicyError,
    PortTaken,
    SettingsError,
    SlackRefusedToken,
    StoreError,
    ToolsError,
    WorkerEnded,
)

HELP = """vistobueno lets an AI agent do real work and stop before the part that cannot be undone.

A person decides in Slack; then it runs once. `vistobueno demo` shows it on this machine: no account, no key.
"""


def make_cli() -> typer.Typer:
    """The command with all its sub-commands."""
    cli = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    for noun in (processes, runs, approvals, audit, policy):
        noun.register(cli)
    return cli


def main() -> None:
    """Run the command line; exit 1 with one line on stderr for what a person can mend, 2 for wrong usage."""
    try:
        make_cli()(prog_name="vistobueno")
    except FOR_PEOPLE as error:
        _fail(str(error))
    except BaseExceptionGroup as group:
        known, other = group.split(FOR_PEOPLE)
        if other is not None or known is None:
            raise
        _fail(str(_first(known)))
    except UNREACHABLE as error:
        _fail(f"Slack cannot be reached ({type(error).__name__}): check the network and SLACK_API_URL.")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _fail(sentence: str) -> None:
    line = " ".join(sentence.split())
    typer.echo(f"vistobueno: {line}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
