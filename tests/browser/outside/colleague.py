"""A person at local-slack's page, which has few names for what is on it: most is found by its classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Locator, Page, expect


@dataclass(frozen=True)
class Colleague:
    """Who it is, and the window they look at; pictures go into `folder`."""

    name: str
    page: Page
    folder: Path

    @property
    def messages(self) -> Locator:
        """The messages of the channel, without those of threads."""
        return self.page.locator(".messages .msg")

    @property
    def thread(self) -> Locator:
        """The open thread."""
        return self.page.locator(".thread-pane")

    @property
    def window(self) -> Locator:
        """The modal."""
        return self.page.locator(".modal")

    def card(self, title: str) -> Locator:
        """The newest message with these words."""
        return self.messages.filter(has_text=title).last

    async def comes(self, address: str) -> None:
        """Open the page and choose who to be."""
        await self.page.goto(address)
        await self.page.get_by_label("Act as").select_option(label=self.name)

    async def goes_to(self, channel: str) -> None:
        """Open a channel."""
        await self.page.locator(".sidebar-item", has_text=channel).click()
        await expect(self.page.locator(".channel-title")).to_contain_text(channel)

    async def writes(self, words: str) -> None:
        """Write into the channel."""
        field = self.page.locator("main .composer-input")
        await field.fill(words)
        await field.press("Enter")
        await expect(field).to_have_value("")

    async def hears(self, words: str) -> None:
        """Wait until a reply is announced whose first 80 characters have these words; open it."""
        bell, panel = self.page.locator(".notif-bell"), self.page.locator(".notif-panel")
        await bell.click()
        await panel.locator(".notif-item", has_text=words).first.click()
        await expect(self.thread.locator(".msg").last).to_be_visible()
        await self.thread.locator(".thread-x").click()

    async def presses(self, button: str, within: Locator) -> None:
        """Press a button."""
        await within.get_by_role("button", name=button, exact=True).click()

    async def fills_in(self, label: str, words: str) -> None:
        """Fill in a field of the window; what is not filled in arrives empty there."""
        field = self.window.locator(".bk-input", has=self.page.get_by_text(label, exact=True))
        await field.locator("input").fill(words)

    async def sees(self, *words: str, within: Locator) -> None:
        """Wait until all these words are there to be read."""
        for each in words:
            await expect(within.get_by_text(each).last).to_be_visible()

    async def can_press(self, button: str, within: Locator) -> None:
        """Wait until there is a button to press."""
        await expect(within.get_by_role("button", name=button, exact=True)).to_be_visible()

    async def has_nothing_to_press(self, message: Locator) -> None:
        """Wait until the message offers no choice any more."""
        await expect(message.locator(".bk-actions")).to_have_count(0)

    async def has_no_window(self) -> None:
        """Wait until the modal is gone."""
        await expect(self.window).to_have_count(0)

    async def looks(self, what: str) -> None:
        """Keep a picture."""
        await self.page.screenshot(path=self.folder / f"{what.replace(' ', '-')}.png")
