"""Commands that are cut short: by a reader that goes away, by Ctrl-C or SIGTERM, or by a full disk."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from bot.sandbox import Fault, Sandbox
from store.wheel import ROOT_FOLDER
from tests.acceptance.commands import COMMAND, MODEL, ROOT, SECONDS, SLACK, Ended, clean, loaded_anew
from tests.databases import Database

ALONE = str(ROOT / "tests" / "acceptance" / "alone.py")
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
small_disk = pytest.mark.debian(root=True, programs=["unshare", "mount"])


def on_own_disk(size: str, asked: str, *words: str, **variables: str) -> Ended:
    """A command whose embedded database is on a disk of that size; `out` ends with what it left behind."""
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        pytest.skip("other platform: this container may not mount a file system")
    done = subprocess.run(
        [*NAMESPACES, sys.executable, ALONE, str(ROOT_FOLDER), size, *COMMAND, *words],
        cwd=ROOT,
        env=clean(variables),
        input=asked,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


# --- output ---


def test_a_reader_that_goes_away_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = loaded_anew("policy", "check", stdout=writing)
    finally:
        os.close(writing)
    assert ended.err == ""


def test_output_that_cannot_be_written_is_said_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = loaded_anew("policy", "check", stdout=full.fileno())
    assert ended.sentence == "The output could not be written: No space left on device."


def test_output_that_is_closed_is_said_in_one_line() -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "policy", "check"]
    done = subprocess.run(
        shell, cwd=ROOT, env=clean({}), stderr=subprocess.PIPE, text=True, timeout=2 * SECONDS, check=False
    )
    ended = Ended(done.returncode, "", done.stderr)
    assert ended.sentence == "The standard output is closed: send it to a file, or to /dev/null."


# --- Ctrl-C and SIGTERM ---


@pytest.mark.parametrize(
    ("command", "asked", "code"), [("dev", signal.SIGINT, 130), ("web", signal.SIGTERM, 143)]
)
async def test_what_is_asked_to_end_before_it_listens_ends_at_once(
    database: Database, command: str, asked: signal.Signals, code: int
) -> None:
    async with Sandbox.running() as sandbox:
        sandbox.faults.add("auth.test", Fault.hang(), times=1)
        app = sandbox.workspace.app
        slack = {"SLACK_BOT_TOKEN": app.bot_token, "SLACK_API_URL": sandbox.api_url, "PORT": "0"}
        urls = {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}
        process = await asyncio.create_subprocess_exec(
            *(*COMMAND, command),
            cwd=ROOT,
            env=clean({**SLACK, **MODEL, **urls, **slack}),
            stderr=asyncio.subprocess.PIPE,
        )
        await sandbox.until(lambda: sandbox.calls, timeout=SECONDS)
        process.send_signal(asked)
        _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, said.decode()) == (code, "")


async def test_ctrl_c_while_the_command_is_loaded_ends_it_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time; print('loading', flush=True); time.sleep(60)")
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "demo"),
        cwd=ROOT,
        env=clean({"PYTHONPATH": str(tmp_path)}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"loading\n"
    process.send_signal(signal.SIGINT)
    _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, said) == (-signal.SIGINT, b"")


@small_disk
@pytest.mark.parametrize(
    ("words", "asked", "when", "code"),
    [
        (("demo",), signal.SIGINT, "initdb --pgdata", 130),
        (("demo", "--play"), signal.SIGTERM, "bot.demo.app", 143),
    ],
)
def test_a_demo_that_is_asked_to_end_while_it_starts_leaves_no_process_behind(
    words: tuple[str, ...], asked: signal.Signals, when: str, code: int
) -> None:
    ended = on_own_disk("500m", f"{int(asked)} {when}", *words)
    assert (ended.code, ended.err) == (code, "")
    assert ended.out.endswith("left: []\n")


@pytest.mark.debian
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGHUP])
async def test_a_demo_that_is_shown_ends_well_with_its_app(database: Database, asked: signal.Signals) -> None:
    urls = {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, "demo"),
        cwd=ROOT,
        env=clean(urls),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = [(await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode() for _ in range(4)]
    assert lines[0].startswith("Open http://127.0.0.1:")
    assert "ask the bot as Leo, decide as Marta" in lines[1]
    assert "make demo ARGS=--play" in lines[2]
    async with aiohttp.ClientSession() as http, http.get(lines[0].split()[1]) as answered:
        assert "@vistobueno please refund the failed payments" in await answered.text()
    assert len(users_of(database)) == 2
    process.send_signal(asked)
    _, said = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, said.decode()) == (0, "The demo is over.\n")
    assert users_of(database) == []


def users_of(database: Database) -> list[int]:
    """The processes that were begun with this database's URL in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if f"DATABASE_URL={database.url}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


# --- a full disk ---


@small_disk
@pytest.mark.parametrize(
    ("words", "size"), [(("demo",), "1m"), (("dev",), "40m"), (("demo", "--play"), "48m")]
)
def test_a_disk_too_small_for_the_database_is_one_sentence(words: tuple[str, ...], size: str) -> None:
    ended = on_own_disk(size, "", *words, **SLACK, **MODEL)
    assert " no space left " in ended.sentence
    assert "free " in ended.sentence
    assert ended.out == "left: []\n"
