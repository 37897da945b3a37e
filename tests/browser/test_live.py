"""What happens is shown as it happens: no page is loaded anew, and nothing is lost that one is doing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bot.sandbox import RateLimits, Sandbox
from tests.browser.app import App, go
from tests.browser.marks import IN_A_BROWSER
from tests.sandbox.drive import Json, client_of

if TYPE_CHECKING:
    from playwright.async_api import FloatRect, Locator

    from tests.browser.chromium import Windows
    from tests.browser.person import Person

pytestmark = IN_A_BROWSER


async def approvals(windows: Windows, width: int = 1280) -> Person:
    """Marta at #approvals; from here on her page is not loaded anew."""
    marta = await windows.open("Marta", width)
    await marta.goes_to("# approvals")
    await marta.sees("Nobody has written here yet.")
    await marta.expects_no_other_page()
    return marta


async def test_a_message_comes_without_a_new_page_and_what_is_typed_stays(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    field = marta.page.get_by_label("Message #approvals")
    await field.fill("half a thought")
    await field.press("ArrowLeft")
    await app.posts("it is here")
    await marta.sees("it is here")
    await marta.page.keyboard.type("X")
    assert await field.input_value() == "half a thoughXt"


async def test_the_focus_stays_on_a_button_while_its_card_changes(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    ts = await app.posts("x", go("Approve"), go("Edit"))
    edit = marta.page.get_by_role("button", name="Edit")
    await edit.focus()
    await app.posts("another message")
    await app.changes(ts, "x", go("Approve"), go("Edit"), title="A changed card")
    await marta.sees("another message", "A changed card")
    await marta.has_the_focus_on(edit)


async def test_decided_cards_lose_their_buttons_and_keep_their_place(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    ts = await app.posts("x", go("Approve"))
    await app.posts("the last message")
    await marta.presses("Approve")
    await app.changes(ts, "It is decided.")
    await marta.sees("It is decided.")
    await marta.does_not_see(marta.page.get_by_role("button", name="Approve"))
    assert await marta.messages.get_by_role("listitem").last.inner_text() != "It is decided."


async def test_a_message_that_is_deleted_goes_and_the_others_stay(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    await app.posts("the first")
    ts = await app.posts("the second")
    last = await app.posts("the third")
    await marta.sees("the first", "the second", "the third")
    await app.client.chat_delete(channel="C0APPROVALS", ts=ts)
    await marta.does_not_see(marta.page.get_by_text("the second"))
    await marta.sees("the first", "the third")
    await app.client.chat_delete(channel="C0APPROVALS", ts=last)
    await marta.does_not_see(marta.page.get_by_text("the third"))
    await marta.sees("the first")


async def test_who_is_at_the_end_sees_what_comes_next_and_who_reads_above_is_left_there(
    app: App, on_app: Windows
) -> None:
    marta = await approvals(on_app)
    await app.posts_some(40, before=marta)
    await marta.sees("message 39")
    await marta.has_before_her(marta.page.get_by_text("message 39"))
    first = marta.page.get_by_text("message 0", exact=True)
    await first.scroll_into_view_if_needed()
    await app.posts("the newest")
    await marta.sees("the newest")
    await marta.has_before_her(first)


async def test_times_are_those_of_the_machine_one_sits_at(app: App, on_app: Windows) -> None:
    await app.posts("it is here")
    marta = await on_app.open("Marta", 1280, timezone_id="Asia/Tokyo")
    await marta.goes_to("# approvals")
    await marta.sees_at(marta.messages.get_by_title("(JST)"))
    await marta.page.reload()
    await marta.sees_at(marta.messages.get_by_title("(JST)"))


async def test_what_is_new_elsewhere_is_marked(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    await app.client.chat_postMessage(channel="C0SUPPORT", text="<@U0MARTA> and <@U0LEO>, look here")
    rail = marta.page.get_by_role("navigation", name="People and channels")
    await marta.sees_at(rail.get_by_role("link", name="# support 1 new for you"))
    await marta.sees_at(rail.get_by_role("link", name="Leo Colleague 1 new for you"))


async def test_a_screen_reader_is_told_of_messages_and_of_what_went_wrong(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    await app.posts("read aloud")
    log = marta.page.get_by_role("log", name="Messages")
    await marta.sees("read aloud", within=log)
    assert await log.get_attribute("aria-live") == "polite"
    await marta.writes("/unknown", to="Message #approvals")
    await marta.sees("/unknown is not a valid command", within=log)


async def test_the_page_follows_again_when_its_tab_has_been_hidden(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app)
    async with marta.in_another_tab():
        await app.posts("said meanwhile")
    await marta.sees("said meanwhile")


async def test_a_workspace_that_is_away_is_noticed_and_one_that_begins_anew_is_followed_again(
    app: App, on_app: Windows
) -> None:
    marta = await approvals(on_app)
    for number in range(3):
        await app.posts(f"before {number}")
    await marta.sees("before 2")
    await app.sandbox.stop()
    lost = marta.page.get_by_role("alert").get_by_text("The workspace does not answer")
    await marta.sees_at(lost)
    port = int(app.sandbox.base_url.rpartition(":")[2])
    async with Sandbox.running(port=port, rate_limits=RateLimits.off()) as anew:
        await client_of(anew).chat_postMessage(channel="C0APPROVALS", text="a new beginning")
        await marta.sees("a new beginning")
        await marta.does_not_see(lost)
        await marta.does_not_see(marta.page.get_by_text("before"))
        on_app.forgive("net::ERR_")  # while nobody answered


async def test_a_thread_that_a_new_workspace_does_not_have_is_said(app: App, on_app: Windows) -> None:
    await app.posts("a root")
    marta = await on_app.open("Marta", 1280)
    await marta.goes_to("# approvals")
    await marta.messages.get_by_role("link", name="Reply in thread").click()
    await marta.sees("a root", within=marta.thread)
    await app.sandbox.stop()
    port = int(app.sandbox.base_url.rpartition(":")[2])
    async with Sandbox.running(port=port, rate_limits=RateLimits.off()):
        await marta.sees_at(marta.page.get_by_role("alert").get_by_text("There is no message"))
    on_app.forgive("net::ERR_")  # while nobody answered
    on_app.expect_faults("404")


@pytest.mark.parametrize("pause", [0.3, 1.0])
async def test_a_second_press_at_the_same_place_does_not_decide_what_came_there(
    app: App, on_app: Windows, pause: float
) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(20, before=marta)
    ts = await app.posts("x", go("Approve"))
    decides_and_asks_again(app, ts)
    approve = marta.page.get_by_role("button", name="Approve")
    await marta.has_before_her(approve)
    box = await settled(approve)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await marta.page.mouse.click(x, y)
    await marta.sees("It is decided.", "Asked again")
    await asyncio.sleep(pause)
    await marta.page.mouse.click(x, y)
    await marta.writes("that was all", to="Message #approvals")  # a press before it would have come
    await marta.sees("that was all")
    assert [payload["container"]["message_ts"] for payload in app.payloads] == [ts]


async def test_who_has_pressed_something_is_not_moved_and_hears_that_there_is_more(
    app: App, on_app: Windows
) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(20, before=marta)
    ts = await app.posts("x", go("Approve"))
    decides_and_asks_again(app, ts)
    await marta.presses("Approve")
    more = marta.page.get_by_role("button", name="New: Asked again")
    await marta.sees_at(more)
    await marta.has_before_her(marta.page.get_by_text("It is decided."))
    await marta.looks("new messages below")
    await more.click()
    await marta.has_before_her(marta.page.get_by_role("button", name="Approve"))
    await marta.does_not_see(more)
    await marta.has_the_focus_on(marta.messages)
    await app.posts("and one more")
    await marta.has_before_her(marta.page.get_by_text("and one more"))


TALL = 40
"""Lines that fill more than a phone."""


@pytest.mark.parametrize("note", ["none", "before", "after"])
async def test_what_a_press_has_changed_is_seen_from_its_top_and_what_is_new_is_named(
    app: App, on_app: Windows, note: str
) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(20, before=marta)
    ts = await app.posts("x", go("Approve"), title="The first card", length=24)

    async def answers() -> None:
        await app.client.chat_postEphemeral(
            channel="C0APPROVALS", user="U0MARTA", text="You approved it. " * 9
        )

    async def decide(payload: Json) -> None:
        if note == "before":
            await answers()
        await app.changes(ts, "It is decided.", title="The first card", length=24)
        if note == "after":
            await answers()
        await app.changes(ts, "The facts moved.", title="The first card", length=28)
        await app.posts("x", go("Approve"), title="The second card", length=24)

    app.on_press = decide
    first, second = marta.card("The first card"), marta.card("The second card")
    await marta.presses("Approve", within=first)
    await marta.sees_at(marta.page.get_by_role("button", name="New: The second card"))
    for seen in (first.get_by_role("heading"), first.get_by_text("The facts moved.")):
        await marta.has_wholly_before_her(seen)
    await marta.looks("what the press has changed")
    await marta.goes_on_to("The second card")
    for seen in (second.get_by_role("heading"), second.get_by_role("button", name="Approve")):
        await marta.has_wholly_before_her(seen)
    await marta.does_not_see(marta.page.get_by_role("button", name="New"))


async def test_a_card_that_is_too_tall_is_shown_from_its_top_however_one_comes_to_it(
    app: App, on_app: Windows
) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(20, before=marta)
    await marta.has_before_her(marta.page.get_by_text("message 19"))
    ts = await app.posts("x", go("Approve"), length=TALL)
    title = marta.card("A card").get_by_role("heading")
    await marta.has_wholly_before_her(title)  # it has come
    await app.changes(ts, "changed", go("Approve"), length=TALL)
    await marta.sees("changed")
    await marta.has_wholly_before_her(title)
    again = await on_app.open("Marta", 390)
    await again.goes_to("# approvals")
    title = again.card("A card").get_by_role("heading")
    await again.has_wholly_before_her(title)
    await again.page.reload()
    await again.has_wholly_before_her(title)


async def test_a_card_that_waits_is_not_cut_by_what_was_said_below_it(app: App, on_app: Windows) -> None:
    await app.posts_some(20)
    await app.posts("x", go("Approve"), length=20)
    for number in range(4):
        await app.posts(f"below {number}")
    marta = await on_app.open("Marta", 390)
    await marta.goes_to("# approvals")
    await marta.has_wholly_before_her(marta.card("A card").get_by_role("heading"))
    await marta.writes("I see", to="Message #approvals")
    await marta.has_wholly_before_her(marta.page.get_by_text("I see"))
    await app.posts("and so do I")
    await marta.has_wholly_before_her(marta.page.get_by_text("and so do I"))


async def test_the_first_of_many_new_messages_comes_first(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(30, before=marta)
    await marta.has_before_her(marta.page.get_by_text("message 29"))
    await marta.page.get_by_text("message 0", exact=True).scroll_into_view_if_needed()
    for number in range(30):
        await app.posts(f"new {number}")
    more = marta.page.get_by_role("button", name="New messages")
    await more.click()
    await marta.has_wholly_before_her(marta.page.get_by_text("new 0", exact=True))
    await marta.does_not_see(more)


@pytest.mark.parametrize("grows", ["never", "before", "after"])
async def test_the_private_answer_to_a_press_comes_before_ones_eyes_and_stays_there(
    app: App, on_app: Windows, grows: str
) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(20, before=marta)
    ts = await app.posts("x", go("Approve"))
    note = "You may not decide this. " * 8

    async def refuse(payload: Json) -> None:
        if grows == "before":
            await app.changes(ts, "x", go("Approve"), title="A card that has grown" * 7)
        await app.client.chat_postEphemeral(channel="C0APPROVALS", user="U0MARTA", text=note)

    app.on_press = refuse
    await marta.presses("Approve")
    answer = marta.messages.get_by_role("listitem").filter(has_text="Only visible to you")
    if grows == "after":
        await marta.has_wholly_before_her(answer.get_by_text("You may not decide this."))
        await app.changes(ts, "x", go("Approve"), title="A card that has grown" * 7)
        await marta.sees("A card that has grown")
    await marta.has_wholly_before_her(answer.get_by_text("You may not decide this."))
    await marta.looks("a private answer")
    await marta.does_not_see(marta.page.get_by_role("button", name="New messages"))


async def test_a_private_note_leaves_who_reads_above_where_they_are(app: App, on_app: Windows) -> None:
    marta = await approvals(on_app, 390)
    await app.posts_some(40, before=marta)
    first = marta.page.get_by_text("message 0", exact=True)
    await first.scroll_into_view_if_needed()
    await app.client.chat_postEphemeral(channel="C0APPROVALS", user="U0MARTA", text="a note")
    await marta.sees_at(marta.page.get_by_role("button", name="New messages"))
    await marta.has_before_her(first)


async def test_a_button_that_came_under_the_pointer_takes_no_press_at_first(
    app: App, on_app: Windows
) -> None:
    marta = await approvals(on_app)
    ts = await app.posts("x", go("Approve"), title="The first card")
    approve = marta.page.get_by_role("button", name="Approve")
    box = await settled(approve)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await app.posts("x", go("Reject"), title="The second card")
    await marta.sees("The second card")
    await app.client.chat_delete(channel="C0APPROVALS", ts=ts)
    await marta.does_not_see(approve)
    await marta.page.mouse.click(x, y)
    reject = marta.page.get_by_role("button", name="Reject")
    moved = await settled(reject)
    assert abs(moved["y"] - box["y"]) < box["height"] / 2, "the test would not hit it"
    await marta.page.mouse.click(x, y)
    await marta.writes("that was all", to="Message #approvals")
    await marta.sees("that was all")
    assert [payload["actions"][0]["action_id"] for payload in app.payloads] == ["reject"]


def decides_and_asks_again(app: App, ts: str) -> None:
    """Let a press decide that card, and a second one be asked for by the next."""

    async def decide(payload: Json) -> None:
        if payload["container"]["message_ts"] == ts:
            await app.changes(ts, "It is decided.\nby\nMarta")  # no link comes to where the button was
            await app.posts("x", go("Approve"), title="Asked again")

    app.on_press = decide


async def settled(button: Locator) -> FloatRect:
    """Where a button is, once it takes presses."""
    await button.click(trial=True)
    box = await button.bounding_box()
    assert box is not None
    return box
