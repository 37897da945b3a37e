"""The connection to PostgreSQL: opening and checking it, one statement on it, hearing its notifications."""

import asyncio
import contextlib
import select
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

from store.ddl import APP_ROLE
from store.errors import (
    DatabaseUnavailable,
    StoreError,
    refuse_old_server,
    refused,
    translated,
    without_secrets,
)
from store.migrate import HEAD, upgrade, wrong_version

CHANNEL = "vistobueno_work"
Row = dict[str, Any]
Params = Mapping[str, Any] | Sequence[Any] | None


_WRITE_IT = "write it as postgresql://user:password@host:5432/database"


def sqlalchemy_url(url: str, *, named_by: str = "DATABASE_URL") -> URL:
    """`url` for SQLAlchemy with psycopg 3; `postgres://` and `postgresql://` mean the same.

    Raises DatabaseUnavailable when it is no PostgreSQL URL; `named_by` is the variable it came from.
    """
    try:
        parsed = make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise DatabaseUnavailable(f"{named_by} is not a URL: {_WRITE_IT}.") from error
    if parsed.drivername.split("+")[0] not in {"postgres", "postgresql"}:
        raise DatabaseUnavailable(
            f"{named_by} begins with {parsed.drivername}://, but vistobueno needs PostgreSQL: {_WRITE_IT}."
        )
    if "@" in (parsed.host or ""):
        raise DatabaseUnavailable(f"{named_by} has a second @: write one of the password as %40.")
    return parsed.set(drivername="postgresql+psycopg")


def libpq_url(url: str) -> str:
    """`url` as libpq and psycopg take it."""
    return sqlalchemy_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _unavailable(url: str, error: BaseException, named_by: str = "DATABASE_URL") -> DatabaseUnavailable:
    shown = sqlalchemy_url(url)
    where = f"PostgreSQL at {shown.host or shown.query.get('host') or 'localhost'}"
    if shown.database:
        where += f" (database {shown.database})"
    reason = without_secrets(str(getattr(error, "orig", None) or error))
    _, answered, said = reason.partition("FATAL:")
    if answered:
        return DatabaseUnavailable(
            f"{where} refused the connection: {said.strip()}. Check {named_by}, and the server."
        )
    for prefix in ("connection failed: ", "connection is bad: "):  # psycopg's own, which say it twice
        reason = reason.removeprefix(prefix)
    return DatabaseUnavailable(
        f"{where} cannot be reached: {reason}. Check {named_by} and that the server is running."
    )


def _is_stale(connection: Any) -> bool:
    """Whether a pooled connection was left busy, or closed by the server: then its socket can be read."""
    if connection.closed or connection.broken:
        return True
    socket = select.poll()  # not select(), which takes no file number above 1,023
    socket.register(connection.fileno(), select.POLLIN)
    try:
        while socket.poll(0):  # first the server's goodbye, then the end of the stream
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
    return not idle or bool(connection.pgconn.status != psycopg.pq.ConnStatus.OK)


