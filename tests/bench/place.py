"""A durable PostgreSQL in a temporary folder: the product's database, and the tables of the comparison."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg

from store import embedded
from store.engine import migrate

# `state` holds what the floor keeps of a run; both sides write one row into `effects` for each approval.
TABLES = """
CREATE SCHEMA bench;
CREATE TABLE bench.approvals (
  id text PRIMARY KEY, status text NOT NULL, state jsonb NOT NULL, decided_by text,
  created_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON bench.approvals (created_at) WHERE status = 'pending';
CREATE TABLE bench.effects (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE bench.begun (key text PRIMARY KEY, at timestamptz NOT NULL);
"""


@asynccontextmanager
async def place() -> AsyncIterator[embedded.Embedded]:
    """A server with its default durability, migrated; stopped and removed on leaving."""
    folder = Path(tempfile.mkdtemp(prefix="vistobueno-bench-"))
    os.chmod(folder, 0o755)  # the account that root's servers run under must get in
    try:
        server = await embedded.start(folder)
        try:
            _part(server)
            await migrate(server.owner_url)
            with psycopg.connect(server.owner_url, autocommit=True) as connection:
                connection.execute(TABLES)
            yield server
        finally:
            await embedded.stop(server)
    finally:
        shutil.rmtree(folder)


def _part(server: embedded.Embedded) -> None:
    """Give the server one core and this process another, where that can be done: as on two machines.

    Otherwise they share one in turns and find its caches emptied by each other: how often is chance.
    """
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        return
    for_server, for_us, *_ = sorted(os.sched_getaffinity(0))
    postmaster = int((server.folder / "cluster" / "data" / "postmaster.pid").read_text().split()[0])
    os.sched_setaffinity(postmaster, {for_server})  # those who serve a connection come from it
    os.sched_setaffinity(0, {for_us})
