"""The mutants are well formed, name tests that exist, and leave no invariant out."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import problem_of
from tests.mutants.mutant import (
    FOLDER,
    INVARIANTS,
    BadMutant,
    DoesNotApply,
    applied,
    changed_files,
    missing_tests,
    read,
    read_all,
)
from tests.mutants.tree import ROOT, Ended

GOOD = """Invariant: 3
Takes away: the deadline
Red: tests/x.py::test_a

--- a/one.py
+++ b/one.py
@@ -1,3 +1,2 @@
 first
-second
 third
"""
TEST = "tests/x.py::test_a"


def mutant_file(folder: Path, text: str = GOOD, name: str = "i03_x") -> Path:
    path = folder / f"{name}.patch"
    path.write_text(text)
    return path


def test_every_invariant_has_a_mutant() -> None:
    assert {mutant.invariant for mutant in read_all()} == set(INVARIANTS)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.patch")), ids=lambda path: path.stem)
def test_a_mutant_applies_and_names_tests_that_exist(path: Path) -> None:
    mutant = read(path)
    assert missing_tests(mutant.red, ROOT) == []
    assert not any(file.startswith("tests/") for file, _ in mutant.changes)
    assert changed_files(mutant, ROOT), "and it applies to the tree as it is"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Invariant: 3\n", ""),
        ("Invariant: 3", "Invariant: 4"),
        ("Takes away: the deadline\n", ""),
        ("Red: tests/x.py::test_a\n", ""),
        ("Red:", "Green:"),
        ("@@ -1,3 +1,2 @@\n", ""),
        ("--- a/one.py\n+++ b/one.py", "diff"),
    ],
)
def test_a_file_that_is_no_mutant_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(BadMutant):
        read(mutant_file(tmp_path, GOOD.replace(old, new)))


def test_a_mutant_is_put_in_and_taken_out_again(tmp_path: Path) -> None:
    source = tmp_path / "one.py"
    source.write_text("zero\nfirst\nsecond\nthird\n")
    before = source.stat().st_mtime
    with applied(read(mutant_file(tmp_path)), tmp_path):
        assert source.read_text() == "zero\nfirst\nthird\n"
        first_time = source.stat().st_mtime
    assert (source.read_text(), source.stat().st_mtime) == ("zero\nfirst\nsecond\nthird\n", before)
    with applied(read(mutant_file(tmp_path)), tmp_path):
        assert source.stat().st_mtime != first_time, "or the compiled code of the first time would be taken"


@pytest.mark.parametrize("text", ["first\nthird\n", "first\nsecond\nthird\n" * 2])
def test_a_mutant_whose_place_is_not_there_once_does_not_apply(tmp_path: Path, text: str) -> None:
    source = tmp_path / "one.py"
    source.write_text(text)
    with pytest.raises(DoesNotApply), applied(read(mutant_file(tmp_path)), tmp_path):
        pass
    assert source.read_text() == text


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ([Ended(TEST, "call", "failed", "E  AssertionError")], None),
        ([Ended(f"{TEST}[1]", "call", "passed", ""), Ended(f"{TEST}[2]", "call", "failed", "E  x")], None),
        ([Ended(TEST, "call", "passed", "")], "GREEN"),
        ([Ended(TEST, "setup", "failed", "E  x")], "did not come to its body"),
        ([Ended("tests/x.py::test_ab", "call", "failed", "E  x")], "did not run"),
        ([Ended(TEST, "call", "failed", "E  NameError: name 'x'")], "BROKEN"),
        ([Ended(TEST, "call", "failed", "E  x (42601): syntax error")], "BROKEN"),
    ],
)
def test_only_a_failure_of_the_tests_own_body_is_red(ended: list[Ended], words: str | None) -> None:
    problem = problem_of(TEST, ended)
    assert problem is None if words is None else words in (problem or "")
