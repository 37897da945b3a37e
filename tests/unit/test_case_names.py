"""What went wrong elsewhere is numbered, and each number that has its place here has a test of its own."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = ("integration/agent/test_cases.py", "acceptance/test_cases.py")
CASES = {*range(1, 19), 24, 25, 27}


def test_every_case_has_a_test_that_is_named_after_it() -> None:
    text = "".join((TESTS / file).read_text() for file in FILES)
    assert {int(number) for number in re.findall(r"^async def test_c(\d\d)_", text, re.MULTILINE)} == CASES
