"""`vistobueno doctor`: what is wrong here, and what to do about it."""

import os
from collections import Counter
from typing import get_args

import typer

from bot.commands.output import (
    RUNNING,
    JsonOption,
    complete,
    print_findings,
    print_json,
    print_line,
    read_settings,
)
from bot.doctor.examination import examine
from bot.doctor.finding import Finding, Status
from bot.settings import SettingsError


def register(cli: typer.Typer) -> None:
    """Add the command to `vistobueno`."""
    cli.command(rich_help_panel=RUNNING)(doctor)


def doctor(as_json: JsonOption = False) -> None:
    """Check everything that vistobueno needs, from Python to who can approve; exit 1 if a check failed.

    One line for each check: ok, warning, failed, or skipped because an earlier one failed; then how many of
    each. It changes nothing: it starts no database, migrates nothing and writes nothing in Slack.
    """
    _quiet()
    findings = complete(examine(os.environ))
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    if any(finding.status == "failed" for finding in findings):
        raise typer.Exit(1)


def _quiet() -> None:
    try:
        read_settings(quiet=True)
    except SettingsError:
        return  # which is the first thing that the findings say


def _print(findings: list[Finding]) -> None:
    rows = [((f.status, f.check), f"{f.says}. {f.do}" if f.do else f.says) for f in findings]
    print_findings(rows)
    counts = Counter(f.status for f in findings)
    print_line(", ".join(f"{counts[status]} {status}" for status in get_args(Status) if counts[status]) + ".")
