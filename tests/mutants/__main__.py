"""Puts each mutant into a copy of the tree, and demands that the tests it names turn red."""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

from tests import databases
from tests.mutants.mutant import BadMutant, DoesNotApply, Mutant, applied, missing_tests, read_all
from tests.mutants.tree import ROOT, Ended, TestsDidNotRun, copy_tree, run_tests

MUTANT_SECONDS = 120.0
ALL_SECONDS = 600.0
CORES, JOBS = 2, 3  # many a mutant is red because its test waits in vain, which needs no core
# A failure that says one of these only shows that the mutant is no working program: it proves nothing.
_BROKEN = re.compile(
    r"\b(42601|42703|42P01|42P02|42P18|42804|42883|SyntaxError|NameError|UnboundLocalError|ImportError"
    r"|ModuleNotFoundError|IndentationError|ProgrammingError)\b|lacks what this version needs"
)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; `problem` is None if all the tests it names turned red, and `seen` is how."""

    mutant: Mutant
    problem: str | None
    seen: str
    seconds: float


class Runner:
    """Runs mutants in copies of the tree, one at a time in each; they share one database server.

    Those that leave `store` as it is share its schema too: `template` is a database that has it.
    """

    def __init__(self, copies: Sequence[Path], server: str, template: str) -> None:
        self._server = {databases.SERVER_VARIABLE: server, "VISTOBUENO_TEST_UNSHRUNK": "1"}
        self._migrated = self._server | {databases.TEMPLATE_VARIABLE: template}
        self._copies: SimpleQueue[Path] = SimpleQueue()
        for copy in copies:
            self._copies.put(copy)

    def judge(self, mutant: Mutant) -> Verdict:
        """Put the mutant into a free copy and run its tests there."""
        copy, started = self._copies.get(), time.monotonic()
        try:
            problem, seen = self._judged(mutant, copy)
        finally:
            self._copies.put(copy)
        verdict = Verdict(mutant, problem, seen, time.monotonic() - started)
        say(f"{verdict.seconds:5.1f} s  {mutant.name}: {problem or f'red ({seen})'}")
        return verdict

    def _judged(self, mutant: Mutant, copy: Path) -> tuple[str | None, str]:
        try:
            with applied(mutant, copy):
                ended = run_tests(copy, mutant.red, self._environ_of(mutant), MUTANT_SECONDS)
        except DoesNotApply as error:
            return f"does not apply: {error}", ""
        except TestsDidNotRun as error:
            return f"no verdict: {error}", ""
        problem = next((found for name in mutant.red if (found := problem_of(name, ended))), None)
        return problem, next((said(one) for one in ended if is_red(one)), "")

    def _environ_of(self, mutant: Mutant) -> dict[str, str]:
        changes_store = any(file.startswith("store/") for file, _ in mutant.changes)
        return self._server if changes_store else self._migrated

    def check_unmutated(self, tests: Sequence[str]) -> list[str]:
        """Run the tests as the tree is, and give what is wrong: all must pass."""
        copy = self._copies.get()
        try:
            ended = run_tests(copy, list(tests), self._server, ALL_SECONDS)
        except TestsDidNotRun as error:
            return [str(error)]
        finally:
            self._copies.put(copy)
        failed = [f"{one.id} ({one.phase}): {said(one)}" for one in ended if one.outcome != "passed"]
        return failed + [
            f"{name} did not run" for name in tests if not any(is_of(name, one) for one in ended)
        ]


def problem_of(test: str, ended: Iterable[Ended]) -> str | None:
    """Why a test is no proof that the mutant was noticed, or None: a case of it failed in its own body."""
    cases = [one for one in ended if is_of(test, one)]
    if any(is_red(one) for one in cases):
        return None
    failed = next((one for one in cases if one.outcome == "failed"), None)
    if failed is None:
        return f"GREEN: {test}" if cases else f"did not run: {test}"
    if failed.phase == "call":
        return f"BROKEN, not noticed: {said(failed)}"
    return f"did not come to its body: {test}: {said(failed)}"


def is_red(ended: Ended) -> bool:
    """Whether it failed in the test's own body, and not because the mutant is no working program."""
    return ended.phase == "call" and ended.outcome == "failed" and not _BROKEN.search(ended.text)


