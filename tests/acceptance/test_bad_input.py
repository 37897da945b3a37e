"""What a command is given wrongly: one line on stderr that says what to do, exit 1, nothing changed."""

import json
import re
import socket
from dataclasses import replace

import psycopg
import pytest

from bot.sandbox import Fault, Sandbox
from tests.acceptance.commands import EVERYTHING, MODEL, NOWHERE, SLACK, answered, vistobueno
from tests.acceptance.contents import contents
from tests.databases import Database, with_login
from tests.standins.postgres import OldServer, running

# --- the database ---


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            NOWHERE,
            r"^PostgreSQL at 127.0.0.1 \(database shop\) cannot be reached: .* refused\. Check DATABASE",
        ),
        ("postgresql://app:s3cret@no-such-host.invalid/shop", "no-such-host.invalid .* cannot be reached"),
        ("shop", "^DATABASE_URL is not a PostgreSQL URL: write it as postgresql://"),
        ("mysql://app:s3cret@127.0.0.1/shop", "^DATABASE_URL is not a PostgreSQL URL: write it as"),
        ("postgresql://app:s3cret@127.0.0.1:port/shop", "^DATABASE_URL is not a URL: write it as"),
        ("postgresql://app:mo@s3cret@127.0.0.1/shop", "^DATABASE_URL has a second @: .* as %40"),
        ("postgresql://app:s3cret@[::1/shop", "^DATABASE_URL is not a URL: write it as"),
        ("postgresql://app:s3cret and@127.0.0.1/shop", "^DATABASE_URL has spaces or signs that cannot"),
        ("postgresql://app:s3cret\udcff@127.0.0.1/shop", "^DATABASE_URL has spaces or signs that cannot"),
        ("postgresql://app:s3cret@127.0.0.1:1/shop?colour=red", 'invalid URI query parameter: "colour"'),
    ],
)
def test_a_wrong_database_url_is_named_without_its_password(url: str, said: str) -> None:
    sentence = vistobueno("runs", "list", DATABASE_URL=url).sentence
    assert re.search(said, sentence), sentence
    assert "s3cret" not in sentence


@pytest.mark.parametrize("command", ["dev", "demo", "migrate"])
def test_a_server_that_is_not_there_stops_what_would_change_it(command: str) -> None:
    ended = vistobueno(command, DATABASE_URL=NOWHERE, PORT="0", **EVERYTHING)
    assert "cannot be reached" in ended.sentence
    assert ended.out == ""


def test_migrating_names_the_variable_of_the_owner() -> None:
    ended = vistobueno("migrate", DATABASE_URL="postgresql://h/d", DATABASE_OWNER_URL=NOWHERE)
    assert "Check DATABASE_OWNER_URL" in ended.sentence


@pytest.mark.parametrize("words", [("runs", "list"), ("migrate",)])
async def test_a_wrong_password_is_called_wrong_and_not_repeated(words: tuple[str, ...]) -> None:
    async with running(OldServer(password="right")) as where:
        sentence = (await answered(*words, DATABASE_URL=f"postgresql://app:s3cret@{where}/shop")).sentence
    assert 'refused the connection: password authentication failed for user "app". Check' in sentence
    assert "s3cret" not in sentence


@pytest.mark.parametrize("words", [("runs", "list"), ("migrate",)])
async def test_a_server_that_is_too_old_is_to_be_upgraded(words: tuple[str, ...]) -> None:
    async with running(OldServer(13)) as where:
        ended = await answered(*words, DATABASE_URL=f"postgresql://app@{where}/shop")
    assert ended.sentence == "The server is PostgreSQL 13, and vistobueno needs 14 or newer: upgrade it."


def test_a_database_that_does_not_exist_is_named(database: Database) -> None:
    url = with_login(database.url, "vistobueno_app", "vistobueno", "nowhere")
    assert 'database "nowhere" does not exist' in vistobueno("runs", "list", DATABASE_URL=url).sentence


def test_a_database_without_tables_is_to_be_migrated(empty_database: Database) -> None:
    ended = vistobueno("runs", "list", DATABASE_URL=empty_database.owner_url)
    assert ended.sentence.endswith("run `vistobueno migrate`.")


@pytest.mark.parametrize("words", [("runs", "list"), ("migrate",)])
def test_a_database_of_a_newer_version_is_left_as_it_is(database: Database, words: tuple[str, ...]) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = contents(database)
    ended = vistobueno(*words, DATABASE_URL=database.url, DATABASE_OWNER_URL=database.owner_url)
    assert re.search(r"at version 9999 and this vistobueno needs \d+: install a newer one", ended.sentence)
    assert contents(database) == before


@pytest.mark.parametrize("command", ["web", "worker", "migrate"])
def test_what_must_not_invent_a_database_asks_for_one(command: str) -> None:
    assert "needs DATABASE_URL: set it" in vistobueno(command, **EVERYTHING).sentence


