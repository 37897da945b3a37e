"""Writing: the keys, the mention, what is kept when sending fails, and going back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.app import SUGGESTION, App, go
from tests.browser.marks import IN_A_BROWSER
from tests.sandbox.parts import option, select

if TYPE_CHECKING:
    from playwright.async_api import Route

    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER


async def test_the_first_words_stand_ready_and_enter_sends_them(app: App, on_app: Windows) -> None:
    leo = await on_app.open("Leo", 1280)
    field = leo.page.get_by_label("Message #support")
    assert await field.input_value() == f"@vistobueno {SUGGESTION}"
    await field.press("Control+End")
    await field.press("Shift+Enter")
    await leo.page.keyboard.type("thank you")
    await field.press("Enter")
    await leo.sees(SUGGESTION, "thank you")
    assert await field.input_value() == ""
    await leo.has_the_focus_on(field)


async def test_the_bot_is_mentioned_by_a_button(app: App, on_app: Windows) -> None:
    leo = await on_app.open("Leo", 1280)
    field = leo.page.get_by_label("Message #support")
    await field.fill("what is new?")
    for _ in range(2):
        await leo.presses("Ask @vistobueno")
    assert await field.input_value() == "@vistobueno what is new?"
    await leo.has_the_focus_on(field)


async def test_what_could_not_be_sent_is_still_there(app: App, on_app: Windows) -> None:
    leo = await on_app.open("Leo", 1280)
    field = leo.page.get_by_label("Message #support")
    await field.fill("do not lose this")
    await leo.page.context.set_offline(True)
    await leo.presses("Send")
    await leo.sees_at(leo.page.get_by_role("alert").get_by_text("The workspace does not answer"))
    assert await field.input_value() == "do not lose this"
    await leo.page.context.set_offline(False)
    await leo.presses("Send")
    await leo.sees("do not lose this")
    await leo.does_not_see(leo.page.get_by_text("The workspace does not answer"))
    on_app.expect_faults("ERR_INTERNET_DISCONNECTED")


async def test_what_cannot_be_done_is_said_once_and_over_an_open_menu(app: App, on_app: Windows) -> None:
    leo = await on_app.open("Leo", 390)
    menu = leo.page.get_by_role("navigation", name="People and channels")
    await leo.page.get_by_role("button", name="Menu").click()
    await leo.page.context.set_offline(True)
    for _ in range(2):
        await menu.get_by_role("button", name="Home").click()
        await leo.sees_at(menu.get_by_role("alert").get_by_text("The workspace does not answer"))
    assert await leo.page.get_by_text("The workspace does not answer").count() == 1
    on_app.expect_faults("ERR_INTERNET_DISCONNECTED")


async def test_a_choice_acts_at_once(app: App, on_app: Windows) -> None:
    choice = select(
        option("Keep"),
        option("Drop", "2"),
        action_id="choice",
        placeholder={"type": "plain_text", "text": "What to do"},
    )
    await app.posts("x", choice)
    marta = await on_app.open("Marta", 1280)
    await marta.goes_to("# approvals")
    async with marta.page.expect_response("**/press?*"):
        await marta.messages.get_by_role("combobox").select_option("Drop")
    assert app.payloads[0]["actions"][0]["selected_option"]["value"] == "2"


async def test_the_browsers_back_leads_back(app: App, on_app: Windows) -> None:
    marta = await on_app.open("Marta", 1280)
    await marta.opens_home()
    await marta.sees("The app has not shown a Home to you yet.")
    await marta.page.go_back()
    await marta.sees("Nobody has written here yet.")


async def test_a_press_on_what_has_gone_is_answered_with_a_sentence(app: App, on_app: Windows) -> None:
    ts = await app.posts("x", go("Approve"))
    marta = await on_app.open("Marta", 1280)
    await marta.goes_to("# approvals")
    approve = marta.page.get_by_role("button", name="Approve")
    await marta.page.route("**/live*", lambda route: route.abort())
    await marta.page.reload()
    await marta.sees_at(approve)
    await app.client.chat_delete(channel="C0APPROVALS", ts=ts)
    await approve.click()
    await marta.sees_at(marta.page.get_by_role("alert").get_by_text("Marta sees no message"))
    on_app.expect_faults("ERR_FAILED", "404")


async def test_what_is_on_its_way_is_shown_at_the_button_also_when_enter_sends_it(
    app: App, on_app: Windows
) -> None:
    leo = await on_app.open("Leo", 1280)
    send = leo.page.get_by_role("button", name="Send")

    async def wait(route: Route) -> None:
        assert await send.get_attribute("aria-busy") == "true"
        await route.continue_()

    await leo.page.route("**/say?*", wait)
    await leo.writes("slowly", to="Message #support")
    await leo.sees("slowly")
    await leo.page.locator("button[aria-busy='true']").wait_for(state="detached")


async def test_a_thread_of_a_channel_says_how_the_app_hears_and_one_with_the_app_need_not(
    app: App, on_app: Windows
) -> None:
    await app.posts("a root")
    marta = await on_app.open("Marta", 1280)
    await marta.goes_to("# approvals")
    await marta.messages.get_by_role("link", name="Reply in thread").click()
    field = marta.page.get_by_label("Message this thread")
    await marta.is_told(field, "Mention @vistobueno to be heard by it.")
    await marta.goes_to("Messages")
    await marta.writes("hello", to="Message vistobueno")
    await marta.messages.get_by_role("link", name="Reply in thread").click()
    await marta.sees("hello", within=marta.thread)
    await marta.does_not_see(marta.page.get_by_text("to be heard"))
