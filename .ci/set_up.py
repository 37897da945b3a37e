"""Makes .venv and installs what a lock file names, saying how far it is: `python .ci/set_up.py GOAL`.

The goals are demo, tests and browser. Only the standard library. Two of these in one folder wait for each
other. While packages are written the file `.venv/unfinished` is there: the next start that finds it makes
.venv anew.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

VENV = Path(".venv")
LOCK, UNFINISHED, LOG = VENV / "lock", VENV / "unfinished", VENV / "set-up.log"
PYTHON = VENV / "bin" / "python"
PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
EVERY = 15
"""Where nobody watches: a line for so many packages."""
SILENCE_SECONDS = 0.2

FOUND = re.compile(
    r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)|Processing .*?([^/\s]+?)-[^/\s]+\.whl"
)
FETCHED = re.compile(r" +(?:Downloading|Using cached) .*?([^/\s]+?)-([^-\s]+)-\S+ \((.+)\)")

NO_NETWORK = (
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Connection refused",
    "ConnectTimeout",
    "NameResolutionError",
    "NewConnectionError",
    "ProxyError",
    "ReadTimeout",
    "Read timed out",
    "SSLError",
)


@dataclass(frozen=True)
class Goal:
    """What is to be installed: for what, from which lock file, how much of the disk it takes, its stamp."""

    what: str
    lock: Path
    room: str
    stamp: Path
    newer_than: tuple[Path, ...]

    def reached(self) -> bool:
        """As make reckons it."""
        if not self.stamp.exists():
            return False
        made = self.stamp.stat().st_mtime
        return all(path.stat().st_mtime <= made for path in self.newer_than)


DEMO = Goal(
    "the demo",
    Path("requirements.lock"),
    "325 MB",
    VENV / "ready",
    (Path("requirements.lock"), Path("pyproject.toml")),
)
TESTS = Goal(
    "the tests and checks",
    Path("requirements-dev.lock"),
    "100 MB more",
    VENV / "ready-dev",
    (Path("requirements-dev.lock"), DEMO.stamp),
)
BROWSER = Goal(
    "what plays the page in a browser",
    Path("requirements-browser.lock"),
    "140 MB more",
    VENV / "ready-browser",
    (Path("requirements-browser.lock"), TESTS.stamp),
)
GOALS = {"demo": DEMO, "tests": TESTS, "browser": BROWSER}


class Screen:
    """One line that changes on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = False
        self._next = EVERY

    def say(self, text: str) -> None:
        """A line that stays; what is counted from now on is something else."""
        self._wipe()
        self._next = EVERY
        print(text, file=sys.stderr, flush=True)

    def count(self, done: int, total: int, about: str = "") -> None:
        """How far it is."""
        text = f"  {done} of {total}{about}"
        if self._live:
            self._wipe()
            print(text[: shutil.get_terminal_size().columns - 1], end="", file=sys.stderr, flush=True)
            self._shown = True
        elif done >= self._next:
            print(text, file=sys.stderr, flush=True)
            self._next = done - done % EVERY + EVERY

    def _wipe(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr)
            self._shown = False


def fail(sentence: str) -> NoReturn:
    """End with one sentence."""
    print(sentence, file=sys.stderr)
    sys.exit(1)


@contextmanager
def alone(screen: Screen) -> Iterator[int]:
    """Hold the folder's lock; its descriptor goes to pip, so that it lasts as long as anybody works here."""
    _need_writable()
    VENV.mkdir(exist_ok=True)
    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            screen.say("Another make sets up this folder: waiting for it ...")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _need_writable() -> None:
    for folder in (VENV, Path.cwd()):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            name = "This folder" if folder != VENV else f"{folder} in this folder"
            fail(
                f"{name} cannot be written by {getpass.getuser()}, and packages have to go there: copy the "
                "project to a folder of your own."
            )


def usable() -> bool:
    """Whether the .venv that is here can be built on."""
    check = ["/bin/sh", ".ci/set-up", "check"]
    found = subprocess.run(check, capture_output=True, text=True, check=True)
    return PYTHON.exists() and not found.stdout


