"""The page for eyes and hands that need it otherwise: little room, few colours, no pointer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.browser.app import App, go
from tests.browser.marks import AT_BOTH_WIDTHS, IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER

OVERLAPS = """() => {
    const parts = [...document.querySelectorAll('#bar > *, #world-opener')];
    const shown = parts.filter(one => one.checkVisibility())
        .map(one => [one.textContent, one.getBoundingClientRect()]);
    const bad = shown.filter(([, at]) => at.left < 0 || at.right > innerWidth)
        .map(([text]) => [text, 'outside']);
    shown.forEach(([text, at], number) => shown.slice(number + 1).forEach(([other, its]) => {
        const beside = at.right <= its.left || its.right <= at.left;
        const below = at.bottom <= its.top || its.bottom <= at.top;
        if (!beside && !below) bad.push([text, other]);
    }));
    return bad;
}"""
"""What of the bar lies over another part of it, or outside of the window."""
LINES = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(line => Math.round(line.top))).size;
}"""
"""On how many lines the words of a cell stand."""
CONTRASTS = """([selector, pseudo]) => {
    const parse = colour => colour.match(/[0-9.]+/g).map(Number);
    const bright = colour => parse(colour).slice(0, 3).map(part => part / 255)
        .map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
    return [...document.querySelectorAll(selector)].filter(one => one.checkVisibility()).map(one => {
        let under = one;
        while (parse(getComputedStyle(under).backgroundColor)[3] === 0) under = under.parentElement;
        const ink = bright(getComputedStyle(one, pseudo).color);
        const paper = bright(getComputedStyle(under).backgroundColor);
        return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    });
}"""
"""How much each of some letters differ from what is behind them, from 1 on."""


async def test_nothing_is_cut_off_or_covered_where_a_page_is_as_large_as_it_gets(windows: Windows) -> None:
    leo = await windows.open("Leo", 320)
    await leo.asks_the_agent()
    await leo.becomes("Marta")
    await leo.goes_to("# approvals")
    await leo.sees("Refund 38 payments")
    assert await leo.page.evaluate(OVERLAPS) == []
    await leo.sees_at(leo.page.get_by_role("banner").get_by_text("Marta"))
    heading = await leo.page.get_by_role("heading", name="# approvals", level=1).bounding_box()
    assert heading is not None and heading["height"] < 30, "its words stand on two lines"
    for short in await leo.page.locator("td.short").all():
        assert await short.evaluate(LINES) <= len((await short.inner_text()).replace("-", " ").split()), short
    await leo.looks("the card at 320", leo.page.get_by_role("table"))
    await leo.presses("Edit", within=leo.card("Refund 38"))
    await leo.sees("Preview changes", within=leo.window)
    await leo.looks("its window at 320")


@pytest.mark.parametrize("width", [390, 1024])
async def test_the_longest_card_of_the_story_is_seen_whole_from_wherever_one_comes(
    windows: Windows, width: int
) -> None:
    """With what it replaces, and with another request that wants the same payments."""
    marta = await windows.open("Marta", width)
    await marta.goes_to("# support")
    await marta.writes("@vistobueno please refund the failed payments", to="Message #support")
    await marta.opens_the_thread_of("please refund")
    await marta.sees("Nobody may decide this: only Marta", within=marta.thread)
    leo = await windows.open("Leo", width)
    await leo.asks_the_agent()
    await leo.page.get_by_role("link", name="Go there").click()
    marta, title = replace(leo, name="Marta"), "Refund 41 payments"
    await marta.sees_all_of_it(marta.card("Refund 38 payments"))
    await marta.lets_happen("Three payments fail overnight", "3 more payments failed")
    await marta.approves(marta.card("Refund 38 payments"))
    await marta.goes_on_to(title)
    card = marta.card(title)
    await marta.sees("Replaces an earlier request", "also wait in another approval", within=card)
    await marta.sees_all_of_it(card)
    await marta.looks("the longest card")
    await marta.page.reload()
    await marta.sees_all_of_it(card)
    await marta.goes_to("# support")
    await marta.goes_to("# approvals")
    await marta.sees_all_of_it(card)
    await marta.goes_to("# support")
    await marta.sees("A card waits in #approvals.")
    await marta.page.get_by_role("link", name="Go there").click()
    await marta.sees_all_of_it(card)


