"""A request is refused with a reason; and where else one sees what waits: the command, Home, the bot's DM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.marks import AT_BOTH_WIDTHS, IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER

REASON = "They were charged again this morning."


@AT_BOTH_WIDTHS
async def test_refusing(windows: Windows, width: int) -> None:
    leo, marta = [await windows.open(name, width) for name in ("Leo", "Marta")]
    await leo.asks_the_agent()
    await leo.opens_the_thread_of("please refund")
    await marta.goes_to("# approvals")
    await marta.sees("Refund 38 payments")

    await marta.writes("/approvals", to="Message #approvals")
    await marta.sees("Only visible to you", "1 approval waits for you.")
    await marta.looks("what the command says")
    await marta.opens_home()
    await marta.sees("Waiting for you", "Refund 38 payments")
    await marta.looks("home")
    await marta.page.get_by_role("link", name="Open the card").click()
    await marta.has_before_her(marta.card("Refund 38 payments"))

    await marta.presses("Reject", within=marta.card("Refund 38 payments"))
    await marta.presses("Reject", within=marta.window)
    await marta.sees("Please complete this required field.", within=marta.window)
    await marta.fills_in("Reason", REASON)
    await marta.looks("why not")
    await marta.presses("Reject", within=marta.window)
    await marta.sees("⛔ Rejected by Marta", REASON, within=marta.card("Refund 38 payments"))
    await marta.looks("the rejected card", marta.card("Refund 38"))
    await leo.sees(f"Marta (support_lead) refused ({REASON}), so nothing was refunded.", within=leo.thread)
    await leo.looks("what the agent says of it")

    ana = await windows.open("Ana", width)
    await ana.opens_home()
    await ana.sees("Nothing waits for your approval.")
    await ana.goes_to("Messages")
    await ana.writes("hello", to="Message vistobueno")
    await ana.opens_the_thread_of("hello")
    await ana.sees("I look after the shop's payments.", within=ana.thread)
    await ana.looks("a message to the bot")
