"""Takes away what the matrix hangs on, one thing at a time, and demands that cells turn red.

The patches are those of tests/mutants; each is put into a copy of the tree, where the quick matrix's cells of
the points below are played.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests import databases
from tests.mutants.mutant import FOLDER, applied, read
from tests.mutants.tree import copy_tree

LIMIT_SECONDS = 240.0
PATIENCE = "40"
"""Seconds that a cell waits for what a mutant may keep from coming."""


@dataclass(frozen=True)
class Taken:
    """What is taken away, by which patch, and the point whose cell must then be red."""

    what: str
    patch: str
    point: str


TAKEN = (
    Taken("lease", "i05_an_attempt_of_a_dead_worker_is_forgotten", "claimed"),
    Taken("token", "i05_an_attempt_needs_no_token", "claimed-asleep"),
    Taken("attempt started", "i05_the_tool_is_called_before_the_attempt_is_committed", "started"),
    Taken("look first", "i05_a_repeat_at_stripe_does_not_look_first", "halfway"),
    Taken("key", "i05_every_attempt_has_a_key_of_its_own", "halfway"),
    Taken("deadline", "i03_deadline_not_in_where", "decision-asleep"),
    Taken("unknown", "i05_what_cannot_be_repeated_is_repeated", "effect"),
    Taken("check of the world", "i06_the_world_is_not_checked_again", "proposed"),
)


class NoVerdict(Exception):
    """The matrix did not say what became of its cell."""


def problems_of(tree: Path, points: str, server: str) -> list[str]:
    """Play the quick cells of points in a tree; what was wrong with them. Raises NoVerdict."""
    report = tree / ".crash.json"
    report.unlink(missing_ok=True)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--quick", "--only", points, "--json", str(report)],
        cwd=tree,
        env=os.environ
        | {"PYTHONPATH": str(tree), databases.SERVER_VARIABLE: server, "CRASH_PATIENCE": PATIENCE},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if ended.returncode not in (0, 1) or not report.is_file():
        raise NoVerdict(f"the matrix ended with {ended.returncode}: {ended.stderr[-500:]}")
    cells = json.loads(report.read_text())["cells"]
    found = [str(cell.get("problem", "missing")) for cell in cells if cell["outcome"] != "green"]
    if any("the process ended with" in problem for problem in found):
        raise NoVerdict(f"it is no working program: {found[0]}")
    return found


def judge(taken: Taken, server: str) -> str | None:
    """Put the mutant into a copy and play; what is wrong with the matrix, or None: it turned red."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vistobueno-crash-mutant-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        try:
            with applied(read(FOLDER / f"{taken.patch}.patch"), tree):
                found = problems_of(tree, taken.point, server)
            problem = None if found else "GREEN"
        except NoVerdict as error:
            found, problem = [], str(error)
    said = f"red: {found[0][:200]}" if found else problem
    print(
        f"{time.monotonic() - began:6.1f} s  {taken.what} ({taken.patch}) at {taken.point}: {said}",
        flush=True,
    )
    return problem


def run(chosen: Sequence[Taken], jobs: int) -> int:
    """First the tree as it is, whose cells must be green, then every mutant; the exit code."""
    with databases.running_server() as server, tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        points = ",".join(sorted({taken.point for taken in chosen}))
        found = problems_of(Path(folder), points, server.admin_url)
        if found:
            print(f"red without any mutant: {found[0]}")
            return 1
        with ThreadPoolExecutor(jobs) as pool:
            problems = list(pool.map(lambda taken: judge(taken, server.admin_url), chosen))
    red = sum(problem is None for problem in problems)
    print(f"{red} of {len(chosen)} mutants turned the matrix red.")
    return 0 if red == len(chosen) else 1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.mutants", description=__doc__)
    parser.add_argument("--only", metavar="WHAT", choices=[taken.what for taken in TAKEN], help="only this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    asked = parser.parse_args()
    return run([taken for taken in TAKEN if asked.only in (None, taken.what)], asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
