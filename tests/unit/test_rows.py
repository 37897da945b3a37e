"""Rows of another version's tables are named as such, and are no fault of what is worked on."""

from collections.abc import Callable
from typing import Any

import pytest

from store import rows
from store.errors import NotMigrated


@pytest.mark.parametrize(
    ("read", "row"),
    [
        (rows.run, {"id": "run_1"}),
        (rows.call, {"id": "call_1"}),
        (rows.approval, {"approval": {"id": "apr_1"}, "revision": {}}),
    ],
)
def test_a_column_that_is_gone_says_that_the_tables_are_of_another_version(
    read: Callable[[Any], object], row: dict[str, Any]
) -> None:
    with pytest.raises(NotMigrated, match=r"\(column \w+\): run `vistobueno migrate`"):
        read(row)
