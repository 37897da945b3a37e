"""A database of one's own on the embedded server, dropped afterwards: for the demo.

Whoever uses one holds an advisory lock, which goes with its process. So one that was left behind by a process
that was killed is known by its lock being free, and is dropped by whoever makes the next one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from store.embedded import Embedded, admin_url, ensure_database
from store.errors import translated

PREFIX = "scratch_"
Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]


@asynccontextmanager
async def scratch_database(server: Embedded) -> AsyncIterator[tuple[str, str]]:
    """The URLs of an empty database, as the app's role and as its owner's."""
    name = f"{PREFIX}{uuid4().hex[:12]}"
    holder = await asyncio.to_thread(_make, server, name)
    try:
        yield _at(server.url, name), _at(server.owner_url, name)
    finally:
        await asyncio.to_thread(_drop, holder, name)


def _make(server: Embedded, name: str) -> Connection:
    """Make it; the connection that holds its lock."""
    with translated():
        holder = psycopg.connect(admin_url(server), autocommit=True)
        try:
            _drop_abandoned(holder)
            _lock(holder, name)
            ensure_database(holder, name)
        except BaseException:
            holder.close()
            raise
    return holder


def _drop(holder: Connection, name: str) -> None:
    # a server that has gone, or has no space, cannot drop it: what ended the demo says more than that
    with contextlib.suppress(psycopg.OperationalError), holder:
        _drop_database(holder, name)


def _drop_abandoned(connection: Connection) -> None:
    found = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
    for (name,) in found.fetchall():
        if _lock(connection, str(name)):
            _drop_database(connection, str(name))
            connection.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


def _lock(connection: Connection, name: str) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [name]).fetchone()
    return row == (True,)


def _drop_database(connection: Connection, name: str) -> None:
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _at(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
