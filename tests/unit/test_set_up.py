"""What `make` says and does before the first command: a .venv is made, goes stale, is made anew."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
REQUIREMENTS = "".join(f"package{number}==1.0 --hash=sha256:{'0' * 64}\n" for number in range(20))
SAID = "".join(
    f"Collecting package{number}==1.0 (from -r requirements.lock (line 1))\n" for number in range(20)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the Makefile, what it calls, and a small lock file; its path is no plain word."""
    made = tmp_path / "a folder, añadida"
    shutil.copytree(ROOT / ".ci", made / ".ci")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, made)
    (made / "requirements.lock").write_text(REQUIREMENTS, encoding="utf-8")
    return made


def run(folder: Path, *command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command in the folder, as if no other make had started these tests."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environ |= {} if path is None else {"PATH": path}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def begin_make(folder: Path) -> subprocess.Popen[str]:
    """`make demo`, still running."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        ["make", "demo"], cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def read_until(make: subprocess.Popen[str], words: str) -> None:
    """Read what it says, up to the line with these words."""
    assert make.stderr is not None
    assert any(words in line for line in iter(make.stderr.readline, ""))


def script(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def put_venv(folder: Path, *, says: str = SAID, pip: str = "exit 0") -> None:
    """A .venv as it would be, but with a pip that says this and then does that."""
    venv = folder / ".venv"
    (venv / "lib" / f"python{VERSION}" / "site-packages").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text(f"command = /usr/bin/python3 -m venv {venv}\n", encoding="utf-8")
    (venv / "said").write_text(says, encoding="utf-8")
    script(
        venv / "bin" / "python",
        f'case "$*" in -ISc*) echo {VERSION};; *editable*) ;; *pip*) cat .venv/said; {pip};; esac',
    )
    script(venv / "bin" / "vistobueno", 'echo "this is the demo"')


def test_without_a_new_enough_python_one_sentence_says_so(folder: Path) -> None:
    script(folder / "bin" / "python3", "exit 1")
    made = run(folder, "/bin/sh", ".ci/set-up", "demo", path=str(folder / "bin"))
    assert made.returncode == 1
    assert made.stderr.splitlines() == [
        "Python 3.11 or newer is needed and was not found on PATH: install it and run make again."
    ]


def test_a_python_without_venv_gets_the_name_of_debians_package(folder: Path) -> None:
    script(
        folder / "bin" / "python3", 'case "$*" in *ensurepip*) exit 1;; -V) echo Python 3.11.2;; esac; exit 0'
    )
    made = run(folder, "/bin/sh", ".ci/set-up", "demo", path=str(folder / "bin"))
    assert made.returncode == 1
    assert made.stderr.startswith("Python 3.11.2 is here without its venv module: install that")
    assert "apt install python3-venv" in made.stderr
    assert not (folder / ".venv").exists()


def test_set_up_tells_how_far_it_is_and_the_second_start_says_nothing_of_it(folder: Path) -> None:
    put_venv(folder, says=f"{SAID}Installing collected packages: {', '.join('abcdefgh')}\n")
    first, second = run(folder, "make", "demo"), run(folder, "make", "demo")
    assert first.stdout == second.stdout == "this is the demo\n"
    assert first.stderr.splitlines()[:-1] == [
        "Setting up, once: packages for the demo go into .venv (325 MB, about a minute).",
        "Fetching what requirements.lock names",
        "  15 of 20: package14",
        "Installing 8 packages",
        "Installing vistobueno itself",
    ]
    assert first.stderr.splitlines()[-1].startswith("Ready after ")
    assert second.stderr == ""


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "WARNING: Retrying (Retry(total=0)): Failed to establish a new connection\n"
            "ERROR: No matching distribution found for babel==2.19.0\n",
            "The packages could not be fetched, because pip's index does not answer: see to the network",
        ),
        (
            "ERROR: No matching distribution found for babel==2.19.0\n",
            "pip's index has no ready-made babel 2.19.0 for Python ",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "There is no space left on the disk: free some and run make again.",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    babel:\n",
            "A package is not the one that the lock file names, so it was not installed",
        ),
        ("ERROR: Something else\n", "pip could not install the packages (ERROR: Something else): mend that"),
    ],
)
def test_a_pip_that_fails_is_explained_in_one_sentence(folder: Path, said: str, sentence: str) -> None:
    put_venv(folder, says=said, pip="exit 1")
    made = run(folder, "make", "demo")
    assert made.returncode != 0
    lines = [line for line in made.stderr.splitlines() if not line.startswith("  ")]
    assert lines[2].startswith(sentence)
    assert lines[2].endswith("What pip said is in .venv/set-up.log.")
    assert lines[3:] and all(line.startswith("make") for line in lines[3:])
    assert (folder / ".venv" / "set-up.log").read_text(encoding="utf-8") == said
    assert not (folder / ".venv" / "ready").exists()


def broken_off(folder: Path) -> Path:
    (folder / ".venv" / "unfinished").touch()
    return folder


def moved(folder: Path) -> Path:
    return folder.rename(folder.with_name("moved"))


def copied(folder: Path) -> Path:
    return Path(shutil.copytree(folder, folder.with_name("copied"), symlinks=True))


def for_another_python(folder: Path) -> Path:
    library = folder / ".venv" / "lib"
    (library / f"python{VERSION}").rename(library / "python3.10")
    return folder


def without_its_python(folder: Path) -> Path:
    python = folder / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    return folder


CHANGES = [broken_off, moved, copied, for_another_python, without_its_python]


@pytest.mark.parametrize("change", CHANGES)
def test_a_venv_that_can_no_longer_be_used_is_stale(folder: Path, change: Callable[[Path], Path]) -> None:
    put_venv(folder)
    assert run(folder, "/bin/sh", ".ci/set-up", "check").stdout == ""
    assert run(change(folder), "/bin/sh", ".ci/set-up", "check").stdout == "stale\n"


def test_a_folder_that_was_moved_gets_a_new_venv(folder: Path) -> None:
    put_venv(folder)
    assert run(folder, "make", "demo").returncode == 0
    (folder / "requirements.lock").write_text("", encoding="utf-8")
    (folder / "pyproject.toml").write_text("", encoding="utf-8")  # what pip then fails at comes later
    made = run(moved(folder), "make", "demo")
    assert "broken off, moved or made for another Python: it is made anew." in made.stderr
    new = folder.with_name("moved") / ".venv"
    assert (new / "bin" / "pip").read_text(encoding="utf-8").splitlines()[0].count("moved")
    assert not (new / "said").exists()


def test_two_makes_in_one_folder_wait_for_each_other(folder: Path) -> None:
    put_venv(folder, pip="while [ ! -e go-on ]; do sleep 0.05; done; echo once >> installs")
    first = begin_make(folder)
    read_until(first, "15 of 20")  # its pip runs
    second = begin_make(folder)
    read_until(second, "Another make sets up this folder: waiting for it ...")
    (folder / "go-on").touch()
    assert [make.communicate()[0] for make in (first, second)] == ["this is the demo\n"] * 2
    assert (folder / "installs").read_text(encoding="utf-8") == "once\n"


def test_ctrl_c_ends_set_up_in_one_sentence_and_the_next_make_goes_on(folder: Path) -> None:
    put_venv(folder, pip="[ -e go-on ] || exec sleep 60")
    make = begin_make(folder)
    read_until(make, "15 of 20")
    os.killpg(make.pid, signal.SIGINT)  # as a terminal does it: to all
    _, said = make.communicate(timeout=30)
    assert "Stopped before it was set up: the next make goes on with what has been fetched." in said
    assert "Traceback" not in said
    (folder / "go-on").touch()
    assert run(folder, "make", "demo").stdout == "this is the demo\n"


# root may write everywhere, unless that capability is taken away
LIKE_ANYBODY = ("setpriv", "--bounding-set", "-dac_override") if os.geteuid() == 0 else ()


@pytest.mark.debian(programs=[*LIKE_ANYBODY[:1]])
def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    folder.chmod(0o555)
    made = run(folder, *LIKE_ANYBODY, "make", "demo")
    folder.chmod(0o755)
    assert made.stderr.startswith("This folder cannot be written by ")