@AT_BOTH_WIDTHS
async def test_every_page_has_one_heading_of_the_first_level(app: App, on_app: Windows, width: int) -> None:
    leo = await on_app.open("Leo", width)
    heading = leo.page.get_by_role("heading", level=1)
    assert await heading.all_inner_texts() == ["# support"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_letters_differ_enough_from_what_is_behind_them(app: App, on_app: Windows, scheme: str) -> None:
    await app.posts("x", go("Approve"))
    marta = await on_app.open("Marta", 1280, color_scheme=scheme)
    await marta.goes_to("# approvals")
    await marta.sees("A card")
    for selector, pseudo in ((".avatar", None), ("textarea", "::placeholder"), (".hint, .when, .tag", None)):
        found = await marta.page.evaluate(CONTRASTS, [selector, pseudo])
        assert found and min(found) >= 4.5, (selector, found)


async def test_without_colours_a_switch_and_where_one_is_are_told_by_lines(windows: Windows) -> None:
    leo = await windows.open("Leo", 1280, forced_colors="active")
    switch = leo.world.get_by_role("button", name="Slack is slow")
    off = await switch.screenshot(animations="disabled")
    await leo.looks("without colours off")
    await leo.presses("Slack is slow", within=leo.world)
    await leo.sees("press a button of a card", within=leo.world)
    await leo.page.get_by_role("heading", level=1).hover()
    await leo.page.locator("body").evaluate("document.activeElement.blur()")
    assert await switch.screenshot(animations="disabled") != off
    await leo.looks("without colours on")
    borders = "one => getComputedStyle(one).borderLeftWidth"
    rail = leo.page.get_by_role("navigation", name="People and channels")
    here, elsewhere = [rail.get_by_role("link", name=name) for name in ("# support", "# approvals")]
    assert await here.evaluate(borders) != await elsewhere.evaluate(borders)


@pytest.mark.parametrize("drawer", ["Menu", "The world"])
async def test_the_tab_key_stays_in_an_open_drawer_and_leads_back_from_it(
    windows: Windows, drawer: str
) -> None:
    leo = await windows.open("Leo", 390)
    opener = leo.page.get_by_role("button", name=drawer, exact=True)
    await opener.focus()
    await leo.page.keyboard.press("Enter")
    await leo.has_the_focus_on(leo.page.locator(":popover-open"))
    for _ in range(14):
        await leo.page.keyboard.press("Tab")
        at = await leo.page.evaluate("document.activeElement.closest(':popover-open, body').nodeName")
        outside = await leo.page.evaluate("document.activeElement === document.body")
        assert at != "BODY" or outside, "it leads behind the drawer"
    await leo.page.keyboard.press("Shift+Tab")
    await leo.page.keyboard.press("Escape")
    await leo.does_not_see(leo.page.locator(":popover-open"))
    await leo.has_the_focus_on(opener)


@pytest.mark.parametrize("drawer", ["Menu", "The world"])
async def test_a_window_that_is_made_wide_is_not_left_behind_an_open_drawer(
    windows: Windows, drawer: str
) -> None:
    leo = await windows.open("Leo", 390)
    await leo.page.get_by_role("button", name=drawer, exact=True).click()
    await leo.has_the_focus_on(leo.page.locator(":popover-open"))
    await leo.page.set_viewport_size({"width": 1280, "height": 800})
    await leo.does_not_see(leo.page.locator(":popover-open"))
    await leo.presses("Ask @vistobueno")
    await leo.looks(f"made wide with {drawer} open")
