"""The commands of `vistobueno`, run as main() runs them: what they print, and how they fail."""

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from agent.tools.shop.seed import create_shop
from bot.cli import main
from store import embedded, runs
from store.engine import Database, migrate
from store.records import Actor
from tests.databases import Database as OwnDatabase
from tests.databases import Server

ROOT = Path(__file__).parents[2]
LEO = Actor("person", "T0SHOP", "U0LEO", "Leo")
Cli = Callable[..., int]
SLACK = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s"}
VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_URL",
    "LOG_LEVEL",
    "PORT",
    "SLACK_API_URL",
    "SLACK_APP_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_SIGNING_SECRET",
)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Runs a command with only the given variables, and gives its exit code."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VISTOBUENO_POLICY", str(ROOT / "policy.toml"))
    monkeypatch.setattr("bot.commands.output.configure", lambda level: None)  # logging outlives the test
    monkeypatch.setattr("store.embedded.default_folder", lambda: tmp_path / "nothing")

    def run(*words: str, **variables: str) -> int:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["vistobueno", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


def queue_run(database: OwnDatabase, task: str = "look at the payments", requester: Actor = LEO) -> str:
    """A run that waits for a worker; its id."""

    async def start() -> str:
        db = Database.open(database.url)
        try:
            run, _ = await runs.start(
                db,
                team_id="T0SHOP",
                channel_id="C0SUPPORT",
                thread_ts="1.1",
                agent="Refund helper",
                task=task,
                requester=requester,
                source_key="key:1",
            )
            return str(run.id)
        finally:
            await db.close()

    return asyncio.run(start())


@pytest.mark.parametrize("command", ["web", "worker", "migrate"])
def test_what_must_not_invent_a_database_asks_for_one(
    cli: Cli, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cli(command) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("vistobueno: ")
    assert "DATABASE_URL" in line


@pytest.mark.parametrize("command", ["worker", "dev"])
def test_without_a_model_the_work_is_not_begun(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cli(command, DATABASE_URL=database.url, **SLACK) == 1
    assert "ANTHROPIC_API_KEY" in capsys.readouterr().err


def test_a_command_that_only_reads_says_how_to_get_a_database(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("runs", "list") == 1
    assert "DATABASE_URL" in capsys.readouterr().err


def test_wrong_usage_exits_2(cli: Cli) -> None:
    assert cli("runs", "dance") == 2
    assert cli("demo", "--json") == 2


@pytest.mark.parametrize("words", [(), ("runs",), ("approvals",), ("audit",), ("policy",)])
def test_a_bare_command_teaches(cli: Cli, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    cli(*words)
    assert "Usage" in "".join(capsys.readouterr())


def test_the_version_is_that_of_the_installation(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("--version") == 0
    assert capsys.readouterr().out == f"vistobueno {metadata.version('vistobueno')}\n"


def test_a_database_that_is_not_migrated_says_so(
    cli: Cli, empty_database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("runs", "list", DATABASE_URL=empty_database.owner_url) == 1
    assert "vistobueno migrate" in capsys.readouterr().err


def test_migrate_makes_a_database_ready(
    cli: Cli, empty_database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("migrate", DATABASE_URL=empty_database.owner_url) == 0
    assert cli("runs", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2]) == []


def test_two_variables_for_two_databases_are_said_after_migrating(
    cli: Cli, server: Server, empty_database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    with server.database() as other:
        urls = {"DATABASE_URL": empty_database.url, "DATABASE_OWNER_URL": other.owner_url}
        assert cli("migrate", **urls) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert "name different databases" in line
        assert cli("migrate", **urls | {"DATABASE_OWNER_URL": empty_database.owner_url}) == 0
        assert cli("migrate", **urls) == 1, "both are migrated now, and still they are two"
        nobody = "postgresql://nobody@127.0.0.1:1/shop"  # gets its rights after the first migration
        capsys.readouterr()
        assert cli("migrate", **urls | {"DATABASE_URL": nobody}) == 0
        [line] = capsys.readouterr().err.splitlines()
        assert "whether DATABASE_URL names the same one could not be seen (" in line


def test_a_run_is_listed_shown_and_cancelled(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = queue_run(database)
    assert cli("runs", "list", "--json", DATABASE_URL=database.url) == 0
    assert [run["id"] for run in json.loads(capsys.readouterr().out)] == [run_id]
    assert cli("runs", "show", run_id) == 0
    assert "look at the payments" in capsys.readouterr().out
    assert cli("runs", "cancel", run_id) == 0
    assert cli("runs", "cancel", run_id) == 1
    assert "cancelled" in capsys.readouterr().err


def test_what_people_wrote_gives_the_terminal_no_orders(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = "hi \x1b[2J\x1b]0;x\x07 \u202e evil"
    run_id = queue_run(database, orders, replace(LEO, name=orders))
    assert cli("runs", "list", "--json", DATABASE_URL=database.url) == 0
    assert json.loads(capsys.readouterr().out)[0]["task"] == orders
    for words in (("runs", "list"), ("runs", "show", run_id), ("audit", "show", run_id)):
        assert cli(*words) == 0
        shown = capsys.readouterr().out
        assert "evil" in shown
        assert all(character.isprintable() for line in shown.split("\n") for character in line)


@pytest.mark.parametrize(
    "words",
    [("runs", "show"), ("runs", "cancel"), ("runs", "retry"), ("approvals", "show"), ("audit", "show")],
)
def test_an_id_that_nobody_gave_is_said_to_be_unknown(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert cli(*words, "made_up", DATABASE_URL=database.url) == 1
    assert "made_up" in capsys.readouterr().err


def test_the_record_of_a_run_is_shown_and_whole(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = queue_run(database)
    assert cli("audit", "show", run_id, "--json", DATABASE_URL=database.url) == 0
    assert [event["kind"] for event in json.loads(capsys.readouterr().out)] == ["run.queued"]
    assert cli("audit", "verify") == 0
    assert "the record is whole" in capsys.readouterr().out


def test_the_policy_is_checked_and_shown(
    cli: Cli, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli("policy", "check", "--json") == 0
    assert "refund_payments" in json.loads(capsys.readouterr().out)["rules"]
    assert cli("policy", "check", VISTOBUENO_POLICY=str(tmp_path / "none.toml")) == 1


@pytest.fixture
async def embedded_shop(cli: Cli, server_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded database as a demo leaves it, and no DATABASE_URL."""
    monkeypatch.setattr("store.embedded.default_folder", lambda: server_folder)
    server = await embedded.start(fast=True)
    try:
        await migrate(server.owner_url)
        await create_shop(server.owner_url)
    finally:
        await embedded.stop(server)


@pytest.mark.usefixtures("embedded_shop")
def test_a_preview_finds_the_shop_in_the_embedded_database(
    cli: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "")  # the command sets it for the tools: put back after the test
    assert cli("preview", "delete_customers", "--input", '{"opened_before": "2100-01-01"}') == 0
    assert "Delete 1,204 customers" in capsys.readouterr().out


def test_a_preview_without_a_database_says_how_to_get_one(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("preview", "search_payments", "--input", "{}") == 1
    assert "DATABASE_URL" in capsys.readouterr().err


def test_a_port_in_use_is_said_in_one_line(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli("web", "--host", "127.0.0.1", DATABASE_URL=database.url, PORT=port, **SLACK) == 1
    assert f"Port {port} is in use" in capsys.readouterr().err


def test_an_address_of_another_machine_is_said_in_one_line(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("web", "--host", "not an address", DATABASE_URL=database.url, PORT="0", **SLACK) == 1
    assert "not an address cannot be listened on" in capsys.readouterr().err


def test_a_slack_that_cannot_be_reached_is_said_in_one_line(
    cli: Cli, database: OwnDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {**SLACK, "SLACK_API_URL": "http://127.0.0.1:1/api/", "PORT": "0"}
    assert cli("web", "--host", "127.0.0.1", DATABASE_URL=database.url, **variables) == 1
    assert "Slack cannot be reached" in capsys.readouterr().err
