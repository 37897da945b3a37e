"""Copies of the working tree, and tests run in them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LEFT_OUT = frozenset({".venv", ".git", "__pycache__", "node_modules"})


class TestsDidNotRun(Exception):
    """pytest ended without a report, or too late, or with other code than the copy's."""


@dataclass(frozen=True)
class Ended:
    """How one test, or one case of it, ended: `phase` is setup, call or teardown."""

    id: str
    phase: str
    outcome: str
    text: str


def copy_tree(target: Path) -> None:
    """Copy what is in the working tree and not ignored by git; without git, all but what is made."""
    for path in _files():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path)


def _files() -> Iterable[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        return [p for p in found if (ROOT / p).is_file() and not LEFT_OUT & set(p.parts)]
    paths = {Path(os.fsdecode(name)) for name in listed.split(b"\0") if name}
    return sorted(path for path in paths if (ROOT / path).is_file())


def run_tests(tree: Path, tests: Sequence[str], environ: dict[str, str], seconds: float) -> list[Ended]:
    """Run the named tests in a copy, with the copy's code; raises TestsDidNotRun."""
    report = tree / ".report.json"
    report.unlink(missing_ok=True)
    options = ["-v", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "tests.mutants.report"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, "--report-to", str(report), *tests],
        cwd=tree,
        # finding and importing every installed plugin takes longer than most of the tests
        env=os.environ | {"PYTHONPATH": str(tree), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        said = _end(process)
        raise TestsDidNotRun(f"no end within {seconds:.0f} s: {_last_words(said)}") from error
    finally:
        _end(process)
    if not report.is_file():
        raise TestsDidNotRun(f"pytest ended with {process.returncode}: {_last_words(said)}")
    return _read(json.loads(report.read_text()), said)


def _end(process: "subprocess.Popen[str]") -> str:
    """End the tests' process with all that it started, if it has not ended; gives its last output."""
    if process.poll() is not None:
        return ""
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _read(report: dict[str, Any], said: str) -> list[Ended]:
    if report["strangers"]:
        raise TestsDidNotRun(f"another tree was imported: {report['strangers'][0]}")
    if not report["tests"]:
        raise TestsDidNotRun(f"no test ran: {_last_words(said)}")
    return [Ended(**test) for test in report["tests"]]


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return " / ".join(lines[-3:])
