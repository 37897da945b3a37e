"""Runs the wheel's PostgreSQL programs on one folder: initdb, start, find, heal, stop. Blocking; no SQL.

Layout of a folder: `start.lock` (whoever starts or stops), `users.lock` (shared by all who use it) and
`cluster/`, which belongs to the account the server runs under: `data/`, `postgres.log`, the socket.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from store.wheel import Account, EmbeddedError, closed_above, copy_programs, disk_full, no_space

MAJOR = "18"
DEADLINE_SECONDS = 120
SOCKET = ".s.PGSQL.5432"
# sun_path holds 108 bytes on Linux and 104 on macOS, the closing zero included
SOCKET_PATH_BYTES = 103 if platform.system() == "Darwin" else 107
SOCKET_FOLDER_PREFIX = "vistobueno-"
LOG_BYTES = 10_000_000
ROOM_FOR_A_START_BYTES = 1_000_000
PATIENCE_SECONDS, PATIENCE_ON_A_FULL_DISK_SECONDS = 60, 5
ROOM_FOR_A_CHECKPOINT_BYTES = 16 * 1024**2  # one file of the write-ahead log

DURABLE = {"listen_addresses": "", "port": "5432", "unix_socket_permissions": "0700"}
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "200",
}


@dataclass(frozen=True)
class Postmaster:
    """What `postmaster.pid` says of a server that runs."""

    pid: int
    socket_folder: Path | None
    """None while it is starting."""


@dataclass(frozen=True)
class Cluster:
    """The data of one server; whoever calls holds `start.lock`."""

    folder: Path
    programs: Path
    account: Account | None

    @classmethod
    def prepare(cls, folder: Path, programs: Path, account: Account | None) -> Cluster:
        """Make `folder/cluster` usable by the account, without opening what is above `folder`."""
        cluster = folder / "cluster"
        cluster.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            folder.chmod(0o711)
            closed = closed_above(cluster)
            if closed is not None:
                raise EmbeddedError(
                    f"PostgreSQL does not run as root, and the account {account.name} may not enter "
                    f"{closed}: choose another folder, run as an ordinary user, or set DATABASE_URL."
                )
            os.chown(cluster, account.uid, account.gid)
            if closed_above(programs / "bin" / "postgres") is not None:
                programs = copy_programs(programs)
        return cls(cluster, programs, account)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    def initialize(self, *, fast: bool) -> None:
        """Make the data unless it is there; a death half-way leaves only `data.new`, which is made again."""
        version_file = self.data / "PG_VERSION"
        if version_file.is_file():
            found = version_file.read_text().strip()
            if found != MAJOR:
                raise EmbeddedError(
                    f"{self.data} was made by PostgreSQL {found} and this is {MAJOR}: move it away, "
                    "or set DATABASE_URL."
                )
            return
        shutil.rmtree(self.folder / "data.new", ignore_errors=True)
        self._run(
            "initdb",
            *("--pgdata=data.new", "--username=postgres", "--auth=trust", "--encoding=UTF8"),
            # the same order of words on every machine, whatever locales it has
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *(["--no-sync"] if fast else []),
        )
        (self.folder / "data.new").rename(self.data)

    def running(self) -> Postmaster | None:
        """The server of this data if one runs; clears what a killed one left, which would stop the next."""
        named = self._named()
        if named is None or (named.pid and self._is_ours(named.pid)):
            return named
        self._clear(named.socket_folder)
        return None

    def found(self) -> Postmaster | None:
        """The server of this data if one runs; touches nothing."""
        named = self._named()
        return named if named is not None and named.pid and self._is_ours(named.pid) else None

    def start(self, *, fast: bool) -> bool:
        """Start the server and wait until it is ready; False if it must be tried again.

        That is so while processes of a killed server still hold its shared memory.
        """
        socket_folder = self._socket_folder()
        settings = {**DURABLE, **(FAST if fast else {}), "unix_socket_directories": str(socket_folder)}
        options = shlex.join(f"--{name}={value}" for name, value in settings.items())
        log_began = self._begin_log()
        try:
            self._run(
                "pg_ctl", "start", "--pgdata=data", "--log=postgres.log", "--wait", f"--options={options}"
            )
        except EmbeddedError:
            self._remove_socket(socket_folder)
            said = self._log_since(log_began)
            # a full disk takes no log either
            if disk_full(said) or shutil.disk_usage(self.folder).free < ROOM_FOR_A_START_BYTES:
                raise no_space(self.folder.parent) from None
            if "shared memory block" in said or "lock file" in said:
                return False
            raise
        return True

    def stop(self) -> None:
        """Stop the server if it runs, at once if it does not go in time, and leave no socket behind.

        On a full disk it would try for ever to write its last checkpoint: there it is soon stopped without,
        and the next start makes up for it from the log.
        """
        server = self.running()
        if server is None:
            return
        has_room = shutil.disk_usage(self.folder).free >= ROOM_FOR_A_CHECKPOINT_BYTES
        try:
            self._stop("fast", PATIENCE_SECONDS if has_room else PATIENCE_ON_A_FULL_DISK_SECONDS)
        except EmbeddedError:
            if self.running() is not None:
                self._stop("immediate", PATIENCE_SECONDS)
        self._clear(server.socket_folder)

    def _stop(self, mode: str, seconds: int) -> None:
        self._run("pg_ctl", "stop", "--pgdata=data", "--wait", f"--timeout={seconds}", f"--mode={mode}")

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program in the cluster's folder, under its account and in an environment without PG*.

        Paths are relative, because pg_ctl puts them between double quotes into a shell's command.
        """
        try:
            result = subprocess.run(
                [str(self.programs / "bin" / program), *arguments],
                cwd=self.folder,
                env={
                    "PATH": os.defpath,
                    "LC_ALL": "C",
                    "TMPDIR": str(self.folder),
                    "PGCTLTIMEOUT": str(PATIENCE_SECONDS),
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=DEADLINE_SECONDS,
                umask=0o077,
                start_new_session=True,  # Ctrl-C is for this process, which then stops the server in order
                user=None if self.account is None else self.account.uid,
                group=None if self.account is None else self.account.gid,
                extra_groups=None if self.account is None else [],
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedError(
                f"The embedded PostgreSQL did not finish {program} in {DEADLINE_SECONDS} s: see {self.log}, "
                "or set DATABASE_URL."
            ) from error
        if result.returncode:
            said = (result.stderr.strip() or result.stdout.strip()).splitlines() or ["no message"]
            if disk_full(result.stderr):
                raise no_space(self.folder.parent)
            raise EmbeddedError(
                f"The embedded PostgreSQL could not be used ({program}: {said[-1]}): see {self.log}, "
                "or set DATABASE_URL."
            )

    def _socket_folder(self) -> Path:
        """The cluster's folder if a socket's path may be that long and plain, else a short one of its own."""
        if _socket_fits(self.folder):
            return self.folder
        for place in (tempfile.gettempdir(), "/tmp"):
            if _socket_fits(Path(place) / f"{SOCKET_FOLDER_PREFIX}12345678") and (
                self.account is None or closed_above(Path(place) / "x") is None
            ):
                made = Path(tempfile.mkdtemp(prefix=SOCKET_FOLDER_PREFIX, dir=place))
                if self.account is not None:
                    os.chown(made, self.account.uid, self.account.gid)
                return made
        raise EmbeddedError("No folder is short enough for the database's socket: set TMPDIR to a short one.")

    def _named(self) -> Postmaster | None:
        """What `postmaster.pid` names, running or not; its pid is 0 where it names none."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        pid = int(lines[0]) if lines and lines[0].isdigit() else 0
        return Postmaster(pid, Path(lines[4]) if len(lines) > 4 and lines[4] else None)

    def _is_ours(self, pid: int) -> bool:
        """Whether that process is the server of this data: the number may have gone to another since."""
        if platform.system() == "Linux":
            try:
                return Path(f"/proc/{pid}/cwd").readlink() == self.data  # the server works in its data
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                return False
        command = ["ps", "-o", "command=", "-p", str(pid)]
        return "postgres" in subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def _clear(self, socket_folder: Path | None) -> None:
        """Remove what names a server that is gone."""
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        if socket_folder is not None:
            self._remove_socket(socket_folder)

    def _remove_socket(self, socket_folder: Path) -> None:
        for name in (SOCKET, f"{SOCKET}.lock"):
            (socket_folder / name).unlink(missing_ok=True)
        if socket_folder != self.folder and socket_folder.name.startswith(SOCKET_FOLDER_PREFIX):
            with contextlib.suppress(FileNotFoundError):
                socket_folder.rmdir()

    def _begin_log(self) -> int:
        """Where the log of the next start begins; a log that has grown long begins anew."""
        size = self.log.stat().st_size if self.log.exists() else 0
        if size > LOG_BYTES:
            self.log.unlink()
            return 0
        return size

    def _log_since(self, began: int) -> str:
        return self.log.read_bytes()[began:].decode(errors="replace") if self.log.exists() else ""


def _socket_fits(folder: Path) -> bool:
    """Whether a socket in that folder can be bound and named: a comma would end its name in libpq's list."""
    text = str(folder)
    short = len(os.fsencode(folder / SOCKET)) <= SOCKET_PATH_BYTES
    return short and text.isprintable() and not set(text) & set(',"')
