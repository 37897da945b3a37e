"""38 refunds are proposed, three more payments fail, and 41 are refunded: lived by three people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.marks import AT_BOTH_WIDTHS, IN_A_BROWSER

if TYPE_CHECKING:
    from tests.browser.chromium import Windows

pytestmark = IN_A_BROWSER

FIRST, SECOND = "Refund 38 payments · €4,120.00", "Refund 41 payments · €4,375.25"


@AT_BOTH_WIDTHS
async def test_story(windows: Windows, width: int) -> None:
    leo, marta, gwen = [await windows.open(name, width) for name in ("Leo", "Marta", "Gwen")]
    for decider in (marta, gwen):
        await decider.goes_to("# approvals")
        await decider.sees("Nobody has written here yet.")
        await decider.expects_no_other_page()
    await leo.looks("before the first words")
    await leo.sees("a local imitation of Slack, with an AI agent", "stops until a person approves")
    await leo.sees("Ask as Leo: press Send.")
    await leo.asks_the_agent()
    await leo.sees("Be Marta: a card waits in #approvals.")
    await leo.looks("what is next")
    await leo.sees_at(leo.page.get_by_role("link", name="Go there"))
    await leo.opens_the_thread_of("please refund")
    await leo.expects_no_other_page()
    await leo.sees("Approval asked for in #approvals: Refund 38 payments", within=leo.thread)
    await leo.looks("it waits for approval")

    first = marta.card(FIRST)
    await marta.sees(
        "failed payments = 38, checked again before it runs",
        "5 of 38 shown: the 2 largest, 3 spread evenly",
        within=first,
    )
    await marta.sees_all_of_it(first)
    await marta.looks("the card")
    await gwen.presses("Approve", within=gwen.card(FIRST))
    await gwen.sees("Only visible to you", "your click was recorded, nothing changed")
    await gwen.looks("a guest may not decide")

    await marta.lets_happen("Three payments fail overnight", "3 more payments failed")
    await marta.approves(first, times=2)
    await marta.sees("failed payments: 38 → 41", "Nothing ran.", within=first)
    for seen in (first.get_by_role("heading"), first.get_by_text("failed payments: 38 → 41")):
        await marta.has_wholly_before_her(seen)
    await marta.sees_at(marta.page.get_by_role("button", name=f"New: {SECOND}"))
    await marta.looks("nothing ran")
    await marta.goes_on_to(SECOND)
    second = marta.card(SECOND)
    await marta.sees(
        "3 added: pay_0401, pay_0402, pay_0403", "5 of 41 shown: 3 new, the 2 largest", within=second
    )
    for payment in ("pay_0401", "pay_0402", "pay_0403"):
        await marta.sees(f"{payment} (new)", within=second)
    await marta.sees_all_of_it(second)
    await marta.sees("Approve the new card, and see what runs.")
    await marta.looks("41 are proposed")

    await marta.lets_happen("Restart the app now", "Running again, as process")
    await marta.lets_happen("Slack is slow", "press a button of a card")
    await marta.approves(second)
    await marta.sees("✅ Done", "refunded: 41", within=second)
    await marta.looks("41 are refunded", second)
    await marta.reads_in_the_world(
        *("In the database now", "delivered twice: one decision."),
        *("of 41 payments, €4,375.25", "superseded", "executed"),
        picture="what the database holds",
    )
    await leo.sees("Done: 41 payments refunded, €4,375.25 in all.", within=leo.thread)
    await leo.sees_at(leo.page.get_by_role("status").get_by_text("41 payments refunded, each once."))
    await leo.looks("what came of it")
