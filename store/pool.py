"""A process's connections to PostgreSQL: made when they are needed, lent to one caller at a time, kept."""

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg

from store.errors import DatabaseUnavailable
from store.patience import Connection


class Pool:
    """At most `size` connections; the one given back last is lent first, because its server is awake.

    One that comes back broken takes the idle ones with it. What befell it may have befallen them, and where a
    network swallows what is sent, each would have to be tried for seconds to find out.

    Our own, because this is all that is needed of one, and a short statement costs less than what the pools
    of SQLAlchemy and psycopg put around it (docs/decisions/0015).
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], *, size: int, wait: float) -> None:
        """`connect` makes one; `wait` is for how many seconds a caller waits for one to come back."""
        self._connect = connect
        self._room = asyncio.Semaphore(size)
        self._wait = wait
        self._closed = False
        self.idle: list[Connection] = []
        self.lent = 0

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """A live connection, idle and in no transaction.

        Raises DatabaseUnavailable when all stay lent, and what `connect` raises.
        """
        connection = await self.take()
        try:
            yield connection
        finally:
            await self.give_back(connection)

    async def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        self._closed = True
        await self._close_idle()

    async def take(self) -> Connection:
        """What `lend` begins with, for who cannot afford a block; raises the same."""
        await self._enter()
        self.lent += 1
        try:
            return await self._live()
        except BaseException:
            self._leave()
            raise

    async def give_back(self, connection: Connection) -> None:
        """What `lend` ends with: must follow `take`, whatever comes between."""
        try:
            if self._closed:
                await connection.close()
            elif connection.closed:
                await connection.close()  # what is broken still has its file
                await self._close_idle()
            else:
                self.idle.append(connection)
        finally:
            self._leave()

    async def _close_idle(self) -> None:
        while self.idle:
            await self.idle.pop().close()

    async def _enter(self) -> None:
        if not self._room.locked():  # then it does not wait
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(self._wait):
                await self._room.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable(
                "All of this process's connections to PostgreSQL are busy: try again in a moment."
            ) from error

    def _leave(self) -> None:
        self.lent -= 1
        self._room.release()

    async def _live(self) -> Connection:
        while self.idle:
            connection = self.idle.pop()
            if not is_stale(connection):
                return connection
            await connection.close()
        return await self._connect()


def is_stale(connection: Connection) -> bool:
    """Whether a connection was left busy, or closed by the server: then its socket can be read."""
    if connection.closed or connection.broken:
        return True
    socket = select.poll()  # not select(), which takes no file number above 1,023
    socket.register(connection.pgconn.socket, select.POLLIN)
    try:
        while socket.poll(0):  # first the server's goodbye, then the end of the stream
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    idle = connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
    return not idle or bool(connection.pgconn.status != psycopg.pq.ConnStatus.OK)