def make_venv(screen: Screen) -> None:
    """Make .venv, in the place of one that cannot be used."""
    UNFINISHED.touch()
    if (VENV / "pyvenv.cfg").exists():
        screen.say(
            "The .venv that is here was broken off, moved or made for another Python: it is made anew."
        )
    for path in VENV.iterdir():
        if path not in (LOCK, UNFINISHED):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    screen.say(f"Making .venv with Python {sys.version.split()[0]}")
    base = getattr(sys, "_base_executable", sys.executable)
    made = subprocess.run([base, "-I", "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if made.returncode:
        fail(f"Python could not make .venv: {(made.stdout + made.stderr).strip().splitlines()[-1]}.")
    UNFINISHED.unlink()


class Install:
    """One run of pip on a lock file: how far it is, and what it has said."""

    def __init__(self, screen: Screen, lock: Path) -> None:
        self._screen = screen
        self._lock = lock
        self._total = len(re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==", lock.read_text(), re.MULTILINE))
        self._found: set[str] = set()
        self._to_write = 0
        self._retried = False
        self._there = self._there_before = 0
        self.said: list[str] = []

    def run(self, descriptor: int) -> bool:
        """Install all that the lock file names; whether it went well."""
        arguments = ["--progress-bar=off", "--require-hashes", "--only-binary=:all:"]
        with _pip([*arguments, f"--requirement={self._lock}"], descriptor) as process:
            for line in _lines(process):
                if line is None:
                    self._look()
                else:
                    self.said.append(line)
                    self._hear(line)
        return process.returncode == 0

    def _hear(self, line: str) -> None:
        if line.startswith("Ignoring "):
            self._total -= 1
        elif line.startswith("Installing collected packages"):
            self._begin_writing(line.count(",") + 1)
        elif "Retrying (" in line and not self._retried:
            self._retried = True
            self._screen.say("  The network does not answer: pip tries again for a while ...")
        elif match := FETCHED.match(line):
            self._screen.count(len(self._found), self._total, f": {match[1]} {match[2]}, {match[3]}")
        elif match := FOUND.match(line):
            self._find(match[1] or match[2])

    def _find(self, name: str) -> None:
        self._found.add(name.replace("_", "-").lower())
        self._screen.count(len(self._found), self._total, f": {name}")

    def _begin_writing(self, packages: int) -> None:
        UNFINISHED.touch()
        self._to_write = packages
        self._there = self._there_before = _installed()
        self._screen.say(f"Installing {packages} packages")

    def _look(self) -> None:
        """pip does not tell how far it is with writing: the folders it leaves do."""
        if self._to_write and (there := _installed()) != self._there:
            self._there = there
            self._screen.count(min(there - self._there_before, self._to_write), self._to_write)


def _installed() -> int:
    return sum(1 for _ in VENV.glob("lib/python3*/site-packages/*.dist-info"))


@contextmanager
def _pip(arguments: list[str], descriptor: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run pip; it has ended when the block has."""
    process = subprocess.Popen(
        [*PIP, *arguments],
        env={**os.environ, "PIP_USER": "0"},  # a setting that pip refuses in a .venv
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[descriptor],
    )
    try:
        yield process
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """What it says, line by line; None where it has been silent for a while."""
    assert process.stdout is not None
    out, begun = process.stdout.fileno(), b""
    while True:
        if not select.select([out], [], [], SILENCE_SECONDS)[0]:
            yield None
            continue
        read = os.read(out, 65536)
        *whole, begun = (begun + read).split(b"\n")
        for line in whole if read else filter(None, [begun]):
            yield line.decode(errors="replace")
        if not read:
            return


def why(said: str) -> str:
    """One sentence on what pip could not do."""
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return "There is no space left on the disk: free some and run make again."
    if "DO NOT MATCH THE HASHES" in said:
        return (
            "A package is not the one that the lock file names, so it was not installed: look at pip's index "
            "and cache (`.venv/bin/python -m pip cache purge`) and run make again."
        )
    if any(words in said for words in NO_NETWORK):
        return (
            "The packages could not be fetched, because pip's index does not answer: see to the network "
            "(or to pip's settings, if an index is named there) and run make again."
        )
    if match := re.search(r"No matching distribution found for ([\w.-]+)==(\S+)", said):
        return (
            f"pip's index has no ready-made {match[1]} {match[2]} for Python {sys.version.split()[0]} on "
            "this system: put another Python from 3.11 on first on PATH, run make clean and make again."
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")] or said.splitlines() or ["?"]
    return f"pip could not install the packages ({errors[-1]}): mend that and run make again."


def fail_with(said: list[str]) -> NoReturn:
    """End with why pip failed, and where all it said can be read."""
    LOG.write_text("\n".join(said) + "\n")
    fail(f"{why(LOG.read_text())} What pip said is in {LOG}.")


def set_up(goal: Goal, screen: Screen, descriptor: int) -> None:
    """Reach the goal; whoever calls holds the lock."""
    begun = time.monotonic()
    screen.say(f"Setting up, once: packages for {goal.what} go into .venv ({goal.room}, about a minute).")
    if not usable():
        make_venv(screen)
    install = Install(screen, goal.lock)
    screen.say(f"Fetching what {goal.lock} names")
    if not install.run(descriptor):
        fail_with(install.said)
    UNFINISHED.touch()
    if goal is DEMO:
        screen.say("Installing vistobueno itself")
        with _pip(["--no-deps", "--no-build-isolation", "--editable", "."], descriptor) as process:
            said = [line for line in _lines(process) if line is not None]
        if process.returncode:
            fail_with(said)
        # else the first command does it, which takes longer then
        subprocess.run([str(PYTHON), "-m", "compileall", "-q", "bot", "agent", "store"], check=False)
    goal.stamp.touch()
    UNFINISHED.unlink()
    screen.say(f"Ready after {time.monotonic() - begun:.0f} s.")


def main(name: str) -> None:
    """The command."""
    screen = Screen()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        with alone(screen) as descriptor:
            if not (usable() and GOALS[name].reached()):
                set_up(GOALS[name], screen, descriptor)
    except KeyboardInterrupt:
        screen.say("")
        screen.say("Stopped before it was set up: the next make goes on with what has been fetched.")
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1])
