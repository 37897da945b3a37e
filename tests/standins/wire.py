"""A TCP proxy in front of a database, which can lose what is on its way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

CHUNK = 65536


@dataclass
class Wire:
    """Passes bytes on, both ways.

    While `loses` says yes to what a client sends, that is passed on, and the connection is cut instead of
    the answer: what was sent is done, and who sent it does not hear of it. `lost` counts that.
    """

    host: str
    port: int
    loses: Callable[[bytes], bool] = lambda sent: False
    lost: int = 0
    listens_on: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Cut all connections now."""
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            from_server, to_server = await asyncio.open_connection(self.host, self.port)
        except OSError:
            writer.transport.abort()
            return
        doomed = asyncio.Event()
        both = {writer, to_server}
        self._open |= both
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._there(reader, to_server, doomed))
                ways.create_task(self._back(from_server, writer, doomed))
        finally:
            self._open -= both
            for end in both:
                end.transport.abort()

    async def _there(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
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
                if doomed.is_set():
                    self.lost += 1
                    writer.transport.abort()
                    break
                writer.write(data)
                await writer.drain()
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
