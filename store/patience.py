"""A limit of our own on an answer: a network may swallow what is sent and say nothing, for ever.

The server's own limit on a statement does not help where its answer, or the statement, does not get through.
"""

import asyncio
import contextlib
import os
import socket
from types import TracebackType
from typing import Any, TypeAlias

import psycopg

Connection: TypeAlias = "psycopg.AsyncConnection[Any]"


class Patience:
    """A block whose statements are answered within so many seconds, or their connection is cut off.

    Then psycopg.OperationalError is raised, as if the network had cut it. Nothing is cancelled: that would
    ask the server first, and wait for it for up to ten seconds more.
    """

    __slots__ = ("_connection", "_ended", "_seconds", "_timer")

    def __init__(self, connection: Connection, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._ended = False

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._ended and isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            raise psycopg.OperationalError(f"no answer within {self._seconds:g} s") from error

    def _end(self) -> None:
        self._ended = True
        cut_off(self._connection)


def cut_off(connection: Connection) -> None:
    """Let whoever waits for an answer on a connection hear now that there is none; who lent it closes it.

    Its file stays open until then: a new connection could get the same number while the loop watches it.
    """
    with (
        contextlib.suppress(psycopg.OperationalError, OSError),  # it is gone already
        socket.socket(fileno=os.dup(connection.pgconn.socket)) as same,
    ):
        same.shutdown(socket.SHUT_RDWR)
