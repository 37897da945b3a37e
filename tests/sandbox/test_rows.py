"""No row of the facts about Slack is left without a test, and no test of a limit without a row."""

import dataclasses
import importlib

import pytest

from bot.sandbox import Unsettled
from tests.sandbox.method_rows import ROWS
from tests.sandbox.rows import Row
from tests.sandbox.shape_cases import LIMITS
from tests.sandbox.surface_cases import SURFACES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_held_in_exactly_one_way(row: Row) -> None:
    ways = [row.limits, row.surfaces, row.switches, row.tests, row.not_enforced]
    assert sum(bool(way) for way in ways) == 1


def test_every_limit_belongs_to_a_row_and_every_row_to_a_limit() -> None:
    assert {name for row in ROWS for name in row.limits} == {limit.row for limit in LIMITS}


def test_every_surface_belongs_to_a_row() -> None:
    assert {name for row in ROWS for name in row.surfaces} == {name for name, _, _ in SURFACES}


def test_every_switch_belongs_to_a_row() -> None:
    assert {name for row in ROWS for name in row.switches} == {f.name for f in dataclasses.fields(Unsettled)}


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row.tests}))
def test_the_test_a_row_names_is_there(name: str) -> None:
    module, test = name.split(".")
    assert callable(getattr(importlib.import_module(f"tests.sandbox.{module}"), test))


def test_no_row_is_written_twice() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
