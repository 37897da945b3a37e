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
            await migrate(server.owner_url)
            with psycopg.connect(server.owner_url, autocommit=True) as connection:
                connection.execute(TABLES)
            yield server
        finally:
            await embedded.stop(server)
    finally:
        shutil.rmtree(folder)
