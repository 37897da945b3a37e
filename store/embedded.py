"""A real PostgreSQL 18 from a wheel, in a folder of the user's own, for demo, dev and tests.

Only the wheel's programs are used, not its Python: that one opens the folders above the data (and above
itself) to everybody when it runs as root, and forgets to stop a server after a process was killed. Here
every user of a server holds a shared lock on one file, which the kernel drops whatever ends the process;
whoever stops last may lock the file alone, and stops the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from store.cluster import DEADLINE_SECONDS, Cluster
from store.locks import FileLock, WaitGivenUp, Waiting, is_free
from store.wheel import ROOT_FOLDER, EmbeddedError, disk_full, find_programs, no_space, server_account

DATABASE = "vistobueno"
OWNER = "vistobueno"
APP = "vistobueno_app"
ADMIN = "postgres"

__all__ = ["Embedded", "EmbeddedError", "admin_url", "default_folder", "exists", "join", "start", "stop"]


@dataclass(frozen=True)
class Embedded:
    """A running server that this process uses; hand it to `stop` when done."""

    url: str
    """For the app: the role that may not touch the record's past."""
    owner_url: str
    """For migrations: the role that owns the database."""
    folder: Path
    _used: FileLock = field(repr=False, compare=False)


def default_folder() -> Path:
    """Where the database of this user lives: under XDG_DATA_HOME, or for root under /var/lib.

    Root's is not below its home, because PostgreSQL does not run as root and the account it runs under
    would need the home to be open to others.
    """
    if os.geteuid() == 0:
        return ROOT_FOLDER
    data_home = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not data_home.is_absolute():  # the XDG specification: a relative one is to be ignored
        data_home = Path.home() / ".local" / "share"
    return data_home / "vistobueno"


def exists(folder: Path | None = None) -> bool:
    """Whether a database was made in that folder before (it need not be running)."""
    return (_resolved(folder) / "cluster" / "data" / "PG_VERSION").is_file()


async def start(
    folder: Path | None = None, *, fast: bool = False, waits: Callable[[], None] | None = None
) -> Embedded:
    """Start the server of a folder, or join it when it runs already; makes the database when there is none.

    `fast` gives up durability (fsync off), for tests that do not test it; it counts only when this call is
    the one that starts the server. `waits` is called, in a thread, when another process that starts or stops
    the server is waited for. Raises EmbeddedError with one sentence for people.
    """
    waiting = Waiting(waits)
    starting = asyncio.create_task(asyncio.to_thread(_start, _resolved(folder), fast, waiting))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # the thread waits no more, but where it is past that it goes on: what it still starts is given back
        waiting.given_up.set()
        with contextlib.suppress(EmbeddedError, WaitGivenUp):
            await stop(await starting)
        raise


async def join(folder: Path | None = None) -> Embedded | None:
    """The server of a folder if it runs, None if it does not: nothing is started, made or cleared away."""
    return await asyncio.to_thread(_join, _resolved(folder))


async def stop(embedded: Embedded) -> None:
    """Give the server back; it stops when no other process, and nothing else in this one, uses it."""
    await asyncio.to_thread(_stop, embedded)


def admin_url(embedded: Embedded, database: str = "postgres") -> str:
    """The superuser's URL, for tests that make databases of their own."""
    return _url(ADMIN, database, embedded.url.partition("?")[2])


def _resolved(folder: Path | None) -> Path:
    return (folder or default_folder()).expanduser().resolve()


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn what the system says into a sentence for people."""
    try:
        yield
    except TimeoutError as error:
        raise EmbeddedError(
            f"The embedded PostgreSQL is busy ({error}): end that process, or set DATABASE_URL."
        ) from error
    except OSError as error:
        if disk_full(str(error)):
            raise no_space(folder) from error
        raise EmbeddedError(
            f"The embedded PostgreSQL cannot use {folder} ({error}): make that folder writable, choose "
            "another place with XDG_DATA_HOME, or set DATABASE_URL."
        ) from error


def _start(folder: Path, fast: bool, waiting: Waiting) -> Embedded:
    _forget_other_servers()
    with _explained(folder):
        return _start_locked(folder, fast, waiting)


def _forget_other_servers() -> None:
    """Take out of the environment what libpq would use of another server, like PGSERVICE."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


