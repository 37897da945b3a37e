"""The matrix of tests.crash is whole: its points are in the product, and each cell is played or explained."""

import inspect

import pytest

from store.transitions import ApprovalStatus
from tests.crash.__main__ import Results
from tests.crash.cell import expected
from tests.crash.dying import owner_of
from tests.crash.kinds import AT_STRIPE, KINDS, WITH_KEYS, WITHOUT_KEYS
from tests.crash.matrix import Cell, Played, cells_at_stripe, every_cell, quick_cells
from tests.crash.mutants import TAKEN
from tests.crash.points import POINTS, Decision, Hook, Point
from tests.crash.report import as_json, left_out, table
from tests.crash.scene import FOUND
from tests.crash.truth import Expected
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


def test_each_point_is_played_at_each_stripe_and_approved_there_if_that_can_be() -> None:
    cells = cells_at_stripe(POINTS)
    assert [(cell.point, cell.kind) for cell in cells] == [(p, kind) for p in POINTS for kind in AT_STRIPE]
    assert not [cell.name for cell in cells if cell.decision in cell.point.impossible]
    others = {cell.point.name for cell in cells if cell.decision is not Decision.APPROVE}
    assert others == {point.name for point in POINTS if Decision.APPROVE in point.impossible}


def test_the_quick_matrix_has_each_point_once_one_at_stripe_and_nothing_that_cannot_occur() -> None:
    *cells, at_stripe = quick_cells(POINTS)
    assert [cell.point for cell in cells] == list(POINTS)
    assert {cell.decision for cell in cells} == set(Decision)
    assert {cell.kind for cell in cells} == set(KINDS)
    assert not [cell.name for cell in cells if cell.decision in cell.point.impossible]
    assert at_stripe.name == "halfway / approve / Stripe without keys"


@pytest.mark.parametrize(
    "point", [point for point in POINTS if point.attempted], ids=lambda point: point.name
)
def test_where_keys_are_forgotten_nobody_knows_until_a_person_lets_it_be_tried_again(point: Point) -> None:
    wanted = expected(point, Decision.APPROVE, WITHOUT_KEYS)
    assert (wanted.status, wanted.attempts) == (ApprovalStatus.UNKNOWN, 1)
    assert wanted.tried_again == Expected(ApprovalStatus.EXECUTED, FOUND, 2)
    assert expected(point, Decision.APPROVE, WITH_KEYS) == wanted.tried_again


def test_without_node_the_cells_at_the_outsiders_stripe_are_missing_and_it_is_said_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    [kept, lacking] = cells = [Cell(POINTS[0], Decision.APPROVE, kind) for kind in (WITHOUT_KEYS, WITH_KEYS)]
    assert left_out(cells) == "Not played (needs the program node): answer / approve / Stripe"
    results = Results([Played(kept.name, None, "", 1.0)], [])
    assert results.are_green([kept], 0)
    assert not results.are_green([lacking], 0)
    assert not results.are_green(cells, 0)
    told = as_json([POINTS[0]], cells, results.cells, [], 1.0)["cells"]
    assert [cell["outcome"] for cell in told] == ["green", "missing"]
    assert told[1]["why"] == "needs the program node"


def test_what_is_red_or_missing_a_cell_or_a_random_kill_makes_it_fail() -> None:
    cell = Cell(POINTS[0], Decision.APPROVE, WITHOUT_KEYS)
    green, red = Played(cell.name, None, "", 1.0), Played(cell.name, "wrong", "", 1.0)
    hit = Played("run 0", None, "", 1.0, ("queued", "running"))
    assert Results([green], [hit]).are_green([cell], 2)
    assert not Results([green], [hit]).are_green([cell], 3)
    assert not Results([green], []).are_green([cell], 1)
    assert not Results([red], [hit]).are_green([cell], 2)
    assert not Results([green], [hit, Played("run 1", "wrong", "", 1.0)]).are_green([cell], 2)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_cell_that_was_not_played_is_missing_from_the_table(point: Point) -> None:
    wanted = [cell.name for cell in (*every_cell([point]), *cells_at_stripe([point]))]
    assert table([point], [], wanted).count("missing") == len(wanted)


def test_the_mutants_are_there_and_the_points_that_they_turn_red() -> None:
    assert {taken.point for taken in TAKEN} <= {point.name for point in POINTS}
    assert all((FOLDER / f"{taken.patch}.patch").is_file() for taken in TAKEN)
    must = {"lease", "token", "attempt started", "key", "deadline"}
    assert must <= {taken.what for taken in TAKEN}
