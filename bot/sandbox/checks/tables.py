"""Tables: `table` and `data_table`, of which a message takes one in all."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bot.sandbox import limits
from bot.sandbox.checks.checker import Checker
from bot.sandbox.checks.elements import Check
from bot.sandbox.checks.rich import check_rich_text
from bot.sandbox.errors import Json


def _table(check: Checker, block: Json, at: str) -> None:
    check.tables += 1
    check.known(block, {"type", "block_id", "rows", "column_settings"}, at)
    for pointer, row in check.items(block, "rows", at, limits.TABLE_ROWS):
        _row(check, row, pointer)
    settings = check.items(block, "column_settings", at, limits.TABLE_COLUMNS, least=0, needed=False)
    for pointer, setting in settings:
        if isinstance(setting, dict):
            check.choice(setting, "align", pointer, {"left", "center", "right"})
            check.boolean(setting, "is_wrapped", pointer)
        elif setting is not None:
            check.fail(pointer, "must be an object or null")


def _row(check: Checker, row: Any, at: str) -> None:
    if not isinstance(row, list):
        check.fail(at, "must be an array")
        return
    if not 1 <= len(row) <= limits.TABLE_COLUMNS:
        check.fail(at, f"must have 1 to {limits.TABLE_COLUMNS} cells")
    for i, cell in enumerate(row):
        _cell(check, cell, f"{at}/{i}")


def _cell(check: Checker, cell: Any, at: str) -> None:
    kind = cell.get("type") if isinstance(cell, dict) else None
    if kind not in check.unsettled.table_cells:
        check.fail(at, f"unsupported cell: {kind}")
    elif kind == "rich_text":
        check_rich_text(check, cell, at)
    elif kind == "raw_text":
        check.known(cell, {"type", "text"}, at)
        check.text_chars += len(check.string(cell, "text", at, limits.TEXT, needed=True))
    else:
        check.known(cell, {"type", "value", "text"}, at)
        if isinstance(cell.get("value"), bool) or not isinstance(cell.get("value"), int | float):
            check.fail(f"{at}/value", "must be a number")
        check.text_chars += len(check.string(cell, "text", at, limits.TEXT))


def _data_table(check: Checker, block: Json, at: str) -> None:
    check.tables += 1
    check.known(block, {"type", "block_id", "caption", "rows", "page_size", "column_settings"}, at)
    if isinstance(block.get("caption"), dict):
        check.text(block, "caption", at, limits.TEXT)
    else:
        check.string(block, "caption", at, limits.TEXT, needed=True)
    size = block.get("page_size", 5)
    if not isinstance(size, int) or not 1 <= size <= limits.DATA_TABLE_PAGE:
        check.fail(f"{at}/page_size", f"must be an integer from 1 to {limits.DATA_TABLE_PAGE}")
    rows = check.items(block, "rows", at, check.unsettled.data_table_rows, least=limits.DATA_TABLE_LEAST_ROWS)
    for pointer, row in rows:
        _row(check, row, pointer)
    if len({len(row) for _, row in rows if isinstance(row, list)}) > 1:
        check.fail(f"{at}/rows", "all rows must have the same number of cells")


TABLES: Mapping[str, Check] = MappingProxyType({"table": _table, "data_table": _data_table})
