"""A server that speaks PostgreSQL's start-up protocol, and is too old, or lets nobody in.

https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

ENCRYPTED = {80877103, 80877104}  # requests for TLS and GSSAPI
TEXT, INTEGER = 25, 23
Column: TypeAlias = tuple[int, list[str]]
"""The type and the values of a result's only column."""


@dataclass(frozen=True)
class OldServer:
    """A PostgreSQL of that version; with `password`, another one than it would take is refused."""

    major: int = 13
    password: str | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            if await self._let_in(reader, writer):
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()

    async def _let_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:
            size, code = struct.unpack("!II", await reader.readexactly(8))
            fields = (await reader.readexactly(size - 8)).split(b"\0")
            if code not in ENCRYPTED:
                break
            writer.write(b"N")
        user = fields[fields.index(b"user") + 1].decode()
        if self.password is not None:
            writer.write(message(b"R", struct.pack("!I", 3)))  # in clear text
            _, given = await receive(reader)
            if given.rstrip(b"\0").decode() != self.password:
                said = f'password authentication failed for user "{user}"'
                writer.write(message(b"E", error("FATAL", "28P01", said)))
                await writer.drain()
                return False
        writer.write(message(b"R", struct.pack("!I", 0)))
        for name, value in {"server_version": f"{self.major}.22", "client_encoding": "UTF8"}.items():
            writer.write(message(b"S", f"{name}\0{value}\0".encode()))
        writer.write(message(b"K", struct.pack("!II", 1, 1)) + message(b"Z", b"I"))
        return True

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        query = ""
        while True:
            kind, body = await receive(reader)
            if kind == b"X":
                return
            if kind in b"QP":
                query = body.strip(b"\0").split(b"\0")[0].decode().lower()
            column = self._column(query)
            writer.write(
                {
                    b"Q": (described(column) if column else b"") + result(column) + message(b"Z", b"I"),
                    b"P": message(b"1", b""),
                    b"B": message(b"2", b""),
                    b"D": described(column),
                    b"E": result(column),
                    b"S": message(b"Z", b"I"),
                }.get(kind, b"")
            )
            await writer.drain()

    def _column(self, query: str) -> Column | None:
        """A query's only column; None for what is no query."""
        if "server_version_num" in query:
            return INTEGER, [str(self.major)]
        if "version()" in query:
            return TEXT, [f"PostgreSQL {self.major}.22 on a machine"]
        if "pg_type" in query:
            return TEXT, []
        return (TEXT, ["on"]) if query.startswith(("select", "show")) else None


def message(kind: bytes, body: bytes) -> bytes:
    """A message as it goes over the wire."""
    return kind + struct.pack("!I", len(body) + 4) + body


async def receive(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next message: its kind and its body."""
    kind = await reader.readexactly(1)
    (size,) = struct.unpack("!I", await reader.readexactly(4))
    return kind, await reader.readexactly(size - 4)


def error(severity: str, code: str, said: str) -> bytes:
    """The body of an ErrorResponse."""
    return (
        b"".join(
            name + value.encode() + b"\0"
            for name, value in ((b"S", severity), (b"V", severity), (b"C", code), (b"M", said))
        )
        + b"\0"
    )


def described(column: Column | None) -> bytes:
    """RowDescription, or NoData."""
    if column is None:
        return message(b"n", b"")
    field = struct.pack("!IHIhih", 0, 0, column[0], -1, -1, 0)
    return message(b"T", struct.pack("!H", 1) + b"major\0" + field)


def result(column: Column | None) -> bytes:
    """The rows, if it was a query, and that it is complete."""
    if column is None:
        return message(b"C", b"SET\0")
    values = [value.encode() for value in column[1]]
    rows = [message(b"D", struct.pack("!HI", 1, len(value)) + value) for value in values]
    return b"".join(rows) + message(b"C", f"SELECT {len(rows)}\0".encode())


@asynccontextmanager
async def running(server: OldServer) -> AsyncIterator[str]:
    """Where it listens: `host:port`."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
