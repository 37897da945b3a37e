"""Text in a terminal: how wide it is, where it is broken, rows in columns."""

import pytest

from bot.aligned import aligned, broken, columns, joined

NAMES = ["Ana", "山田太郎", "José", "🚀 Zoë", "👍🏽", "🇵🇹", "한국"]


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("", 0),
        ("Ana", 3),
        ("€4,120.00", 9),
        ("山田", 4),
        ("Jose\u0301", 4),
        ("🚀", 2),
        ("👍🏽", 2),
        ("🇵🇹", 2),
        ("⚠️", 2),
        ("한국", 4),
        ("\uff71", 1),
        ("\uff21", 2),
    ],
)
def test_wide_characters_and_emoji_count_two_and_marks_none(text: str, wide: int) -> None:
    assert columns(text) == wide


def test_columns_begin_below_each_other_whatever_stands_in_them() -> None:
    rows = aligned([[name, "end"] for name in NAMES])
    assert {columns(first) for first, _ in rows} == {max(map(columns, NAMES))}


def test_a_column_can_be_set_to_the_right() -> None:
    rows = aligned([["N", "x"], ["7", "y"], ["120", "z"]], right={0})
    assert list(map(joined, rows)) == ["  N  x", "  7  y", "120  z"]


def test_the_widest_cells_are_shortened_until_a_row_fits() -> None:
    rows = [["pay_1", "a very long reason that nobody reads to its end"], ["pay_2", "山" * 40]]
    shown = [joined(cells) for cells in aligned(rows, room=30)]
    assert all(columns(line) <= 30 for line in shown)
    assert all(line.endswith("…") for line in shown)
    assert [line[:7] for line in shown] == ["pay_1  ", "pay_2  "]


def test_more_columns_than_there_is_room_for_are_still_shown() -> None:
    [line] = map(joined, aligned([["abcdef"] * 12], room=20))
    assert line == "  ".join(["ab…"] * 12)


def test_lines_are_broken_between_words_by_their_width() -> None:
    assert list(broken("one two three", 8)) == ["one two", "three"]
    assert list(broken("山田 太郎", 8)) == ["山田", "太郎"]
    assert list(broken("a\nb", 8)) == ["a", "b"]
    assert list(broken("unbreakable", 4)) == ["unbreakable"]
