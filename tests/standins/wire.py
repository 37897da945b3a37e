"""A TCP proxy in front of a database, which can lose what is on its way, and forget who is connected."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

CHUNK = 65536


@dataclass
class Wire:
    """Passes bytes on, both ways.

    While `loses` says yes to what a client sends, that is passed on, and the connection is cut instead of
    the answer: what was sent is done, and who sent it does not hear of it. `lost` counts that.
    `host` is a folder where the server has a socket in one; `made` counts connections.
    """

    host: str
    port: int
    loses: Callable[[bytes], bool] = lambda sent: False
    lost: int = 0
    made: int = 0
    listens_on: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _forgotten: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Cut all connections now."""
        for writer in list(self._open):
            writer.transport.abort()

    def forget(self) -> None:
        """As a firewall that restarts: nothing gets through any more where something is connected now.

        Neither end hears of it, and new connections work.
        """
        self._forgotten |= self._open

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            from_server, to_server = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        self.made += 1
        doomed = asyncio.Event()
        both = {writer, to_server}
        self._open |= both
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._there(reader, to_server, doomed))
                ways.create_task(self._back(from_server, writer, doomed))
        finally:
            self._open -= both
            self._forgotten -= both
            for end in both:
                end.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self.host}/.s.PGSQL.{self.port}")
        return await asyncio.open_connection(self.host, self.port)

    async def _there(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                if writer in self._forgotten:
                    continue
                if self.loses(data):
                    doomed.set()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                if writer in self._forgotten:
                    continue
                if doomed.is_set():
                    self.lost += 1
                    writer.transport.abort()
                    break
                writer.write(data)
                await writer.drain()
        if writer not in self._forgotten:
            writer.transport.abort()


@asynccontextmanager
async def wire_to(host: str, port: int) -> AsyncIterator[Wire]:
    """A wire on a free port of the loopback."""
    wire = Wire(host, port)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.listens_on = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        wire.cut()


@asynccontextmanager
async def wire_before(url: str) -> AsyncIterator[tuple[Wire, str]]:
    """A wire to the server of a database's URL, and the URL that leads through it."""
    known, parsed = conninfo_to_dict(url), make_url(url)
    query = {name: value for name, value in parsed.query.items() if name not in {"host", "port"}}
    async with wire_to(str(known["host"]), int(known.get("port") or 5432)) as wire:
        through = parsed.set(host="127.0.0.1", port=wire.listens_on, query=query)
        yield wire, through.render_as_string(hide_password=False)
