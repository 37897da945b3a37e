"""A pytest plugin for the runner: writes down how each test ended, and whose code was imported."""

import json
import sys
from pathlib import Path

import pytest

PACKAGES = ("bot", "agent", "store")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file to write to."""
    parser.addoption("--report-to", required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to write down."""
    config.pluginmanager.register(Report(config), "mutant-report")


class Report:
    """What is written: {"tests": [{"id", "phase", "outcome", "text"}], "strangers": [files]}."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._file = Path(config.getoption("--report-to"))
        self._tests: list[dict[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the body of a test came to, and what went wrong before or after it."""
        if report.when == "call" or report.outcome != "passed":
            said = "\n".join([report.longreprtext, *(text for _, text in report.sections)])
            self._tests.append(
                {"id": report.nodeid, "phase": report.when, "outcome": report.outcome, "text": said}
            )

    def pytest_sessionfinish(self) -> None:
        """Write it all, with the files of our packages that are not those of this tree."""
        found = [
            getattr(module, "__file__", None)
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in PACKAGES
        ]
        files = [Path(file) for file in found if file is not None]
        strangers = [str(file) for file in files if not file.resolve().is_relative_to(self._root.resolve())]
        self._file.write_text(json.dumps({"tests": self._tests, "strangers": strangers}))
