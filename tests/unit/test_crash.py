"""The matrix of tests.crash is whole: its points are in the product, and each cell is played or explained."""

import inspect

import pytest

from tests.crash.dying import owner_of
from tests.crash.matrix import every_cell, quick_cells
from tests.crash.mutants import TAKEN
from tests.crash.points import POINTS, Decision, Hook, Point
from tests.crash.report import table
from tests.crash.scene import KINDS
from tests.mutants.mutant import FOLDER

HOOKS = sorted({hook for point in POINTS for hook in point.hooks}, key=str)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: f"{hook.side} {hook.module}.{hook.name}")
def test_a_point_is_a_function_of_the_product(hook: Hook) -> None:
    owner, name = owner_of(hook)
    assert inspect.iscoroutinefunction(getattr(owner, name))


def test_each_cell_is_played_or_has_its_reason() -> None:
    played = len(every_cell(POINTS))
    reasons = [why for point in POINTS for why in point.impossible.values()]
    assert all(reasons)
    assert played + len(KINDS) * len(reasons) == len(POINTS) * len(Decision) * len(KINDS)


def test_the_quick_matrix_has_each_point_once_and_nothing_that_cannot_occur() -> None:
    cells = quick_cells(POINTS)
    assert [cell.point for cell in cells] == list(POINTS)
    assert {cell.decision for cell in cells} == set(Decision)
    assert {cell.kind for cell in cells} == set(KINDS)
    assert not [cell.name for cell in cells if cell.decision in cell.point.impossible]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_cell_that_was_not_played_is_missing_from_the_table(point: Point) -> None:
    wanted = [cell.name for cell in every_cell([point])]
    assert table([point], [], wanted).count("missing") == len(wanted)


def test_the_mutants_are_there_and_the_points_that_they_turn_red() -> None:
    assert {taken.point for taken in TAKEN} <= {point.name for point in POINTS}
    assert all((FOLDER / f"{taken.patch}.patch").is_file() for taken in TAKEN)
    must = {"lease", "token", "attempt started", "key", "deadline"}
    assert must <= {taken.what for taken in TAKEN}
