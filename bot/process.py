"""Running the wired app as a process: a socket, a worker, and a clean end on SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import structlog
import uvicorn

if TYPE_CHECKING:  # what the app is made of takes a second to load, and the demo serves without it
    from starlette.types import ASGIApp

    from bot.app import App

log = structlog.get_logger(__name__)

STOPPING_SECONDS = 3  # for requests that are being answered
DRAIN_SECONDS = 6.0  # for what was left to be done after answers; both are less than the worker's 10 s


Announce = Callable[[], None]


def _nothing() -> None:
    """Announce nothing."""


class PortTaken(Exception):
    """Nothing can listen on that port; the text says what to do."""


class WorkerEnded(Exception):
    """The worker ended without being asked to: the process must be started again."""


def listen(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises PortTaken."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            why = "is in use" if error.errno == errno.EADDRINUSE else "is not allowed for this user"
            raise PortTaken(
                f"Port {port} {why}: stop what listens there, or choose another one "
                "(PORT, or --port of the demo)."
            ) from error
        raise PortTaken(
            f"{host} cannot be listened on ({error.strerror}): give an address of this machine with --host."
        ) from error
    return listening


async def run(
    app: App, *, listening: socket.socket | None, work: bool, announce: Announce = _nothing
) -> None:
    """Serve HTTP on `listening`, and Socket Mode; with `work`, do the agent's work; until a signal says stop.

    `announce` is called once HTTP requests are answered.
    Raises WorkerEnded when the worker gives up, as it does when user code holds it up.
    """
    stop = asyncio.Event()
    with stopped_by_signals(stop):
        async with asyncio.TaskGroup() as parts:
            if listening is not None and app.http is not None:
                parts.create_task(_serve(app, app.http, listening, stop, announce))
            if work:
                parts.create_task(_work(app, stop))


async def serve(
    http: ASGIApp, listening: socket.socket, stop: asyncio.Event, announce: Announce = _nothing
) -> None:
    """Serve an HTTP app until `stop` is set; then no new connection, and a few seconds for open ones."""
    config = uvicorn.Config(
        http,
        access_log=False,
        log_config=None,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=STOPPING_SECONDS,
    )
    server = _Server(config, announce)
    ending = asyncio.create_task(_end(server, stop))
    try:
        await server.serve(sockets=[listening])
    finally:
        ending.cancel()


async def _serve(
    app: App, http: ASGIApp, listening: socket.socket, stop: asyncio.Event, announce: Announce
) -> None:
    async with asyncio.TaskGroup() as inlets:
        inlets.create_task(serve(http, listening, stop, announce))
        if app.socket_mode is not None:
            inlets.create_task(app.socket_mode.serve(stop))
    await app.bot.tasks.drain(DRAIN_SECONDS)


class _Server(uvicorn.Server):
    """uvicorn that says when it answers, and whose end is asked for by an event.

    Its own signal handlers would end the process before the worker has put its work down.
    """

    def __init__(self, config: uvicorn.Config, announce: Announce) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _end(server: uvicorn.Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


async def _work(app: App, stop: asyncio.Event) -> None:
    await app.worker.run(stop)
    if not stop.is_set():
        stop.set()
        raise WorkerEnded("The worker stopped, because a tool held it up: start the process again.")


@contextlib.contextmanager
def stopped_by_signals(stop: asyncio.Event) -> Iterator[None]:
    """While open, SIGTERM, SIGINT and a closed terminal set `stop`; a second one ends the process at once.

    Under `nohup` a closed terminal stays without effect.
    """
    loop = asyncio.get_running_loop()
    names = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        names.append(signal.SIGHUP)

    def ask() -> None:
        stop.set()
        for name in names:
            loop.remove_signal_handler(name)

    for name in names:
        loop.add_signal_handler(name, ask)
    try:
        yield
    finally:
        for name in names:
            loop.remove_signal_handler(name)
