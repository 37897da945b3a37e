"""What commands print: aligned, with numbers to the right, and colour only where it is wanted."""

import sys
from datetime import datetime, timedelta, timezone

import pytest

from bot.commands.output import duration, print_fields, print_findings, print_table, shorten
from store.transitions import RunStatus

ROWS = [("山田", 7, RunStatus.FAILED), ("Leo", 120, RunStatus.COMPLETED)]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_table(("name", "steps", "status"), ROWS, "Nobody is there.")
    return capsys.readouterr().out.splitlines()


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stdout be a terminal of somebody who said nothing of colours."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def test_a_table_is_aligned_by_what_is_seen_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == [
        "NAME  STEPS  STATUS",
        "山田      7  failed",
        "Leo     120  completed",
    ]


def test_a_time_is_in_utc_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 11, 30, 18, 0, 7, tzinfo=timezone(timedelta(hours=1)))
    print_fields([("asked", at)])
    print_table(("id", "asked"), [("apr_1", at)], "Nothing.")
    fields, _, row = capsys.readouterr().out.splitlines()
    assert (fields, row) == ("asked  2026-11-30 17:00:07 UTC", "apr_1  2026-11-30 17:00:07 UTC")


def test_a_table_without_rows_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [], "Nobody is there.")
    assert capsys.readouterr().out == "Nobody is there.\n"


def test_a_terminal_gets_colour_that_says_no_more_than_the_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    head, failed, completed = printed(capsys)
    assert head.startswith("\x1b[1mNAME")
    assert "\x1b[31mfailed" in failed
    assert "\x1b[32mcompleted" in completed


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colour_gets_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    assert "\x1b" not in "".join(printed(capsys))


def test_fields_that_are_empty_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields([("a", None), ("long", 3), ("b", "x  y"), ("c", ())])
    assert capsys.readouterr().out == "long  3\nb     x  y\n"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(45, "45 s"), (90, "90 s"), (1800, "30 min"), (7200, "2 h"), (86400, "24 h"), (604800, "7 d")],
)
def test_a_duration_is_said_in_its_largest_whole_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_what_is_shortened_fits_and_says_so() -> None:
    assert shorten("山田太郎 " * 5, 10) == "山田太郎…"
    assert shorten("one\n two", 10) == "one two"


FINDINGS = [
    (("ok", "python"), "3.11"),
    (
        ("failed", "migrations"),
        "they are not those of this version: run `vistobueno migrate` before it starts",
    ),
]


def test_findings_are_a_line_each_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings(FINDINGS)
    assert capsys.readouterr().out.splitlines() == [
        "ok      python      3.11",
        f"failed  migrations  {FINDINGS[1][1]}",
    ]


def test_findings_are_broken_below_themselves_and_coloured_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "60")
    print_findings(FINDINGS)
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[32mok    \x1b[0m  python      3.11",
        "\x1b[31mfailed\x1b[0m  migrations  they are not those of this version: run",
        "                    `vistobueno migrate` before it starts",
    ]