def _join(folder: Path) -> Embedded | None:
    _forget_other_servers()
    with _explained(folder), FileLock(folder / "start.lock"):
        server = Cluster(folder / "cluster", programs=Path(), account=None).found()
        if server is None or server.socket_folder is None or not _answers(server.socket_folder):
            return None
        return _used_from_now(folder, server.socket_folder)


def _start_locked(folder: Path, fast: bool, waiting: Waiting) -> Embedded:
    account, programs = server_account(), find_programs()
    folder.mkdir(parents=True, exist_ok=True, mode=0o711 if account else 0o700)
    with FileLock(folder / "start.lock", waiting=waiting):
        cluster = Cluster.prepare(folder, programs, account)
        cluster.initialize(fast=fast)
        socket_folder = _ensure_answers(cluster, fast)
        try:
            _bootstrap(_url(ADMIN, "postgres", _at(socket_folder)), folder)
        except EmbeddedError:
            _stop_unused(cluster, folder)
            raise
        return _used_from_now(folder, socket_folder)


def _used_from_now(folder: Path, socket_folder: Path) -> Embedded:
    """Count this process among the users; whoever calls holds `start.lock`."""
    query, used = _at(socket_folder), FileLock(folder / "users.lock", shared=True)
    return Embedded(
        url=_url(APP, DATABASE, query), owner_url=_url(OWNER, DATABASE, query), folder=folder, _used=used
    )


def _at(socket_folder: Path) -> str:
    return urlencode({"host": str(socket_folder)}, quote_via=quote)


def _ensure_answers(cluster: Cluster, fast: bool) -> Path:
    """Start or join, and come back with the socket's folder once a query was answered.

    It tries again until the deadline: a server may be going down, recovering, or leaving its memory behind.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        server = cluster.running()
        if server is None:
            cluster.start(fast=fast)
        elif server.socket_folder is not None and _answers(server.socket_folder):
            return server.socket_folder
        time.sleep(0.05)
    raise EmbeddedError(
        f"The embedded PostgreSQL did not answer within {DEADLINE_SECONDS} s: see {cluster.log}, "
        "or set DATABASE_URL."
    )


def _answers(socket_folder: Path) -> bool:
    try:
        with psycopg.connect(
            host=str(socket_folder), user=ADMIN, dbname="postgres", connect_timeout=5
        ) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def _stop(embedded: Embedded) -> None:
    with _explained(embedded.folder), FileLock(embedded.folder / "start.lock"):
        embedded._used.release()
        _stop_unused(Cluster.prepare(embedded.folder, find_programs(), server_account()), embedded.folder)


def _stop_unused(cluster: Cluster, folder: Path) -> None:
    if is_free(folder / "users.lock"):
        cluster.stop()


def _url(role: str, database: str, query: str) -> str:
    return f"postgresql://{role}@/{database}?{query}"


def _bootstrap(url: str, folder: Path) -> None:
    """Make the two roles and the database if they are not there: a start may have died half-way."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            ensure_roles(connection)
            ensure_database(connection, DATABASE)
    except psycopg.errors.DiskFull as error:
        raise no_space(folder) from error
    except psycopg.Error as error:
        raise EmbeddedError(
            f"The embedded PostgreSQL in {folder} does not answer ({str(error).splitlines()[0]}): "
            "stop it and start again, or set DATABASE_URL."
        ) from error


def ensure_roles(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the owner, who may make roles, and the app's role, which the owner may hand out."""
    for role, rights in ((OWNER, "LOGIN CREATEROLE"), (APP, "LOGIN")):
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).rowcount:
            with contextlib.suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                connection.execute(sql.SQL("CREATE ROLE {} " + rights).format(sql.Identifier(role)))
    connection.execute(
        sql.SQL("GRANT {} TO {} WITH ADMIN OPTION").format(sql.Identifier(APP), sql.Identifier(OWNER))
    )


def ensure_database(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Make a database that belongs to the owner, if it is not there."""
    if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER))
        )