async def test_what_runs_says_it_last_after_what_else_is_to_be_known() -> None:
    async with Sandbox.running() as sandbox:
        slack = {"SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token, "SLACK_API_URL": sandbox.api_url}
        ended = await answered("worker", DATABASE_URL=NOWHERE, **MODEL, **slack)
    *warnings, last = ended.err.splitlines()
    assert all(json.loads(line)["level"] == "warning" for line in warnings)
    assert replace(ended, err=last).sentence.startswith("PostgreSQL at 127.0.0.1 (database shop) cannot be")


# --- Slack and the model ---


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("web", "SLACK_BOT_TOKEN"),
        ("web", "SLACK_SIGNING_SECRET"),
        ("worker", "SLACK_BOT_TOKEN"),
        ("worker", "ANTHROPIC_API_KEY"),
        ("dev", "SLACK_SIGNING_SECRET"),
        ("dev", "ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_missing_is_named_with_where_to_get_it(command: str, missing: str) -> None:
    given = {name: value for name, value in EVERYTHING.items() if name != missing}
    sentence = vistobueno(command, DATABASE_URL=NOWHERE, **given).sentence
    assert sentence.startswith(f"`vistobueno {command}` needs ")
    assert missing in sentence


def test_starting_a_run_needs_a_token() -> None:
    assert "SLACK_BOT_TOKEN" in vistobueno("start", "hello", DATABASE_URL=NOWHERE).sentence


@pytest.mark.parametrize("words", [("web",), ("worker",), ("dev",), ("start", "hello")])
async def test_a_token_that_slack_does_not_take_is_to_be_copied_again(
    database: Database, words: tuple[str, ...]
) -> None:
    before = contents(database)
    urls = {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}
    async with Sandbox.running() as sandbox:
        variables = {**urls, **EVERYTHING, "SLACK_API_URL": sandbox.api_url, "PORT": "0"}
        ended = await answered(*words, **variables)
    assert ended.sentence.startswith("Slack does not take SLACK_BOT_TOKEN (invalid_auth): copy the Bot User")
    assert contents(database) == before


@pytest.mark.parametrize("words", [("web",), ("worker",), ("start", "hello")])
def test_a_slack_that_does_not_answer_is_named(database: Database, words: tuple[str, ...]) -> None:
    variables = {**EVERYTHING, "SLACK_API_URL": "http://127.0.0.1:1/api/", "PORT": "0"}
    assert vistobueno(*words, DATABASE_URL=database.url, **variables).sentence == (
        "Slack cannot be reached at http://127.0.0.1:1/api/ (Connection refused): "
        "check the network and SLACK_API_URL."
    )


async def test_what_answers_and_is_not_slack_is_named(database: Database) -> None:
    async with Sandbox.running() as sandbox:
        variables = {**EVERYTHING, "SLACK_API_URL": f"{sandbox.base_url}/elsewhere", "PORT": "0"}
        ended = await answered("web", DATABASE_URL=database.url, **variables)
    assert "does not answer as Slack does (http_404): check SLACK_API_URL" in ended.sentence


OK_ALONE = '{"ok": true}'


@pytest.mark.parametrize("answer", ["[1]", '"hello"', OK_ALONE])
@pytest.mark.parametrize("words", [("web",), ("worker",), ("start", "hello")])
async def test_a_slack_that_answers_in_another_shape_is_no_slack(
    database: Database, words: tuple[str, ...], answer: str
) -> None:
    async with Sandbox.running() as sandbox:
        sandbox.faults.add("auth.test", Fault.other(answer), times=9)
        variables = {**EVERYTHING, "SLACK_API_URL": sandbox.api_url, "PORT": "0"}
        ended = await answered(*words, DATABASE_URL=database.url, **variables)
    assert ended.sentence == f"What answers at {sandbox.api_url} is no Slack Web API: check SLACK_API_URL."


@pytest.mark.parametrize("method", ["users.info", "conversations.info"])
async def test_a_start_whose_person_or_channel_has_another_shape_begins_nothing(
    database: Database, method: str
) -> None:
    before = contents(database)
    async with Sandbox.running() as sandbox:
        sandbox.faults.add(method, Fault.other(OK_ALONE), times=9)
        slack = {"SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token, "SLACK_API_URL": sandbox.api_url}
        words = ("start", "hello", "--user", "U0LEO", "--channel", "C0SUPPORT")
        ended = await answered(*words, DATABASE_URL=database.url, **slack)
    assert ended.sentence == f"What answers at {sandbox.api_url} is no Slack Web API: check SLACK_API_URL."
    assert contents(database) == before


# --- other variables ---


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PORT", "http", "PORT is 'http': write a number from 0 to 65535."),
        ("PORT", "65536", "PORT is '65536': write a number from 0 to 65535."),
        ("LOG_LEVEL", "loud", "LOG_LEVEL is 'loud': write one of DEBUG, INFO, WARNING, ERROR, CRITICAL."),
        ("VISTOBUENO_LOCALE", "klingon", "VISTOBUENO_LOCALE is 'klingon': there are words in en only;"),
        ("VISTOBUENO_LOCALE", "es", "VISTOBUENO_LOCALE is 'es': there are words in en only; write that, or"),
        ("VISTOBUENO_LOCALE", "en_MX", "VISTOBUENO_LOCALE is 'en_MX': there are words in en only; write"),
        ("SLACK_BOT_TOKEN", "xapp-1", "SLACK_BOT_TOKEN holds a token that begins with xapp-: copy the Bot"),
        ("SLACK_BOT_TOKEN", "xoxb-1\nx", "SLACK_BOT_TOKEN has signs that cannot be part of it: copy it"),
        ("SLACK_API_URL", "slack.com", "SLACK_API_URL is not a web address: write it as https://host/path."),
        ("SLACK_API_URL", "http://[::1/", "SLACK_API_URL is not a web address: write it as"),
        ("ANTHROPIC_BASE_URL", "http://h:port/", "ANTHROPIC_BASE_URL is not a web address: write it as"),
        ("ANTHROPIC_API_KEY", "ключ", "ANTHROPIC_API_KEY has signs that cannot be part of it: copy it"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variable: str, value: str, said: str) -> None:
    assert vistobueno("web", **{**EVERYTHING, variable: value}).sentence.startswith(said)


def test_a_port_in_use_is_named(database: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = vistobueno("web", "--host", "127.0.0.1", DATABASE_URL=database.url, PORT=port, **SLACK)
    assert ended.sentence.startswith(f"Port {port} is in use: stop what listens there, or choose another")