class Database:
    """A pool of connections to one database, each in autocommit and under the app's role if there is one."""

    def __init__(self, url: str, engine: AsyncEngine) -> None:
        self.url = url
        self._engine = engine

    @classmethod
    def open(
        cls, url: str, *, pool_size: int = 5, statement_timeout: float = 30.0, wait: float = 10.0
    ) -> "Database":
        """A database that connects when it is first used.

        `statement_timeout` and `wait` (for a connection) are seconds.
        """
        engine = create_async_engine(
            sqlalchemy_url(url),
            isolation_level="AUTOCOMMIT",
            pool_reset_on_return=None,  # in autocommit there is nothing to roll back
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=wait,
            connect_args={"connect_timeout": max(2, int(wait)), "application_name": "vistobueno"},
        )

        def prepare(connection: Any, _record: Any) -> None:
            connection.autocommit = True
            cursor = connection.cursor()
            # psycopg reads no other style of dates, and a role may have one
            cursor.execute(f"SET statement_timeout = {int(statement_timeout * 1000)}; SET datestyle = 'ISO'")
            # not there yet, or not ours to take: readiness says so
            with contextlib.suppress(psycopg.Error):
                cursor.execute(f"SET ROLE {APP_ROLE}")
            cursor.close()

        sa.event.listen(engine.sync_engine, "connect", prepare)
        return cls(url, engine)

    async def close(self) -> None:
        """Give all connections back to the server."""
        await self._engine.dispose()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A live connection from the pool; raises DatabaseUnavailable when none can be had."""
        pooled = await self._take()
        while _is_stale(pooled.driver_connection):
            await greenlet_spawn(pooled.invalidate)
            pooled = await self._take()
        try:
            yield cast("psycopg.AsyncConnection[Any]", pooled.driver_connection)
        finally:
            await greenlet_spawn(pooled.close)

    async def _take(self) -> PoolProxiedConnection:
        # not the engine's own Connection: making and closing one costs as much as a small statement
        try:
            return await self._engine.raw_connection()
        except PoolTimeout as error:
            raise DatabaseUnavailable(
                "All of this process's connections to PostgreSQL are busy: try again in a moment."
            ) from error
        except (DBAPIError, psycopg.Error, OSError) as error:
            raise _unavailable(self.url, error) from error

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """Run one statement, committed by itself, and return its rows as dicts.

        Raises DatabaseUnavailable (nothing was sent), StatementRefused (nothing is recorded) or Unconfirmed.
        """
        async with self.connection() as connection:
            with translated():
                cursor = connection.cursor(row_factory=dict_row)
                await cursor.execute(sql, params)
                return await _rows(cursor)

    async def together(self, *statements: tuple[str, Params]) -> list[list[Row]]:
        """Run statements in one round trip, committed together, and return the rows of each.

        Each sees what those before it did. Raises as `query` does; after an error nothing is recorded.
        """
        async with self.connection() as connection:
            with translated():
                cursors = [connection.cursor(row_factory=dict_row) for _ in statements]
                async with connection.pipeline():
                    for cursor, (sql, params) in zip(cursors, statements, strict=True):
                        await cursor.execute(sql, params)
                return [await _rows(cursor) for cursor in cursors]

    async def one(self, sql: str, params: Params = None) -> Row | None:
        """Like `query`, for a statement that returns at most one row."""
        rows = await self.query(sql, params)
        return rows[0] if rows else None

    async def role(self) -> str:
        """The role this database's statements run under."""
        row = await self.one("SELECT current_user AS role")
        assert row is not None
        return str(row["role"])

    async def check(self) -> None:
        """Raise what keeps this version from working here: DatabaseUnavailable, ServerTooOld, NotMigrated."""
        row = await self.one("SELECT current_setting('server_version_num')::int / 10000 AS major")
        assert row is not None
        refuse_old_server(int(row["major"]))
        found = await self.one("SELECT to_regclass('alembic_version') IS NOT NULL AS there")
        versions = (
            [r["version_num"] for r in await self.query("SELECT version_num FROM alembic_version")]
            if found and found["there"]
            else []
        )
        if versions != [HEAD]:
            raise wrong_version(versions[0] if versions else None)

    @asynccontextmanager
    async def listener(self) -> AsyncIterator["Listener"]:
        """A connection of its own that hears when there may be work."""
        listener = Listener(self.url)
        try:
            yield listener
        finally:
            await listener.close()


async def _rows(cursor: psycopg.AsyncCursor[Row]) -> list[Row]:
    # rownumber is None for a statement without a result; `description` would build every column's
    return [] if cursor.rownumber is None else await cursor.fetchall()


class Listener:
    """Hears the notifications of committed work; heals its connection by itself."""

    def __init__(self, url: str) -> None:
        self._url = libpq_url(url)
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds; True if something may have happened (also after a reconnect)."""
        try:
            if self._connection is None:
                self._connection = await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=5, application_name="vistobueno listener"
                )
                await self._connection.execute(f"LISTEN {CHANNEL}")
                return True
            heard = False
            async for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                heard = True
            return heard
        except psycopg.Error:
            await self.close()
            await asyncio.sleep(min(seconds, 1.0))
            return False

    async def close(self) -> None:
        """Close the connection; the next `wait` opens another."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


async def migrate(owner_url: str, *, named_by: str = "DATABASE_URL") -> None:
    """Bring the database of `owner_url` to this version's tables; safe to run in many processes at once.

    `named_by` is the variable that the URL came from. Raises DatabaseUnavailable, ServerTooOld, NotMigrated
    (it is of a newer version) or StatementRefused.
    """
    try:
        await asyncio.to_thread(upgrade, sqlalchemy_url(owner_url, named_by=named_by))
    except (OperationalError, InterfaceError) as error:
        if getattr(error.orig, "sqlstate", None) is None:
            raise _unavailable(owner_url, error, named_by) from error
        raise _from_driver(error) from error
    except DBAPIError as error:
        raise _from_driver(error) from error
    except psycopg.Error as error:
        raise refused(error) from error


def _from_driver(error: DBAPIError) -> StoreError:
    cause = error.orig
    return refused(cause) if isinstance(cause, psycopg.Error) else StoreError(without_secrets(str(error)))
