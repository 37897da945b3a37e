"""Gives tests real PostgreSQL: one server and one migrated template per test process, a clone per test.

The server is the embedded one in a folder under the system's temporary folder, or the one that
VISTOBUENO_TEST_DATABASE_URL names (as its superuser).
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from store import embedded
from store.engine import migrate
from store.locks import is_free

SERVER_VARIABLE = "VISTOBUENO_TEST_DATABASE_URL"
TEMPLATE_VARIABLE = "VISTOBUENO_TEST_TEMPLATE"
FOLDER_PREFIX = "vistobueno-tests-"
PASSWORD = "vistobueno"
ROOM = 2 * 1024**3
Result = TypeVar("Result")


@dataclass(frozen=True)
class Database:
    """One test's database."""

    name: str
    url: str
    """As the app's role, `vistobueno_app`."""
    owner_url: str
    """As the role that owns the database and its tables, `vistobueno`."""
    admin_url: str
    """As the server's superuser."""


@dataclass(frozen=True)
class Server:
    """A running server and a connection of its superuser, from which databases are made and dropped."""

    admin_url: str
    admin: psycopg.Connection[tuple[object, ...]]

    @contextlib.contextmanager
    def database(self, template: Database | None = None) -> Iterator[Database]:
        """A database of the owner's: a copy of `template`, or an empty one; dropped afterwards."""
        name = f"test_{uuid4().hex[:12]}"
        command = "CREATE DATABASE {} OWNER {}" + ("" if template is None else " TEMPLATE {}")
        names = [name, embedded.OWNER] + ([] if template is None else [template.name])
        self.admin.execute(sql.SQL(command).format(*map(sql.Identifier, names)))
        try:
            yield self.named(name)
        finally:
            self.admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def named(self, name: str) -> Database:
        """A database that is there, under its URLs."""
        return Database(
            name=name,
            url=with_login(self.admin_url, embedded.APP, PASSWORD, name),
            owner_url=with_login(self.admin_url, embedded.OWNER, PASSWORD, name),
            admin_url=urlsplit(self.admin_url)._replace(path=f"/{name}").geturl(),
        )


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """The server of this test process."""
    named = os.environ.get(SERVER_VARIABLE)
    with (
        contextlib.nullcontext(named) if named else _embedded_server() as admin_url,
        psycopg.connect(admin_url, autocommit=True) as admin,
    ):
        _make_roles(admin)
        yield Server(admin_url, admin)


@contextlib.contextmanager
def migrated_template(server: Server) -> Iterator[Database]:
    """A database with the current schema, to be copied; nobody may stay connected to it.

    It is made, or it is the one that VISTOBUENO_TEST_TEMPLATE names on the server.
    """
    if made := os.environ.get(TEMPLATE_VARIABLE):
        yield server.named(made)
        return
    with server.database() as template:
        outside_the_loop(migrate(template.owner_url))
        yield template


def outside_the_loop(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine in a thread: pytest-asyncio keeps a loop in this one, which asyncio.run would unset."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def one(url: str, query: LiteralString) -> object:
    """The first column of a query's first row."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row and row[0]


def with_login(url: str, user: str, password: str, database: str) -> str:
    """The same server for another role and database."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}:{password}@{host}", path=f"/{database}").geturl()


@contextlib.contextmanager
def _embedded_server() -> Iterator[str]:
    _clear_abandoned_folders()
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=_fastest_place()))
    server = outside_the_loop(embedded.start(folder, fast=True))
    try:
        yield embedded.admin_url(server)
    finally:
        outside_the_loop(embedded.stop(server))
        shutil.rmtree(folder)


def _clear_abandoned_folders() -> None:
    """Stop and remove servers of test processes that were killed; those in use are locked."""
    for folder in _fastest_place().glob(f"{FOLDER_PREFIX}*"):
        # another test process may be at it
        with contextlib.suppress(FileNotFoundError, PermissionError, BlockingIOError), _alone_in(folder):
            old = folder.stat().st_mtime < time.time() - 3600
            if old and is_free(folder / "users.lock"):
                outside_the_loop(_stop_and_remove(folder))


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder itself locked, or raise BlockingIOError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _fastest_place() -> Path:
    """Memory where there is enough of it: making and dropping a database for each test is a disk's work."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        return memory
    return Path(tempfile.gettempdir())


async def _stop_and_remove(folder: Path) -> None:
    await embedded.stop(await embedded.start(folder, fast=True))
    shutil.rmtree(folder)


def _make_roles(admin: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the two roles, one process at a time: roles belong to the whole server."""
    with admin.transaction():
        admin.execute("SELECT pg_advisory_xact_lock(hashtext('vistobueno test roles'))")
        embedded.ensure_roles(admin)
        for role in (embedded.OWNER, embedded.APP):
            admin.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(PASSWORD))
            )
