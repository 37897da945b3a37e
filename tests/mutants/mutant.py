"""A mutant: its header, its diff, and putting it into a tree and taking it out again."""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

FOLDER = Path(__file__).parent
INVARIANTS = range(1, 18)
_HEADER = re.compile(r"(Invariant|Takes away|Red): (\S.*)")
_NAME = re.compile(r"i([0-9]{2})_[a-z0-9_]+")


class BadMutant(Exception):
    """The file is not a mutant; the text says what is wrong with it."""


class DoesNotApply(Exception):
    """The tree has changed: what a hunk takes away is not there exactly once."""


@dataclass
class Hunk:
    """Lines of a file and what they become."""

    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Mutant:
    """One patch: which invariant it contradicts, how, and the tests that must then fail."""

    name: str
    invariant: int
    takes_away: str
    red: tuple[str, ...]
    changes: tuple[tuple[str, tuple[Hunk, ...]], ...]
    """Paths, from the root of the tree, each with its hunks."""


def read_all(folder: Path = FOLDER) -> list[Mutant]:
    """Every mutant of the folder, by name; raises BadMutant."""
    return [read(path) for path in sorted(folder.glob("*.patch"))]


def read(path: Path) -> Mutant:
    """The mutant in a file; raises BadMutant."""
    header, diff = _split(path.read_text(encoding="utf-8").splitlines())
    said: dict[str, list[str]] = {"Invariant": [], "Takes away": [], "Red": []}
    for line in header:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise BadMutant(f"{path.name}: the header has the line {line!r}")
        said[found[1]].append(found[2])
    named = _NAME.fullmatch(path.stem)
    if [len(said["Invariant"]), len(said["Takes away"])] != [1, 1] or not said["Red"]:
        raise BadMutant(f"{path.name}: the header needs one Invariant, one Takes away and some Red")
    if named is None or named[1] != f"{said['Invariant'][0]:0>2}":
        raise BadMutant(f"{path.name}: the name must begin with its invariant, like i03_no_deadline")
    changes = tuple(_changes(path.name, diff))
    if not changes or int(named[1]) not in INVARIANTS:
        raise BadMutant(f"{path.name}: it has no diff, or there is no such invariant")
    return Mutant(path.stem, int(named[1]), said["Takes away"][0], tuple(said["Red"]), changes)


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    at = next((at for at, line in enumerate(lines) if line.startswith("--- ")), len(lines))
    return [line for line in lines[:at] if line], lines[at:]


def _changes(name: str, diff: list[str]) -> Iterator[tuple[str, tuple[Hunk, ...]]]:
    path, hunks = "", list[Hunk]()
    for line in diff:
        if line.startswith("--- a/"):
            if path:
                yield path, tuple(hunks)
            path, hunks = line.removeprefix("--- a/"), []
        elif line == f"+++ b/{path}":
            continue
        elif line.startswith("@@ "):
            hunks.append(Hunk())
        elif hunks and line[:1] in {" ", "-", "+", ""}:
            if line[:1] != "+":
                hunks[-1].old.append(line[1:])
            if line[:1] != "-":
                hunks[-1].new.append(line[1:])
        else:
            raise BadMutant(f"{name}: the diff has the line {line!r}")
    if path:
        yield path, tuple(hunks)


@contextmanager
def applied(mutant: Mutant, root: Path) -> Iterator[None]:
    """The tree under `root` with the mutant in it, as it was afterwards; raises DoesNotApply."""
    changed = changed_files(mutant, root)
    before = {file: (file.read_text(encoding="utf-8"), file.stat().st_mtime) for file in changed}
    try:
        for file, text in changed.items():
            _write(file, text, next(_MOMENTS))
        yield
    finally:
        for file, (text, moment) in before.items():
            _write(file, text, moment)


def changed_files(mutant: Mutant, root: Path) -> dict[Path, str]:
    """The files that a mutant changes, with what it makes of them; raises DoesNotApply."""
    return {root / path: _changed(root / path, hunks) for path, hunks in mutant.changes}


# Python takes compiled code for current if the source's size and its second of change are the same: no two
# mutants may have the same second.
_MOMENTS = count(1_000_000_000)


def _write(file: Path, text: str, moment: float) -> None:
    file.write_text(text, encoding="utf-8")
    os.utime(file, (moment, moment))


def _changed(file: Path, hunks: tuple[Hunk, ...]) -> str:
    if not file.is_file():
        raise DoesNotApply(f"there is no {file.name}")
    lines = file.read_text(encoding="utf-8").split("\n")
    for hunk in hunks:
        size = len(hunk.old)
        places = [at for at in range(len(lines) - size + 1) if lines[at : at + size] == hunk.old]
        if len(places) != 1:
            first = next((line.strip() for line in hunk.old if line.strip()), "")
            raise DoesNotApply(f"{file.name} has {len(places)} times what it changes ({first!r} …)")
        lines[places[0] : places[0] + size] = hunk.new
    return "\n".join(lines)


def missing_tests(names: Iterable[str], root: Path) -> list[str]:
    """Those of the named tests (`path::function`, with or without a parameter) that are not in the tree."""
    return [name for name in names if not _is_there(name, root)]


def _is_there(name: str, root: Path) -> bool:
    path, _, function = name.partition("::")
    file = root / path
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    wanted = function.partition("[")[0]
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == wanted for node in tree.body
    )