def is_of(test: str, ended: Ended) -> bool:
    """Whether what ended is the named test, or a case of it."""
    return ended.id == test or ended.id.startswith(f"{test}[")


def said(ended: Ended) -> str:
    """What went wrong, in one line: pytest's own first one, or the last there is."""
    lines = [line[1:].strip() for line in ended.text.splitlines() if line.startswith("E ")]
    return (lines[:1] or ended.text.strip().splitlines()[-1:] or ["no words"])[0][:160]


def say(words: str) -> None:
    """Tell whoever waits how far it is."""
    print(words, file=sys.stderr, flush=True)


def table(verdicts: Iterable[Verdict]) -> str:
    """One block of lines for each mutant."""
    lines = []
    for verdict in sorted(verdicts, key=lambda verdict: verdict.mutant.name):
        mutant = verdict.mutant
        mark = "red  " if verdict.problem is None else "GREEN" if "GREEN" in verdict.problem else "ERROR"
        lines.append(f"{mark} {mutant.invariant:2} {verdict.seconds:5.1f} s  {mutant.name}")
        lines.append(f"      takes away: {mutant.takes_away}")
        lines += [f"      {name}" for name in mutant.red]
        lines.append(f"      {verdict.seen}" if verdict.problem is None else f"   !! {verdict.problem}")
    return "\n".join(lines)


def run(mutants: Sequence[Mutant], jobs: int) -> int:
    """Check the tests as they are, then every mutant; prints the table and gives the exit code."""
    started = time.monotonic()
    tests = sorted({name for mutant in mutants for name in mutant.red})
    missing = missing_tests(tests, ROOT)  # before there are threads: Python 3.11 can parse in one only
    if missing:
        print("\n".join(["There are no such tests:", *missing]))
        return 1
    with ExitStack() as stack:
        copies = [_copy(stack) for _ in range(jobs)]
        server = stack.enter_context(databases.running_server())
        template = stack.enter_context(databases.migrated_template(server))
        runner = Runner(copies, server.admin_url, template.name)
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        say(f"{len(tests)} tests as they are, which must pass …")
        problems = [
            text
            for found in pool.map(runner.check_unmutated, _shares(tests, min(jobs, CORES)))
            for text in found
        ]
        if problems:
            print("\n".join(["These fail without any mutant:", *problems]))
            return 1
        say(f"{len(mutants)} mutants, {jobs} at a time …")
        verdicts = list(pool.map(runner.judge, mutants))
    print(table(verdicts))
    survivors = [verdict for verdict in verdicts if verdict.problem is not None]
    seconds = time.monotonic() - started
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} mutants turned red, in {seconds:.0f} s.")
    for verdict in survivors:
        print(f"NOT RED: {verdict.mutant.name}: {verdict.problem}")
    return 1 if survivors else 0


def _copy(stack: ExitStack) -> Path:
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vistobueno-mutants-")))
    copy_tree(copy)
    return copy


def _shares(tests: Sequence[str], parts: int) -> list[list[str]]:
    """The tests in so many parts, whole files together; none is empty."""
    files = sorted({name.partition("::")[0] for name in tests})
    number = {file: at % parts for at, file in enumerate(files)}
    shares = [[name for name in tests if number[name.partition("::")[0]] == part] for part in range(parts)]
    return [share for share in shares if share]


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"write {least} or more")
        return number

    return read


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="PATTERN", default="*", help="the mutants of these names (*, ?)")
    parser.add_argument(
        "--list", action="store_true", help="print names and what they take away, run nothing"
    )
    parser.add_argument("--jobs", type=_whole(1), default=JOBS, help=f"mutants at a time ({JOBS})")
    asked = parser.parse_args()
    try:
        mutants = [one for one in read_all() if fnmatch(one.name, asked.only)]
    except BadMutant as error:
        parser.error(str(error))
    if not mutants:
        parser.error(f"no mutant is called {asked.only}")
    if asked.list:
        print("\n".join(f"{one.invariant:2} {one.name}: {one.takes_away}" for one in mutants))
        return 0
    say(f"Copying {ROOT} …")
    return run(mutants, asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
