"""Modals and questions: the focus goes in, stays in and comes back; what is typed is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.browser.app import App, go
from tests.browser.marks import IN_A_BROWSER
from tests.sandbox.drive import Json
from tests.sandbox.parts import actions, confirm, field, modal, plain, section, text_input

if TYPE_CHECKING:
    from playwright.async_api import Route

    from tests.browser.chromium import Windows
    from tests.browser.person import Person

pytestmark = IN_A_BROWSER

REASON = field(text_input(), "Reason", block_id="reason")
TALL = 40  # lines that fill more than a phone
NOTE = field(text_input(), "Note", block_id="note", optional=True)
ASKS = go("Delete", confirm=confirm("Really?", yes="Delete it", no="Keep it"))


async def before_a_card(app: App, windows: Windows, *elements: Json) -> Person:
    """Marta before a card with these buttons, in a page that is not loaded anew."""
    await app.posts("x", *(elements or [go("Approve"), go("Edit")]))
    marta = await windows.open("Marta", 1280)
    await marta.goes_to("# approvals")
    await marta.sees("A card")
    await marta.expects_no_other_page()
    return marta


def opens(app: App, *blocks: Json) -> None:
    """Let every press open a modal."""

    async def open_modal(payload: Json) -> None:
        if payload["container"]["type"] == "message":
            await app.client.views_open(trigger_id=payload["trigger_id"], view=modal(*blocks))

    app.on_press = open_modal


async def test_the_focus_goes_into_a_modal_stays_inside_and_comes_back(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, REASON, NOTE)
    edit = marta.page.get_by_role("button", name="Edit")
    await edit.focus()
    await marta.page.keyboard.press("Enter")
    await marta.has_the_focus_on(marta.window.get_by_label("Reason"))
    for _ in range(12):
        await marta.page.keyboard.press("Tab")
        at = await marta.page.evaluate("document.activeElement.closest('main, nav, dialog')?.nodeName")
        assert at in {"DIALOG", None}  # None: the browser's own controls
    await marta.page.keyboard.press("Escape")
    await marta.does_not_see(marta.window)
    await marta.has_the_focus_on(edit)


async def test_a_modal_that_opens_empty_takes_the_focus_when_it_is_filled(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opened: list[str] = []

    async def open_empty(payload: Json) -> None:
        view = {"type": "modal", "title": plain("Edit"), "blocks": [section("Opening…")]}
        answer = await app.client.views_open(trigger_id=payload["trigger_id"], view=view)
        opened.append(answer["view"]["id"])

    app.on_press = open_empty
    await marta.presses("Edit")
    await marta.sees("Opening…", within=marta.window)
    await app.client.views_update(view_id=opened[0], view=modal(REASON, NOTE))
    await marta.has_the_focus_on(marta.window.get_by_label("Reason"))


async def test_what_is_typed_into_a_modal_is_kept_while_the_page_goes_on(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, REASON, NOTE)
    await marta.presses("Edit")
    await marta.fills_in("Note", "not yet sent")
    await app.posts("said meanwhile")
    await marta.sees_behind("said meanwhile")
    note = marta.window.get_by_label("Note")
    await marta.has_the_focus_on(note)
    assert await note.input_value() == "not yet sent"
    view_id = app.sandbox.person("U0MARTA").view.id
    await app.client.views_update(view_id=view_id, view=modal(section("Also this"), REASON, NOTE))
    await marta.sees("Also this", within=marta.window)
    await marta.has_the_focus_on(note)
    assert await note.input_value() == "not yet sent"


async def test_what_a_window_has_changed_is_seen_from_its_top_however_long_it_was_open(
    app: App, on_app: Windows
) -> None:
    await app.posts_some(20)
    ts = await app.posts("x", go("Edit"), length=TALL)
    marta = await on_app.open("Marta", 390)
    await marta.goes_to("# approvals")
    opens(app, REASON)

    async def decide(payload: Json) -> None:
        await app.changes(ts, "It is decided.", length=TALL)

    app.on_submit = decide
    await marta.page.locator("#stream").evaluate("stream => { stream.scrollTop = stream.scrollHeight; }")
    await marta.presses("Edit")
    await marta.fills_in("Reason", "because")
    await marta.page.evaluate("touched.at -= 60000")  # a minute goes by
    await marta.presses("Send", within=marta.window)
    await marta.sees("It is decided.")
    await marta.has_wholly_before_her(marta.card("A card").get_by_role("heading"))


async def test_what_is_wrong_stands_at_its_field_and_has_the_focus(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, REASON, NOTE)

    async def refuse(payload: Json) -> Json:
        return {"response_action": "errors", "errors": {"note": "Say it in another way."}}

    app.on_submit = refuse
    await marta.presses("Edit")
    await marta.fills_in("Reason", "because")
    await marta.fills_in("Note", "hm")
    await marta.presses("Send", within=marta.window)
    note = marta.window.get_by_label("Note")
    await marta.has_the_focus_on(note)
    await marta.is_described(note, "Say it in another way.")
    assert await marta.window.get_by_label("Reason").input_value() == "because"


async def test_what_the_client_refuses_itself_is_said_at_the_field_too(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, REASON, NOTE)
    await marta.presses("Edit")
    await marta.presses("Send", within=marta.window)
    reason = marta.window.get_by_label("Reason")
    await marta.is_described(reason, "Please complete this required field.")
    await marta.has_the_focus_on(reason)
    assert [payload["type"] for payload in app.payloads] == ["block_actions"]


async def test_a_question_comes_before_the_press_and_no_message_takes_it_away(
    app: App, on_app: Windows
) -> None:
    marta = await before_a_card(app, on_app, ASKS)
    await marta.presses("Delete")
    await marta.sees("Really?", within=marta.window)
    async with marta.in_another_tab():  # afterwards all of the page comes anew
        await app.posts("said meanwhile")
    await marta.sees_behind("said meanwhile")
    await marta.sees_at(marta.window.get_by_role("link", name="Keep it"))
    assert app.payloads == []
    await marta.presses("Delete it", within=marta.window)
    await marta.does_not_see(marta.window)
    assert [payload["actions"][0]["action_id"] for payload in app.payloads] == ["delete"]


async def test_a_question_that_is_answered_goes_where_the_page_is_ahead_of_the_answer(
    app: App, on_app: Windows
) -> None:
    marta = await before_a_card(app, on_app, ASKS)
    await marta.presses("Delete")

    async def overtake(route: Route) -> None:
        answer = await route.fetch()
        await app.posts("said meanwhile")
        await marta.sees_behind("said meanwhile")
        await route.fulfill(response=answer)

    await marta.page.route("**/press?*", overtake)
    await marta.presses("Delete it", within=marta.window)
    await marta.does_not_see(marta.window)
    await marta.has_the_focus_on(marta.page.get_by_role("button", name="Delete"))
    assert len(app.payloads) == 1


async def test_a_question_that_comes_late_brings_no_older_window_with_it(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, section("as it was"), actions(ASKS))
    await marta.presses("Edit")
    await marta.sees("as it was", within=marta.window)

    async def overtake(route: Route) -> None:
        answer = await route.fetch()
        view_id = app.sandbox.person("U0MARTA").view.id
        await app.client.views_update(view_id=view_id, view=modal(section("as it is"), actions(ASKS)))
        await marta.sees("as it is", within=marta.window)
        await route.fulfill(response=answer)

    await marta.page.route("**/press?*", overtake)
    await marta.presses("Delete", within=marta.window)
    await marta.sees("Really?", within=marta.window)
    assert await marta.page.locator("dialog").get_by_text("as it was").count() == 0


async def test_the_answer_of_an_earlier_press_takes_no_question_away(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app, go("Approve"), ASKS)
    asked = asyncio.Event()

    async def wait(payload: Json) -> None:
        await asked.wait()
        await app.posts("said before the answer")

    app.on_press = wait
    await marta.presses("Approve")
    await marta.presses("Delete")
    await marta.sees("Really?", within=marta.window)
    asked.set()
    await marta.page.locator("button[aria-busy='true']").wait_for(state="detached")
    await marta.sees_behind("said before the answer")
    await marta.sees_at(marta.window.get_by_role("button", name="Delete it"))


async def test_a_question_that_is_denied_presses_nothing_and_gives_the_focus_back(
    app: App, on_app: Windows
) -> None:
    marta = await before_a_card(app, on_app, ASKS)
    for answer in ("click", "Escape"):
        await marta.presses("Delete")
        keep = marta.window.get_by_role("link", name="Keep it")
        await (keep.click() if answer == "click" else keep.press("Escape"))
        await marta.does_not_see(marta.window)
        await marta.has_the_focus_on(marta.page.get_by_role("button", name="Delete"))
    assert app.payloads == []


async def test_a_modal_opens_in_the_window_that_asked_for_it_and_in_no_other(
    app: App, on_app: Windows
) -> None:
    opens(app, REASON)
    there, here = await before_a_card(app, on_app), await on_app.open("Marta", 390)
    await here.goes_to("# approvals")
    await here.presses("Edit")
    await here.sees("Reason", within=here.window)
    await app.posts("said meanwhile")
    await there.sees("said meanwhile")
    assert await there.window.count() == 0
    await here.page.reload()
    await here.sees("Reason", within=here.window)
    await here.fills_in("Reason", "because")
    await here.presses("Send", within=here.window)
    await here.does_not_see(here.window)
    assert [payload["type"] for payload in app.payloads] == ["block_actions", "view_submission"]


async def test_a_modal_opened_from_elsewhere_is_over_the_page_at_once(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    trigger = app.sandbox.slack.triggers.issue("U0MARTA")
    await app.client.views_open(trigger_id=trigger, view=modal(REASON))
    await marta.has_the_focus_on(marta.window.get_by_label("Reason"))


async def test_the_focus_stays_at_the_card_whose_pressed_button_has_gone(app: App, on_app: Windows) -> None:
    ts = await app.posts("x", go("Approve"), go("Reject"))
    marta = await at_approvals(on_app)

    async def decide(payload: Json) -> None:
        await app.changes(ts, "It is decided.")

    app.on_press = decide
    approve = marta.page.get_by_role("button", name="Approve")
    await approve.focus()
    await marta.page.keyboard.press("Enter")
    await marta.sees("It is decided.")
    await marta.has_the_focus_on(marta.messages.get_by_role("listitem"))
    await marta.page.keyboard.press("Enter")
    await app.client.chat_delete(channel="C0APPROVALS", ts=ts)
    await marta.sees("Nobody has written here yet.")
    await marta.has_the_focus_on(marta.messages)
    assert len(app.payloads) == 1


async def test_the_focus_goes_to_the_card_when_its_window_decided_it(app: App, on_app: Windows) -> None:
    ts = await app.posts("x", go("Reject"))
    marta = await at_approvals(on_app)
    opens(app, REASON)

    async def decide(payload: Json) -> None:
        await app.changes(ts, "It is decided.")

    app.on_submit = decide
    await marta.presses("Reject")
    await marta.fills_in("Reason", "because")
    await marta.page.keyboard.press("Enter")
    await marta.does_not_see(marta.window)
    await marta.sees("It is decided.")
    await marta.has_the_focus_on(marta.messages.get_by_role("listitem"))


async def test_a_window_that_was_open_when_the_page_came_leaves_the_focus_at_the_messages(
    app: App, on_app: Windows
) -> None:
    marta = await before_a_card(app, on_app)
    trigger = app.sandbox.slack.triggers.issue("U0MARTA")
    await app.client.views_open(trigger_id=trigger, view=modal(REASON))
    await marta.has_the_focus_on(marta.window.get_by_label("Reason"))
    await marta.page.keyboard.press("Escape")
    await marta.does_not_see(marta.window)
    await marta.has_the_focus_on(marta.messages)


async def at_approvals(windows: Windows) -> Person:
    marta = await windows.open("Marta", 1280)
    await marta.goes_to("# approvals")
    await marta.expects_no_other_page()
    return marta


FIELDS = [field(text_input(), f"Field {number}", block_id=f"b{number}") for number in range(12)]


async def on_a_phone_in_a_long_window(app: App, windows: Windows) -> Person:
    """Marta in a window of which a phone shows the half; every field of it is filled in."""
    await app.posts("x", go("Edit"))
    marta = await windows.open("Marta", 390)
    await marta.goes_to("# approvals")
    await marta.expects_no_other_page()
    opens(app, *FIELDS)
    await marta.presses("Edit")
    for number in range(12):
        await marta.window.get_by_label(f"Field {number}", exact=True).fill("x")
    return marta


async def test_a_submission_that_failed_is_said_where_one_looks(app: App, on_app: Windows) -> None:
    marta = await on_a_phone_in_a_long_window(app, on_app)

    async def fail(payload: Json) -> Json:
        return {"response_action": "of no kind"}

    app.on_submit = fail
    said = marta.window.get_by_role("alert")
    for _ in range(2):
        await marta.presses("Send", within=marta.window)
        await marta.has_wholly_before_her(said)
        await marta.sees("We had some trouble connecting. Try again?", within=said)
        await marta.has_the_focus_on(marta.window.get_by_role("button", name="Send"))
    await marta.looks("it failed")
    await marta.page.context.set_offline(True)
    await marta.presses("Send", within=marta.window)
    await marta.has_wholly_before_her(said)
    await marta.sees("The workspace does not answer", within=said)
    on_app.expect_faults("ERR_INTERNET_DISCONNECTED")


async def test_what_has_the_focus_in_a_window_is_never_behind_its_buttons(app: App, on_app: Windows) -> None:
    marta = await on_a_phone_in_a_long_window(app, on_app)
    await marta.window.get_by_label("Field 0", exact=True).focus()
    buttons = await marta.window.get_by_role("button", name="Send").bounding_box()
    assert buttons is not None
    for number in range(12):
        at = marta.window.get_by_label(f"Field {number}", exact=True)
        await marta.has_the_focus_on(at)
        await marta.has_wholly_before_her(at)
        box = await at.bounding_box()
        assert box is not None and box["y"] + box["height"] <= buttons["y"], (number, box, buttons)
        await marta.page.keyboard.press("Tab")
    await marta.page.set_viewport_size({"width": 390, "height": 240})
    for _ in range(12):
        await marta.page.keyboard.press("Shift+Tab")
    await marta.has_wholly_before_her(marta.window.get_by_label("Field 0", exact=True))
    await marta.looks("a very low window")


async def test_a_long_window_is_read_from_its_top(app: App, on_app: Windows) -> None:
    marta = await before_a_card(app, on_app)
    opens(app, section("What would be done"), *[section(f"line {number}") for number in range(40)], NOTE)
    await marta.presses("Edit")
    await marta.has_the_focus_on(marta.window.get_by_role("group", name="Edit"))
    await marta.has_wholly_before_her(marta.window.get_by_text("What would be done"))
    await marta.page.keyboard.press("Tab")
    await marta.has_the_focus_on(marta.window.get_by_label("Note"))
