"""Leo asks, Marta edits wrongly and rightly, approves twice, and Leo reads in his thread what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.marks import AT_BOTH_WIDTHS, IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER


@AT_BOTH_WIDTHS
async def test_edit(windows: Windows, width: int) -> None:
    leo = await windows.open("Leo", width)
    marta = await windows.open("Marta", width)
    await marta.goes_to("# approvals")
    await leo.looks("before the first words")
    await leo.asks_the_agent()
    await leo.opens_the_thread_of("please refund")
    await leo.sees("Approval asked for in #approvals", within=leo.thread)
    await leo.looks("it waits")

    await marta.sees("Refund 38 payments · €4,120.00")
    await marta.looks("the card")
    await marta.presses("Edit", within=marta.card("Refund 38"))
    await marta.fills_in("Payments", "pay_0007\npay_0017\npay_0017")
    await marta.presses("Preview changes", within=marta.window)
    await marta.sees("give every payment once", within=marta.window)
    await marta.looks("what is wrong with the edit")
    await marta.fills_in("Payments", "pay_9999")
    await marta.presses("Preview changes", within=marta.window)
    await marta.sees("there are no payments pay_9999", within=marta.window.get_by_role("alert"))
    await marta.looks("why there is no preview")
    await marta.fills_in("Payments", "pay_0007\npay_0007")
    await marta.presses("Preview changes", within=marta.window)
    await marta.sees("give every payment once", within=marta.window.get_by_role("alert"))
    await marta.does_not_see(marta.window.get_by_text("pay_9999"))
    await marta.looks("what is wrong now")
    await marta.fills_in("Payments", "pay_0007\npay_0017")
    await marta.presses("Preview changes", within=marta.window)
    await marta.sees("Refund 2 payments · €224.99", "36 left out", within=marta.window)
    await marta.looks("what the edit would do")
    await marta.presses("Approve these changes", within=marta.window)
    await marta.sees("Edited by Marta", within=marta.card("Refund 2"))
    await marta.looks("the edited card", marta.card("Refund 2"))

    await leo.sees("Done: 2 payments refunded, €224.99 in all.", within=leo.thread)
    await leo.looks("what came of it")
    await leo.page.set_viewport_size({"width": 800, "height": 1000})
    await leo.has_room_for(leo.thread, 500)
    await leo.looks("the thread on a tablet")
