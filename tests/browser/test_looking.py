"""What is found wrong on any page is found: the tests of the page rest on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.app import App
from tests.browser.marks import IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER

NO_ICON = "<link rel=icon href='data:,'>"  # or the browser asks for one, sooner or later


@pytest.mark.parametrize(
    ("markup", "wrong"),
    [
        ("<button></button>", "no name has"),
        ("<label>Name</label><input>", "no name has"),
        ("<a href='/'><img alt=''></a>", "no name has"),
        ("<p style='width: 500px'>wide</p>", "too wide is"),
        ("<div style='overflow: auto'><p style='width: 500px'>wide</p></div>", "too wide is"),
        ("<div style='overflow: hidden; white-space: nowrap'>" + "cut off " * 20 + "</div>", "too wide is"),
    ],
)
async def test_a_faulty_page_is_found_out(app: App, on_app: Windows, markup: str, wrong: str) -> None:
    leo = await on_app.open("Leo", 390, bypass_csp=True)
    await leo.looks("a good page")
    await leo.page.set_content(NO_ICON + markup)
    with pytest.raises(AssertionError, match=wrong):
        await leo.looks("a faulty page")


async def test_a_window_notes_complaints_foreign_hosts_failures_and_new_pages(
    app: App, on_app: Windows
) -> None:
    leo = await on_app.open("Leo", 390, bypass_csp=True)
    await leo.expects_no_other_page()
    foreign = "http://localhost:9/picture.png"
    async with leo.page.expect_console_message(lambda said: "ERR_" in said.text):
        await leo.page.set_content(f"{NO_ICON}<img src='{foreign}' alt='foreign'><script>nowhere()</script>")
    await leo.page.evaluate("console.warn('hm')")
    async with leo.page.expect_console_message(lambda said: "404" in said.text):
        await leo.page.evaluate("fetch('/nowhere')")
    await leo.page.reload()
    on_app.expect_faults(
        *(f"another host is asked: {foreign}", f"{foreign} failed", "the console says: hm"),
        *("the script failed: nowhere is not defined", "/nowhere was answered 404", "loaded anew: "),
        "the console says: Failed to load resource",
    )
