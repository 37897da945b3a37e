"""The connection to PostgreSQL: opening and checking it, one statement on it, hearing its notifications."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString

import psycopg
import sqlalchemy as sa
from psycopg import errors as pg
from psycopg.rows import dict_row
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from store.ddl import APP_ROLE
from store.errors import (
    ANOTHER_USER,
    DatabaseUnavailable,
    NoRight,
    StoreError,
    refuse_encoding,
    refuse_old_server,
    refused,
    translated,
    without_secrets,
)
from store.migrate import HEAD, NOTED, of_another_application, upgrade, wrong_version
from store.patience import Connection, Patience
from store.pool import Pool
from store.session import ENCODING, NETWORK, SESSION

CHANNEL = "vistobueno_work"
ON_THE_WAY_SECONDS = 1.0
"""How much longer than the server may take for a statement its answer is waited for."""
SIGN_OF_LIFE_SECONDS = 2.0

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


def network_options(url: str) -> dict[str, Any]:
    """What libpq is told about connections over a network, unless `url` says it itself."""
    said = sqlalchemy_url(url).query
    return {name: value for name, value in NETWORK.items() if name not in said}


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


class Database:
    """Connections to one database, each in autocommit and under the app's role if there is one."""

    def __init__(self, url: str, pool: Pool, patience: float) -> None:
        """`patience` is for how many seconds a statement's answer is waited for."""
        self.url = url
        self.pool = pool
        self._patience = patience

    @classmethod
    def open(
        cls, url: str, *, pool_size: int = 5, statement_timeout: float = 30.0, wait: float = 10.0
    ) -> "Database":
        """A database that connects when it is first used.

        `statement_timeout` and `wait` (for a connection) are seconds. An answer is waited for a little longer
        than the server may take.
        """
        to_connect = max(2, int(wait))
        target, network = libpq_url(url), network_options(url)
        settings = f"SET statement_timeout = {int(statement_timeout * 1000)}; {SESSION}"

        async def connect() -> Connection:
            try:
                connection = await psycopg.AsyncConnection.connect(
                    target,
                    autocommit=True,
                    connect_timeout=to_connect,
                    application_name="vistobueno",
                    row_factory=dict_row,
                    client_encoding=ENCODING,
                    **network,
                )
                async with _closed_on_error(connection):
                    with Patience(connection, to_connect):
                        await _set_up(connection, settings)
            except (psycopg.Error, OSError) as error:
                raise _unavailable(url, error) from error
            return connection

        return cls(url, Pool(connect, size=pool_size, wait=wait), statement_timeout + ON_THE_WAY_SECONDS)

    def within(self, seconds: float) -> "Database":
        """This database with the same connections, for what does not wait for an answer as long.

        A statement that is given up on is Unconfirmed, and the server may still carry it out.
        """
        return Database(self.url, self.pool, min(seconds, self._patience))

    async def identity(self) -> tuple[int, datetime]:
        """What no other database has at the same time: its number, and when its server began."""
        row = await self.one(
            "SELECT oid::bigint AS number, pg_postmaster_start_time() AS began"
            " FROM pg_database WHERE datname = current_database()"
        )
        assert row is not None
        return row["number"], row["began"]

    async def close(self) -> None:
        """Give all connections back to the server."""
        await self.pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A live connection for one caller; raises DatabaseUnavailable when none can be had."""
        async with self.pool.lend() as connection:
            yield connection

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """Run one statement, committed by itself, and return its rows as dicts.

        Raises DatabaseUnavailable (nothing was sent), StatementRefused (nothing is recorded) or Unconfirmed.
        """
        connection = await self.pool.take()
        try:
            with Patience(connection, self._patience):
                return await _rows(await connection.execute(sql, params))
        except psycopg.Error as error:
            raise refused(error) from error
        finally:
            await self.pool.give_back(connection)

    async def together(self, *statements: tuple[str, Params]) -> list[list[Row]]:
        """Run statements in one round trip, committed together, and return the rows of each.

        Each sees what those before it did. Raises as `query` does; after an error nothing is recorded.
        """
        async with self.pool.lend() as connection:
            with translated(), Patience(connection, self._patience):
                cursors = [connection.cursor() for _ in statements]
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

    async def server_version(self) -> str:
        """The server's version as it names it, like "18.1"."""
        row = await self.one("SELECT current_setting('server_version') AS version")
        assert row is not None
        return str(row["version"])

    async def now(self) -> datetime:
        """The time by the database's clock, which every deadline follows."""
        row = await self.one("SELECT house_now() AS now")
        assert row is not None
        now: datetime = row["now"]
        return now

    async def check(self) -> None:
        """Raise what keeps this version from working here.

        DatabaseUnavailable, UnfitServer, NotMigrated, or NoRight.
        """
        row = await self.one("SELECT current_setting('server_version_num')::int / 10000 AS major")
        assert row is not None
        refuse_old_server(int(row["major"]))
        row = await self.one(f"SELECT current_setting('server_encoding') AS encoding, {NOTED}")
        assert row is not None
        refuse_encoding(row["encoding"])
        if row["of_others"]:  # and perhaps not to be read
            raise of_another_application()
        versions = (
            [r["version_num"] for r in await self.query("SELECT version_num FROM alembic_version")]
            if row["there"]
            else []
        )
        if versions != [HEAD]:
            raise wrong_version(versions)
        found = await self.one(
            "SELECT current_user AS role, has_table_privilege('calls', 'UPDATE')"
            " AND has_table_privilege('notices', 'INSERT') AS may_write"
        )
        if found and not found["may_write"]:
            raise NoRight(f"The role {found['role']} may not write the app's tables: {ANOTHER_USER}")

    @asynccontextmanager
    async def listener(self) -> AsyncIterator["Listener"]:
        """A connection of its own that hears when there may be work."""
        listener = Listener(self.url)
        try:
            yield listener
        finally:
            await listener.close()


