"""A PostgreSQL of a test's own, at an address that stays, which can be killed like a machine."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from store import embedded
from store.wheel import closed_above, copy_programs, find_programs, server_account

START_SECONDS = 60.0
DEBIAN = Path("/usr/lib/postgresql/15")
"""Debian's PostgreSQL 15, as another than the wheel's 18."""


@dataclass
class OwnServer:
    """Runs on a free port of the loopback until it is stopped or killed; starts again on the same data."""

    folder: Path
    programs: Path
    account: str | None
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For the app."""
        return self._url(embedded.APP, embedded.DATABASE)

    @property
    def owner_url(self) -> str:
        """For migrations."""
        return self._url(embedded.OWNER, embedded.DATABASE)

    @property
    def admin_url(self) -> str:
        """As the superuser, in the app's database."""
        return self._url(embedded.ADMIN, embedded.DATABASE)

    @property
    def runs(self) -> bool:
        """Whether it is there; it may have stopped by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    async def start(self) -> None:
        """Start it, and wait until it has recovered and answers; raises TimeoutError with its log."""
        await asyncio.to_thread(self._start)

    async def kill(self) -> None:
        """End every process of it at once with SIGKILL: what only its memory knew is lost."""
        await asyncio.to_thread(self._kill)

    async def stop(self) -> None:
        """Stop it at once; unlike a killed one it takes its shared memory with it."""
        await asyncio.to_thread(self._stop)

    def initialize(self) -> None:
        """Make the data, the two roles and the database; the server runs afterwards."""
        self._run("initdb", "-D", "data", "-U", embedded.ADMIN, "-A", "trust", "-E", "UTF8", "--locale=C")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._start()
        with psycopg.connect(self._url(embedded.ADMIN, "postgres"), autocommit=True) as connection:
            embedded.ensure_roles(connection)
            embedded.ensure_database(connection, embedded.DATABASE)

    def _start(self) -> None:
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            **self.settings,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self.programs / "bin" / "postgres"),
                    *("-D", str(self.data)),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._surroundings(),
            )
        self._answers(self._process)

    def _answers(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with psycopg.connect(self._url(embedded.ADMIN, "postgres"), connect_timeout=5):
                    return
            except psycopg.OperationalError:  # it recovers
                time.sleep(0.05)
        raise TimeoutError(f"PostgreSQL does not answer:\n{self.log.read_text(errors='replace')[-2000:]}")

    def _kill(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        children = _children(process.pid)
        for pid in (process.pid, *children):
            _end(pid)
        process.wait()
        deadline = time.monotonic() + START_SECONDS
        while any(_is_there(pid) for pid in children):
            assert time.monotonic() < deadline, children
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # the number may go to another process

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # "immediate"
            self._process.wait(START_SECONDS)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / "bin" / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, **self._surroundings())

    def _surroundings(self) -> "dict[str, object]":
        own = {"user": self.account, "group": self.account, "extra_groups": []} if self.account else {}
        return {
            "cwd": self.folder,
            "env": {"PATH": os.defpath, "LC_ALL": "C", "TMPDIR": str(self.folder)},
            "umask": 0o077,
            "start_new_session": True,
            **own,
        }

    def _url(self, role: str, database: str) -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"


@asynccontextmanager
async def own_server(
    *, debian: bool = False, folder: Path | None = None, **settings: str
) -> AsyncIterator[OwnServer]:
    """A durable server with an empty database: the wheel's, or Debian's; removed with its data on leaving.

    `settings` are PostgreSQL's. The data is in `folder` if that is given, else in a temporary one.
    """
    place = Path(tempfile.mkdtemp(prefix="vistobueno-test-server-")) if folder is None else folder
    try:
        server = _prepared(place, settings, debian=debian)
        await asyncio.to_thread(server.initialize)
        try:
            yield server
        finally:
            await server.stop()
    finally:
        if folder is None:
            shutil.rmtree(place)


def _prepared(folder: Path, settings: Mapping[str, str], *, debian: bool) -> OwnServer:
    account = server_account()
    name = account.name if account else None
    if debian:
        return _owned(OwnServer(folder, DEBIAN, "postgres" if account else None, settings))
    programs = find_programs()
    if account is not None and closed_above(programs / "bin" / "postgres") is not None:
        programs = copy_programs(programs)
    return _owned(OwnServer(folder, programs, name, settings))


def _owned(server: OwnServer) -> OwnServer:
    if server.account is not None:
        entry = pwd.getpwnam(server.account)
        os.chown(server.folder, entry.pw_uid, entry.pw_gid)
    return server


def _children(pid: int) -> list[int]:
    """The processes it has begun; none where the system does not say, and then they end by themselves."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
        os.kill(pid, signal.SIGKILL)


def _is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody waits for an orphan where no init does
