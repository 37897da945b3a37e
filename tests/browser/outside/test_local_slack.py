"""A Slack written by others takes the app, over Socket Mode and over signed HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.marks import IN_A_BROWSER
from tests.browser.outside.local_slack import FILE, FOLDER, LocalSlack, Transport
from tests.databases import Database

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from agent.tools.shop.provider import RefundProvider
    from tests.browser.outside.colleague import Colleague

pytestmark = [pytest.mark.debian(machine="x86_64", npm=(FOLDER, FILE)), *IN_A_BROWSER]
PICTURES = Path(__file__).parents[3] / "build" / "screenshots" / "local-slack"
ASK = "@vistobueno please refund the failed payments"


@dataclass(frozen=True)
class Scene:
    """Two people at the pages of that Slack, and the shop's provider."""

    slack: LocalSlack
    provider: RefundProvider
    leo: Colleague
    marta: Colleague


@asynccontextmanager
async def scene(
    database: Database, chromium: Browser, folder: Path, transport: Transport
) -> AsyncIterator[Scene]:
    """Everything running; Leo is in #support, and Marta in #approvals."""
    from tests.browser.outside import local_slack, product
    from tests.browser.outside.colleague import Colleague

    port = product.free_port()
    request_url = f"http://127.0.0.1:{port}/slack/events"
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(local_slack.running(folder, transport, request_url))
        provider = await stack.enter_async_context(product.running(database, slack, port))
        context = await chromium.new_context(viewport={"width": 1280, "height": 800})
        stack.push_async_callback(context.close)
        people = []
        for name, channel in (("Leo", "support"), ("Marta", "approvals")):
            person = Colleague(name, await context.new_page(), PICTURES / transport)
            await person.comes(slack.url)
            await person.goes_to(channel)
            people.append(person)
        yield Scene(slack, provider, *people)


@pytest.mark.parametrize("transport", ["socket", "events"])
async def test_a_slack_of_others_takes_the_app(
    database: Database, chromium: Browser, tmp_path: Path, transport: Transport
) -> None:
    async with scene(database, chromium, tmp_path, transport) as on:
        await edits_wrongly_and_rightly(on)
        assert [refund.payment_id for refund in on.provider.refunds] == ["pay_0007"]
        await rejects(on)
        assert len(on.provider.refunds) == 1
        await looks_up_and_approves(on)
        refunded = [refund.payment_id for refund in on.provider.refunds]
        assert (len(refunded), len(set(refunded))) == (38, 38)
        assert faults(await on.slack.log(), transport) == []


async def edits_wrongly_and_rightly(on: Scene) -> None:
    """Leo asks for 38; Marta makes it one, at the second attempt; Leo hears what was done."""
    await on.leo.writes(ASK)
    await leo_hears(on, "Approval asked for")
    card = on.marta.card("Refund 38 payments")
    await on.marta.looks("card")
    await on.marta.presses("Edit", card)
    await on.marta.fills_in("Payments", "pay_0007")
    await on.marta.fills_in("Reason", "x" * 201)
    await on.marta.presses("Preview changes", on.marta.window)
    await on.marta.sees("at most 200 characters", within=on.marta.window.locator(".modal-error"))
    await on.marta.looks("error")
    await on.marta.fills_in("Payments", "pay_0007")
    await on.marta.fills_in("Reason", "Only this one failed for good.")
    await on.marta.presses("Preview changes", on.marta.window)
    await on.marta.sees("Refund 1 payment · €81.63", within=on.marta.window)
    await on.marta.looks("preview")
    await on.marta.presses("Approve these changes", on.marta.window)
    await on.marta.has_no_window()
    await on.marta.has_nothing_to_press(on.marta.card("Refund 1 payment"))
    await leo_hears(on, "€81.63 in all.")
    await on.leo.looks("outcome")


async def rejects(on: Scene) -> None:
    """Leo asks for the rest; Marta says no and why; Leo hears that."""
    await on.leo.writes(ASK)
    card = on.marta.card("Refund 37 payments")
    await on.marta.presses("Reject", card)
    await on.marta.sees("Refund 37 payments", within=on.marta.window)  # what is typed before is lost
    await on.marta.fills_in("Reason", "Finance looks at these first.")
    await on.marta.looks("rejection")
    await on.marta.presses("Reject", on.marta.window)
    await on.marta.has_no_window()
    await on.marta.has_nothing_to_press(card)
    await leo_hears(on, "marta (support_lead) refused")
    assert any("refused (Finance looks at these first.)" in text for text in said(await on.slack.log()))


async def looks_up_and_approves(on: Scene) -> None:
    """Leo asks again; Marta finds it in her list and approves; Leo hears what was done."""
    await on.leo.writes(ASK)
    card = on.marta.card("Refund 37 payments")
    await on.marta.can_press("Approve", card)
    await on.marta.writes("/approvals")
    await on.marta.sees("only visible to you", within=on.marta.messages)
    assert "1 approval waits for you." in str(await on.slack.log())
    await on.marta.looks("list")
    await on.marta.presses("Approve", card)
    await on.marta.has_nothing_to_press(card)
    await leo_hears(on, "€4,038.37 in all.")


async def leo_hears(on: Scene, words: str) -> None:
    """Wait until the words are announced to him; they must stand in the thread of what he asked last."""
    await on.leo.hears(words)
    log = await on.slack.log()
    threads = [post.get("thread_ts") for post in posts(log) if words in post["text"]]
    assert threads[-1:] == mentions(log)[-1:] != [], "he reads it in another thread"


def posts(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that the app posted."""
    return [entry["detail"] for entry in log if entry["summary"] == "chat.postMessage"]


def said(log: list[dict[str, Any]]) -> list[str]:
    """Their texts."""
    return [str(post["text"]) for post in posts(log)]


def mentions(log: list[dict[str, Any]]) -> list[str]:
    """The `ts` of each message that mentions the app."""
    sent = [entry.get("detail") for entry in log if entry["direction"] == "to_bot"]
    bodies = [json.loads(one) if str(one).startswith('{"') else one for one in sent]
    events = [body.get("payload", body).get("event", {}) for body in bodies if isinstance(body, dict)]
    return [str(event["ts"]) for event in events if event.get("type") == "app_mention"]


def faults(log: list[dict[str, Any]], transport: Transport) -> list[str]:
    """What this Slack refused or missed: an error of a method, a request that was not answered well."""
    found = [entry["summary"] for entry in log if entry["direction"] == "internal"]
    sent = [entry for entry in log if entry["direction"] == "to_bot" and entry["kind"] != "socket"]
    answers = [entry["summary"] for entry in log if entry["direction"] == "from_bot"]
    good = sum(answer.startswith("ack " if transport == "socket" else "HTTP 200") for answer in answers)
    return found if good == len(sent) > 10 else [*found, f"{good} good answers to {len(sent)} requests"]
