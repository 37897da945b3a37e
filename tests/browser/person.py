"""A person at a window: they find things by what they are called, and wait for what they expect to see."""

from dataclasses import dataclass
from typing import Literal

from playwright.async_api import Locator, Page, expect

from tests.browser.look import Pictures, look

FIRST_WORDS = "please refund the failed payments"


@dataclass(frozen=True)
class Person:
    """Who it is, and the window they look at."""

    name: str
    page: Page
    pictures: Pictures

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
        await entry.click()

    async def asks_the_agent(self) -> None:
        """Send the first words of the story, which stand ready where nobody has written."""
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
        await self.sees("On it.", within=self.thread)

    async def presses(self, button: str, *, within: Locator | None = None, times: Literal[1, 2] = 1) -> None:
        """Press a button, twice in a row like somebody who is in doubt if `times` is 2."""
        found = (within or self.page).get_by_role("button", name=button)
        await found.click(click_count=times)

    async def fills_in(self, label: str, words: str) -> None:
        """Fill in a field of the open window."""
        await self.window.get_by_label(label).fill(words)

    async def sees(self, *words: str, within: Locator | None = None) -> None:
        """Wait until all these words are there to be read."""
        for each in words:
            await expect((within or self.page.get_by_role("main")).get_by_text(each).last).to_be_visible()

    async def looks(self, what: str) -> None:
        """Keep a picture, and find what would be wrong on any page."""
        await look(self.page, self.pictures, what)
