"""A database of one's own on the embedded server, dropped afterwards: for the demo's unattended play."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from store.embedded import Embedded, admin_url, ensure_database
from store.errors import translated


@asynccontextmanager
async def scratch_database(server: Embedded) -> AsyncIterator[tuple[str, str]]:
    """The URLs of an empty database, as the app's role and as its owner's."""
    name = f"scratch_{uuid4().hex[:12]}"
    await asyncio.to_thread(_make, server, name)
    try:
        yield _at(server.url, name), _at(server.owner_url, name)
    finally:
        await asyncio.to_thread(_drop, server, name)


def _make(server: Embedded, name: str) -> None:
    with translated(), psycopg.connect(admin_url(server), autocommit=True) as connection:
        ensure_database(connection, name)


def _drop(server: Embedded, name: str) -> None:
    # a server that has gone, or has no space, cannot drop it: what ended the play says more than that
    with (
        contextlib.suppress(psycopg.OperationalError),
        psycopg.connect(admin_url(server), autocommit=True) as connection,
    ):
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _at(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
