"""The page: what changes is sent to those who look at it, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import answer

Json = dict[str, Any]


class Stream:
    """The events of one open page."""

    def __init__(self, answered: aiohttp.ClientResponse) -> None:
        self._answered = answered

    async def next(self) -> Json:
        """The next event."""
        async with asyncio.timeout(5):
            while line := (await self._answered.content.readline()).decode():
                if line.startswith("data: "):
                    event: Json = json.loads(line.removeprefix("data: "))
                    return event
        raise AssertionError("the stream has ended")

    async def end(self) -> bytes:
        """What comes until the stream ends."""
        async with asyncio.timeout(5):
            return await self._answered.content.read()


@asynccontextmanager
async def following(browser: Browser, user: str, inside: str) -> AsyncIterator[Stream]:
    address = f"{browser.sandbox.base_url}/live?as={user}&in={inside}"
    async with browser.http.get(address) as answered:
        assert (answered.status, answered.content_type) == (200, "text/event-stream")
        yield Stream(answered)


async def test_a_new_message_reaches_an_open_page(browser: Browser, client: AsyncWebClient) -> None:
    async with following(browser, "U0MARTA", "C0APPROVALS") as stream:
        first = await stream.next()
        assert set(first["regions"]) == {"bar", "rail", "stream", "replies", "windows"}
        await answer(client, "chat.postMessage", channel="C0APPROVALS", text="a &lt;card&gt;")
        news = await stream.next()
    assert set(news["regions"]) == {"stream"}
    assert "a &lt;card&gt;" in news["regions"]["stream"]
    assert news["version"] > first["version"]


async def test_a_message_elsewhere_only_marks_its_channel(browser: Browser, client: AsyncWebClient) -> None:
    async with following(browser, "U0MARTA", "C0APPROVALS") as stream:
        await stream.next()
        await answer(client, "chat.postMessage", channel="C0SUPPORT", text="elsewhere")
        news = await stream.next()
    assert set(news["regions"]) == {"rail"}
    assert "elsewhere" not in news["regions"]["rail"]


async def test_a_private_note_of_another_person_is_not_sent(browser: Browser, client: AsyncWebClient) -> None:
    async with following(browser, "U0MARTA", "C0APPROVALS") as stream:
        await stream.next()
        for user in ("U0LEO", "U0MARTA"):
            await answer(client, "chat.postEphemeral", channel="C0APPROVALS", user=user, text=f"for {user}")
        news = await stream.next()
    assert "for U0MARTA" in news["regions"]["stream"]
    assert "for U0LEO" not in news["regions"]["stream"]


async def test_a_message_one_looks_at_is_not_marked_as_new(browser: Browser, client: AsyncWebClient) -> None:
    async with following(browser, "U0MARTA", "C0APPROVALS") as stream:
        await stream.next()
        await answer(client, "chat.postMessage", channel="C0APPROVALS", text="<@U0MARTA> decide")
        await stream.next()
    assert "new for you" not in (await browser.open("U0MARTA", "C0SUPPORT")).html


async def test_an_open_page_does_not_keep_the_sandbox_from_ending() -> None:
    sandbox = await Sandbox.start(rate_limits=RateLimits.off())
    async with aiohttp.ClientSession() as http, following(Browser(sandbox, http), "U0LEO", "dm") as stream:
        await stream.next()
        async with asyncio.timeout(0.9):
            await sandbox.stop()
        assert await stream.end() == b"\n"


async def test_a_page_whose_place_is_gone_is_left_as_it_is(browser: Browser, client: AsyncWebClient) -> None:
    async with following(browser, "U0GUEST", "C0APPROVALS") as stream:
        await stream.next()
        browser.sandbox.channel("C0APPROVALS").members.discard("U0GUEST")
        await answer(client, "chat.postMessage", channel="C0APPROVALS", text="secret")
        browser.sandbox.channel("C0APPROVALS").members.add("U0GUEST")
        await answer(client, "chat.postMessage", channel="C0APPROVALS", text="open")
        assert "open" in (await stream.next())["regions"]["stream"]
