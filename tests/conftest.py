"""What all tests share: databases, tests that need Debian or root, and no silent skips in CI."""

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
import structlog

from store import embedded
from tests import databases
from tests.databases import Database, Server
from tests.needs import OTHER_PLATFORM, lack

# the default prints every local variable of every frame, which takes seconds that Slack does not wait
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The PostgreSQL server of this test process."""
    with databases.running_server() as running:
        yield running


@pytest.fixture(scope="session")
def template(server: Server) -> Iterator[Database]:
    """The migrated database that `database` copies."""
    with databases.migrated_template(server) as migrated:
        yield migrated


@pytest.fixture
def database(server: Server, template: Database) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with server.database(template) as copy:
        yield copy


@pytest.fixture
def empty_database(server: Server) -> Iterator[Database]:
    """A database of the test's own with no schema, for tests of the migrations themselves."""
    with server.database() as made:
        yield made


@pytest.fixture
async def server_folder() -> AsyncIterator[Path]:
    """A folder for an embedded server of the test's own; stops what was left running in it.

    Not pytest's tmp_path: the account that root's servers run under may not enter that.
    """
    made = Path(tempfile.mkdtemp(prefix="vistobueno-test-embedded-"))
    os.chmod(made, 0o755)
    yield made
    if embedded.exists(made):
        await embedded.stop(await embedded.start(made, fast=True))
    shutil.rmtree(made)


def pytest_configure() -> None:
    """Let no test reach a real Stripe; let commands under test hear Ctrl-C and a closed terminal.

    A background job of a shell is deaf to the one, what `nohup` begins to the other, and both pass that on.
    """
    for variable in ("STRIPE_API_KEY", "STRIPE_API_BASE", "SHOP_PROVIDER_HONOURS_KEYS"):
        os.environ.pop(variable, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `debian(…)` where something of what `tests.needs.lack` is asked for is missing."""
    for mark in item.iter_markers("debian"):
        if (why := lack(**mark.kwargs)) is not None:
            pytest.skip(why)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed test."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a file that is skipped as a whole is a failure."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not os.environ.get("CI") or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(OTHER_PLATFORM):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
