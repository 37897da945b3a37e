"""Other ways to use the page: by keyboard alone, in the dark, and without script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.marks import IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER


async def test_by_keyboard_in_the_dark(windows: Windows) -> None:
    leo = await windows.open("Leo", 390)
    await leo.asks_the_agent()
    marta = await windows.open("Marta", 390, color_scheme="dark")
    await marta.moves_to("button", "Menu")
    await marta.page.keyboard.press("Enter")
    await marta.moves_to("link", "# approvals")
    await marta.page.keyboard.press("Enter")
    await marta.sees("Refund 38 payments")
    await marta.looks("the card")

    await marta.moves_to("button", "Edit")
    await marta.page.keyboard.press("Enter")
    await marta.has_the_focus_on(marta.window.get_by_label("Payments"))
    await marta.page.keyboard.press("Tab")
    await marta.has_the_focus_on(marta.window.get_by_label("Reason"))
    await marta.looks("the form")
    await marta.page.keyboard.press("Escape")
    await marta.does_not_see(marta.window)
    await marta.has_the_focus_on(marta.page.get_by_role("button", name="Edit"))

    await marta.page.keyboard.press("Shift+Tab")
    await marta.has_the_focus_on(marta.page.get_by_role("button", name="Approve"))
    await marta.page.keyboard.press("Enter")
    await marta.sees("You approved “Refund 38 payments · €4,120.00”.")
    await marta.sees("✅ Done", within=marta.card("Refund 38 payments"))
    await marta.looks("38 are refunded", marta.card("Refund 38"))


async def test_without_script(windows: Windows) -> None:
    leo, marta = [await windows.open(name, 390, java_script_enabled=False) for name in ("Leo", "Marta")]
    await leo.presses("Send")
    await leo.sees("please refund the failed payments")
    await marta.goes_to("# approvals")
    await marta.reloads_until("Refund 38 payments · €4,120.00")
    await marta.presses("Edit", within=marta.card("Refund 38"))
    await marta.reloads_until("Preview changes", within=marta.window)
    await marta.fills_in("Payments", "pay_0007")
    await marta.looks("the form")
    await marta.presses("Cancel", within=marta.window)
    await marta.presses("Approve", within=marta.card("Refund 38"))
    await marta.reloads_until("✅ Done")
    await marta.looks("38 are refunded", marta.card("Refund 38"))
