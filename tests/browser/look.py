"""Looking at a page: a picture of it is kept, and what would be wrong on any page is found."""

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from playwright.async_api import Page

CONTROLS = (
    "button|link|textbox|searchbox|combobox|listbox|checkbox|radio|slider|spinbutton|switch|menuitem|tab"
)
NAMELESS = re.compile(rf"^\s*- '?(?:{CONTROLS})(?! \")\b.*$", re.MULTILINE)
SIDEWAYS = """() => [...document.querySelectorAll('*')]
    .filter(one => one.checkVisibility() && !['TEXTAREA', 'INPUT', 'SELECT'].includes(one.tagName))
    .filter(one => one === document.documentElement || getComputedStyle(one).overflowX !== 'visible')
    .filter(one => !one.classList.contains('unseen') && one.scrollWidth > one.clientWidth + 1)
    .map(one => one.outerHTML.slice(0, 120))"""
"""What can be moved sideways, or is cut off at its side."""


@dataclass
class Pictures:
    """The pictures of one test, numbered in the order in which they were taken."""

    folder: Path
    test: str

    def __post_init__(self) -> None:
        self._numbers = count(1)

    def next(self, width: int, what: str) -> Path:
        """Where the next one goes."""
        return self.folder / str(width) / f"{self.test}-{next(self._numbers):02}-{what}.png"


async def look(page: Page, pictures: Pictures, what: str) -> None:
    """Take a picture; fails if a control has no name, or something must be moved sideways to be seen."""
    assert page.viewport_size is not None
    path = pictures.next(page.viewport_size["width"], what.replace(" ", "-"))
    await page.screenshot(path=path, animations="disabled")
    nameless = NAMELESS.findall(await page.locator("body").aria_snapshot())
    assert not nameless, f"{path}: no name has {nameless}"
    wide = await page.evaluate(SIDEWAYS)
    assert not wide, f"{path}: too wide is {wide}"
