"""A person at a window: they find things by what they are called, and wait for what they expect to see."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from playwright.async_api import Locator, Page, expect

from tests.browser.look import Pictures, look

PATIENCE_SECONDS = 45.0  # what a process needs to begin anew, on a machine that has other work
MOST_STOPS = 60
FIRST_WORDS = "please refund the failed payments"


@dataclass(frozen=True)
class Person:
    """Who it is, and the window they look at."""

    name: str
    page: Page
    pictures: Pictures
    faults: list[str]
    """What went wrong in any window of the test; nothing may."""

    @property
    def is_on_a_phone(self) -> bool:
        """Whether the people and channels are behind a menu."""
        size = self.page.viewport_size
        return size is not None and size["width"] < 700

    @property
    def messages(self) -> Locator:
        """The messages of the channel."""
        return self.page.get_by_role("log", name="Messages")

    @property
    def thread(self) -> Locator:
        """The open thread."""
        return self.page.get_by_role("complementary", name="Thread")

    @property
    def window(self) -> Locator:
        """The modal or question over the page."""
        return self.page.get_by_role("dialog")

    @property
    def world(self) -> Locator:
        """What happens around the Slack, beside it."""
        return self.page.get_by_role("complementary", name="The world")

    def card(self, title: str) -> Locator:
        """The newest message whose heading has these words."""
        heading = self.page.get_by_role("heading", name=title)
        return self.messages.get_by_role("listitem").filter(has=heading).last

    async def becomes(self, name: str) -> None:
        """Choose who to be."""
        await self._choose("link", name)

    async def goes_to(self, place: str) -> None:
        """Go to a channel ("# approvals") or to the messages with the bot ("Messages")."""
        await self._choose("link", place)

    async def opens_home(self) -> None:
        """Open the bot's Home."""
        await self._choose("button", "Home")

    async def _choose(self, role: Literal["link", "button"], name: str) -> None:
        rail = self.page.get_by_role("navigation", name="People and channels")
        entry = rail.get_by_role(role, name=name)
        if self.is_on_a_phone:
            await self.page.get_by_role("button", name="Menu").click()
        if role == "button":
            await entry.click()
            return
        async with self.page.expect_event("load"):  # with the script of the page it leads to
            await entry.click()

    async def lets_happen(self, what: str, then: str) -> None:
        """Press a control of the world, and wait until it says what came of it."""
        async with self._at_the_world():
            await self.presses(what, within=self.world)
            await self.sees(then, within=self.world)

    async def reads_in_the_world(self, *words: str, picture: str = "") -> None:
        """Wait until the world says all these words."""
        async with self._at_the_world():
            await self.sees(*words, within=self.world)
            if picture:
                await self.looks(picture)

    @asynccontextmanager
    async def _at_the_world(self) -> AsyncIterator[None]:
        opener = self.page.get_by_role("button", name="The world", exact=True)
        is_closed = await opener.is_visible()
        if is_closed:
            await opener.click()
        yield
        if is_closed:
            await self.page.get_by_role("button", name="Close the world").click()

    async def asks_the_agent(self) -> None:
        """Send the first words of the story, which stand ready in #support."""
        field = self.page.get_by_label("Message #support")
        await expect(field).to_have_value(f"@vistobueno {FIRST_WORDS}")
        await self.page.get_by_role("button", name="Send").click()
        await expect(field).to_have_value("")

    async def writes(self, words: str, *, to: str) -> None:
        """Write into the field of that name and send it with the Enter key."""
        field = self.page.get_by_label(to)
        await field.fill(words)
        await field.press("Enter")
        await expect(field).to_have_value("")

    async def opens_the_thread_of(self, words: str) -> None:
        """Open the thread of the message with these words, once it has a reply."""
        message = self.messages.get_by_role("listitem").filter(has_text=words).last
        await message.get_by_role("link", name="repl").click()
        await expect(self.thread.get_by_role("listitem").nth(1)).to_be_visible()

    async def presses(self, button: str, *, within: Locator | None = None, times: Literal[1, 2] = 1) -> None:
        """Press a button, twice in a row like somebody who is in doubt if `times` is 2."""
        found = (within or self.page).get_by_role("button", name=button)
        await found.click(click_count=times)

    async def approves(self, card: Locator, *, times: Literal[1, 2] = 1) -> None:
        """Press Approve, and again if the app was too slow for Slack, which then asks for that."""
        approved = card.get_by_text("Approved by")
        unanswered = self.page.get_by_role("alert").get_by_text("Try again?")
        await self.presses("Approve", within=card, times=times)
        await expect(approved.or_(unanswered).first).to_be_visible()
        if not await approved.is_visible():
            await self.presses("Approve", within=card)
            await expect(approved).to_be_visible()

    async def fills_in(self, label: str, words: str) -> None:
        """Fill in a field of the open window."""
        await self.window.get_by_label(label).fill(words)

    async def sees(self, *words: str, within: Locator | None = None) -> None:
        """Wait until all these words are there to be read."""
        for each in words:
            await expect((within or self.page.get_by_role("main")).get_by_text(each).last).to_be_visible()

    async def sees_at(self, found: Locator) -> None:
        """Wait until it is there."""
        await expect(found).to_be_visible()

    async def does_not_see(self, found: Locator) -> None:
        """Wait until it is gone."""
        await expect(found).to_have_count(0)

    async def sees_behind(self, words: str) -> None:
        """Wait until the words are on the page, which an open window keeps out of reach."""
        await expect(self.page.locator("main").get_by_text(words)).to_be_visible()

    async def has_before_her(self, found: Locator) -> None:
        """Wait until it stands within the window's borders."""
        await expect(found).to_be_in_viewport()

    async def has_wholly_before_her(self, found: Locator) -> None:
        """Wait until all of it stands within the window's borders."""
        await expect(found).to_be_in_viewport(ratio=1)

    async def sees_all_of_it(self, card: Locator) -> None:
        """The whole card must be before her as she comes to it: nothing to scroll, and nothing to tap."""
        buttons = [card.get_by_role("button", name=name) for name in ("Approve", "Edit", "Reject")]
        for part in (card.get_by_role("heading"), *buttons):
            await expect(part).to_be_in_viewport(ratio=1)

    async def goes_on_to(self, title: str) -> None:
        """Press what says that a card of this title is new below."""
        await self.page.get_by_role("button", name=f"New: {title}").click()

    async def has_room_for(self, found: Locator, width: int) -> None:
        """It must be at least so many CSS pixels wide."""
        box = await found.bounding_box()
        assert box is not None and box["width"] >= width, box

    async def moves_to(self, role: Literal["link", "button"], name: str, *, backwards: bool = False) -> None:
        """Press the Tab key until the focus is there."""
        wanted = self.page.get_by_role(role, name=name)
        for _ in range(MOST_STOPS):
            await self.page.keyboard.press("Shift+Tab" if backwards else "Tab")
            if await wanted.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"the Tab key does not lead to {role} {name!r}")

    async def reloads_until(self, words: str, *, within: Locator | None = None) -> None:
        """Load the page again and again, as people do without script, until the words are there."""
        found = (within or self.page.get_by_role("main")).get_by_text(words).last

        async def reload_and_look() -> None:
            while not await found.is_visible():
                await self.page.reload()

        await asyncio.wait_for(reload_and_look(), PATIENCE_SECONDS)

    async def has_the_focus_on(self, found: Locator) -> None:
        """Wait until the keyboard acts on it."""
        await expect(found).to_be_focused()

    async def is_told(self, field: Locator, words: str) -> None:
        """Wait until a screen reader would say these words about a field."""
        await expect(field).to_have_accessible_description(words)

    async def is_described(self, field: Locator, words: str) -> None:
        """Wait until a screen reader would say these words about a field that is wrong."""
        await expect(field).to_have_accessible_description(re.compile(re.escape(words)))
        await expect(field).to_have_attribute("aria-invalid", "true")

    async def expects_no_other_page(self) -> None:
        """From now on a page that is loaded anew is a fault."""
        await self.page.wait_for_load_state()
        self.page.on("domcontentloaded", lambda page: self.faults.append(f"loaded anew: {page.url}"))

    @asynccontextmanager
    async def in_another_tab(self) -> AsyncIterator[None]:
        """Turn to another tab and come back: a page that is not looked at follows nothing."""
        hide = """hidden => {
            Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
            document.dispatchEvent(new Event('visibilitychange'));
        }"""
        await self.page.evaluate(hide, True)
        yield
        async with self.page.expect_request("**/live?*"):
            await self.page.evaluate(hide, False)

    async def looks(self, what: str, at: Locator | None = None) -> None:
        """Keep a picture (of `at`, from its top on), and find what would be wrong on any page."""
        if at is not None:
            await at.evaluate("one => one.scrollIntoView({block: 'start'})")
        await look(self.page, self.pictures, what)
