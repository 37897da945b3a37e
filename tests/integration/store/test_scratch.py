"""A database of one's own on the embedded server: made empty, dropped afterwards, never left for long."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from store import embedded
from store.embedded import Embedded
from store.scratch import scratch_database
from tests.databases import one

MAKE_AND_WAIT = """
import asyncio, sys
from pathlib import Path
from store import embedded
from store.scratch import scratch_database
async def main():
    server = await embedded.start(Path(sys.argv[1]), fast=True)
    async with scratch_database(server) as (url, _):
        print(url, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.fixture
async def server(server_folder: Path) -> AsyncIterator[Embedded]:
    started = await embedded.start(server_folder, fast=True)
    yield started
    await embedded.stop(started)


def names(server: Embedded) -> list[str]:
    with psycopg.connect(embedded.admin_url(server)) as admin:
        found = admin.execute("SELECT datname FROM pg_database WHERE starts_with(datname, 'scratch_')")
        return [name for (name,) in found.fetchall()]


async def test_it_is_the_owners_and_is_dropped_afterwards(server: Embedded) -> None:
    async with scratch_database(server) as (url, owner_url):
        assert one(url, "SELECT current_user") == "vistobueno_app"
        assert one(
            owner_url, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()"
        )
        assert names(server) == [one(url, "SELECT current_database()")]
    assert names(server) == []


async def test_one_that_is_in_use_is_left_alone(server: Embedded) -> None:
    async with scratch_database(server) as (first, _), scratch_database(server) as (second, _):
        assert one(first, "SELECT current_database()") != one(second, "SELECT current_database()")
        assert len(names(server)) == 2


async def test_one_whose_process_was_killed_is_dropped_by_the_next(server: Embedded) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAKE_AND_WAIT, str(server.folder)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    left = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
    async with scratch_database(server):
        assert one(left, "SELECT 1") == 1, "its process lives"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with scratch_database(server) as (url, _):
        assert names(server) == [one(url, "SELECT current_database()")]
