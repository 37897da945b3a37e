"""The command with all its sub-commands, and one line with what to do when one of them fails."""

import errno
import importlib
import os
import sys
from typing import Annotated, NoReturn

import typer

from agent.policy import PolicyError
from agent.toolbox import ToolsError
from bot.commands.output import CommandFailed
from bot.demo.errors import DemoFailed
from bot.doctor.program import installed
from bot.process import PortTaken, WorkerEnded
from bot.settings import SettingsError
from bot.slack_errors import SlackRefusedToken, SlackUnreachable
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
    SlackUnreachable,
    StoreError,
    ToolsError,
    WorkerEnded,
)

MODULES = {
    "bot.demo.command": ("demo",),
    "bot.commands.processes": ("dev", "migrate", "web", "worker", "start"),
    "bot.commands.preview": ("preview",),
    "bot.commands.policy": ("policy",),
    "bot.commands.doctor": ("doctor",),
    "bot.commands.runs": ("runs",),
    "bot.commands.approvals": ("approvals",),
    "bot.commands.audit": ("audit",),
}
"""What each module registers. One of them is loaded for a command, because all take longer than most need."""

HELP = """vistobueno lets an AI agent do real work and stop before the part that cannot be undone.

A person decides in Slack; then it runs once. `vistobueno demo` shows it on this machine: no account, no key.

`vistobueno COMMAND --help` tells more of each. What can be mended is said in one line, with exit code 1;
wrong usage exits 2. All settings are variables of the environment: the file .env.example names each.
"""


def make_cli(named: str = "") -> typer.Typer:
    """The command with all its sub-commands, or with those of the module that has the one that is named."""
    cli = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    some = [module for module, names in MODULES.items() if named in names]
    for module in some or MODULES:
        importlib.import_module(module).register(cli)
    cli.callback()(_group)  # also so that a command keeps its name where it is the only one
    return cli


def _print_version(asked: bool) -> None:
    if asked:
        found = installed()
        typer.echo(f"vistobueno {found.version}" if found else "vistobueno, never installed: no version")
        raise typer.Exit


def _group(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end."),
    ] = False,
) -> None:
    """Do nothing: the sub-command does."""


def run() -> NoReturn:
    """Run the command line; exit 1 with one line on stderr for what a person can mend, 2 for wrong usage."""
    try:
        _refuse_closed_output()
        _refuse_what_is_no_text(sys.argv)
        make_cli(*sys.argv[1:2])(prog_name="vistobueno")
    except FOR_PEOPLE as error:
        _fail(error)
    except BaseExceptionGroup as group:
        known, other = group.split(FOR_PEOPLE)
        if other is not None or known is None:
            raise
        _fail(_first(known))
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
            raise
        _give_up_output()
        _fail(CommandFailed(f"The output could not be written: {error.strerror}."))
    sys.exit(0)


def _refuse_closed_output() -> None:
    if sys.stdout is None:  # the shell's >&-
        raise CommandFailed("The standard output is closed: send it to a file, or to /dev/null.")


def _refuse_what_is_no_text(arguments: list[str]) -> None:
    # bytes that are no UTF-8 come as lone surrogates, which neither Slack nor PostgreSQL takes
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError as error:
        raise CommandFailed("An argument is not UTF-8 text: write it in UTF-8.") from error


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _give_up_output() -> None:
    """Let nothing be written to stdout any more: Python would try once more at its end, and say so."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _fail(error: BaseException) -> NoReturn:
    details = error.details if isinstance(error, CommandFailed) else ()
    typer.echo(f"vistobueno: {_one_line(str(error))}", err=True)
    for detail in details:
        typer.echo(f"  {_one_line(detail)}", err=True)
    sys.exit(1)


def _one_line(text: str) -> str:
    return " ".join(text.split())
