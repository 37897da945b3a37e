"""What every test in a browser is marked with."""

import pytest

WIDTHS = (390, 1280)
"""CSS pixels: a phone and a desk."""

IN_A_BROWSER = [
    pytest.mark.debian(programs=["chromium"], modules=["playwright"]),
    pytest.mark.asyncio(loop_scope="session"),  # one browser for all tests of a process
]
AT_BOTH_WIDTHS = pytest.mark.parametrize("width", WIDTHS)
