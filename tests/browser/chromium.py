"""Debian's chromium, windows in it, and what no page may do: complain, fail, or ask another host."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page, Request, Response, async_playwright, expect

from tests.browser.look import Pictures
from tests.browser.person import PATIENCE_SECONDS, Person

PROGRAM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HEIGHTS = {320: 256, 390: 844, 1024: 768, 1280: 800}


@asynccontextmanager
async def running() -> AsyncIterator[Browser]:
    """The browser, for as long as it is needed; its own data is new each time."""
    expect.set_options(timeout=1000 * PATIENCE_SECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=PROGRAM, args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Windows:
    """The windows of one test on the page at `address`, and all that went wrong in them."""

    browser: Browser
    address: str
    pictures: Pictures
    faults: list[str] = field(default_factory=list)

    async def open(self, name: str, width: int, **more: Any) -> Person:
        """A window of that width, in which somebody has gone to the page and chosen who they are."""
        size = {"width": width, "height": HEIGHTS[width]}
        scale = 2 if width < 1000 else 1  # as phones have it
        context = await self.browser.new_context(viewport=size, device_scale_factor=scale, **more)
        context.set_default_timeout(1000 * PATIENCE_SECONDS)
        page = await context.new_page()
        self._watch(page)
        await page.goto(self.address)
        person = Person(name, page, self.pictures, self.faults)
        await person.becomes(name)
        return person

    def expect_faults(self, *words: str) -> None:
        """Each of these must have gone wrong, and nothing else."""
        missing = [word for word in words if not any(word in fault for fault in self.faults)]
        assert missing == [], self.faults
        self.forgive(*words)

    def forgive(self, *words: str) -> None:
        """These may have gone wrong."""
        self.faults[:] = [fault for fault in self.faults if not any(word in fault for word in words)]

    async def close(self) -> None:
        """Close them all."""
        for context in self.browser.contexts:
            await context.close()

    def _watch(self, page: Page) -> None:
        page.on("console", lambda said: self._note(f"the console says: {said.text}", said.type != "log"))
        page.on("pageerror", lambda error: self._note(f"the script failed: {error}"))
        page.on("request", self._see_request)
        page.on("requestfailed", self._see_failure)
        page.on("response", self._see_response)

    def _note(self, fault: str, bad: bool = True) -> None:
        if bad:
            self.faults.append(fault)

    def _see_request(self, request: Request) -> None:
        own = request.url.startswith((f"{self.address}/", "data:"))
        self._note(f"another host is asked: {request.url}", not own)

    def _see_failure(self, request: Request) -> None:
        # whoever leaves a page does not wait for what it still asks
        left = request.failure == "net::ERR_ABORTED"
        self._note(f"{request.url} failed: {request.failure}", not left)

    def _see_response(self, response: Response) -> None:
        self._note(f"{response.url} was answered {response.status}", response.status >= 400)