@asynccontextmanager
async def _closed_on_error(connection: Connection) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as cleanup:
        cleanup.push_async_callback(connection.close)
        yield
        cleanup.pop_all()


async def _set_up(connection: Connection, settings: str) -> None:
    await connection.execute(settings)
    # not there yet, or not ours to take: readiness says so
    with contextlib.suppress(pg.InvalidParameterValue, pg.InsufficientPrivilege):
        await connection.execute(f"SET ROLE {APP_ROLE}")


async def _rows(cursor: psycopg.AsyncCursor[Row]) -> list[Row]:
    # rownumber is None for a statement without a result; `description` would build every column's
    return [] if cursor.rownumber is None else await cursor.fetchall()


class Listener:
    """Hears the notifications of committed work; heals its connection by itself."""

    def __init__(self, url: str) -> None:
        self._url = libpq_url(url)
        self._network = network_options(url)
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds; True if something may have happened (also after a reconnect).

        When nothing is heard the server is asked for a sign of life, which may take two seconds more.
        """
        try:
            if self._connection is None:
                self._connection = await self._connect()
                await self._ask(self._connection, f"LISTEN {CHANNEL}")
                return True
            heard = False
            async for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                heard = True
            if not heard:
                await self._ask(self._connection, "SELECT")
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

    async def _connect(self) -> Connection:
        return await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=5,
            application_name="vistobueno listener",
            **self._network,
        )

    @staticmethod
    async def _ask(connection: Connection, statement: LiteralString) -> None:
        with Patience(connection, SIGN_OF_LIFE_SECONDS):
            await connection.execute(statement)


async def migrate(owner_url: str, *, named_by: str = "DATABASE_URL") -> None:
    """Bring the database of `owner_url` to this version's tables; safe to run in many processes at once.

    `named_by` is the variable that the URL came from. Raises DatabaseUnavailable, UnfitServer, NotMigrated
    (it is of a newer version, or another application's) or StatementRefused.
    """
    try:
        url = sqlalchemy_url(owner_url, named_by=named_by)
        await asyncio.to_thread(upgrade, url, network_options(owner_url))
    except (OperationalError, InterfaceError) as error:
        if getattr(error.orig, "sqlstate", None) is None:
            raise _unavailable(owner_url, error, named_by) from error
        raise _from_driver(error) from error
    except DBAPIError as error:
        raise _from_driver(error) from error
    except psycopg.Error as error:
        raise _refused_to_owner(error) from error


def _from_driver(error: DBAPIError) -> StoreError:
    cause = error.orig
    if isinstance(cause, psycopg.Error):
        return _refused_to_owner(cause)
    return StoreError(without_secrets(str(error)))


def _refused_to_owner(error: psycopg.Error) -> StoreError:
    if isinstance(error, pg.InsufficientPrivilege):
        what = f"The database's user may not migrate it ({without_secrets(str(error))})"
        return NoRight(
            f"{what}: connect as the owner of the database, in DATABASE_OWNER_URL.", error.sqlstate
        )
    return refused(error)
