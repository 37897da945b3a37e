"""What one does next in the demo: only what the people of its story may do, and never for ever the same."""

from dataclasses import replace
from typing import Any

import pytest

from agent.tool import Money
from agent.tools.shop.provider import Refund
from bot.demo.board import Clicks, State
from bot.demo.model import FIRST_WORDS
from bot.demo.steps import ASK, for_marta, next_step, waits_for_marta
from bot.sandbox.world import Step
from store.records import Approval, ApprovalId, ConversationId, Run, RunId, Vote
from store.totals import Totals
from tests.unit.bot.rows import LEO, MARTA, NOW, RULE, approval, approved
from tests.unit.bot.test_line import run as any_run


def run(status: str = "completed", **changes: Any) -> Run:
    return any_run(status, **{"task": FIRST_WORDS, **changes})


def own(**changes: Any) -> tuple[Run, Approval]:
    """What Marta asked for herself, and waits."""
    at = {"id": RunId("own"), "conversation_id": ConversationId("own")}
    asked = approval(id=ApprovalId("own"), run_id=RunId("own"), requester=MARTA, **changes)
    return run("awaiting_approval", requester=MARTA, **at), asked


def state(*rows: Run | Approval, failed: int = 38) -> State:
    runs = tuple(row for row in rows if isinstance(row, Run))
    asked = tuple(row for row in rows if isinstance(row, Approval))
    refunds = () if failed else (Refund("re_1", "k", "pay_0001", Money("1", "EUR")),)
    return State(runs, asked, Totals(len(runs), len(asked), 0), failed, refunds, Clicks(0, 0))


def step(*rows: Run | Approval, failed: int = 38, failed_more: bool = False) -> Step:
    found = next_step(state(*rows, failed=failed), failed_more=failed_more)
    assert found is not None
    return found


@pytest.mark.parametrize("rows", [(), own(), own(votes=()), (run(task="hello"),), (run(requester=MARTA),)])
def test_it_begins_with_leo_who_has_the_words_ready(rows: tuple[Run | Approval, ...]) -> None:
    assert step(*rows) == ASK and ASK.ready == FIRST_WORDS
    assert next_step(None, failed_more=False) == ASK


def test_a_card_that_marta_may_decide_is_hers_to_decide() -> None:
    asked = (run("awaiting_approval"), approval())
    assert step(*asked).there == "Look into The world first, or decide now."
    assert step(*asked, failed_more=True).there == "Press Approve, and see what runs."
    among_her_own = step(*asked, *own())
    assert (among_her_own.user, among_her_own.there) == ("U0MARTA", "Decide the card that asks for Leo.")
    again = approval(replaces=ApprovalId("ap_0"))
    assert step(asked[0], again, failed_more=True).there == "Approve the new card, and see what runs."
    free = own(rule=replace(RULE, four_eyes=False))
    assert step(*free).user == "U0MARTA"


def test_what_marta_may_not_decide_holds_nothing_up() -> None:
    mine, asked = own()
    behind = run("queued", id=RunId("behind"), conversation_id=mine.conversation_id, requester=MARTA)
    assert step(mine, asked, run(), approved("rejected")).elsewhere.startswith("Ask as Leo again: 38")
    assert step(mine, behind, asked) == ASK
    assert step(mine, asked, run(), failed=0).name == "The end"
    assert waits_for_marta(state(mine, asked)) == for_marta(state(mine, asked)) == []
    voted = approval(rule=replace(RULE, quorum=2), votes=(Vote(MARTA, NOW.isoformat()),))
    assert waits_for_marta(state(voted)) == [] and for_marta(state(voted)) == [voted]


def test_nothing_is_next_while_the_agent_is_at_work_on_what_leo_asked() -> None:
    for status in ("queued", "running", "awaiting_approval"):
        asked = state(*own(), run(status))
        assert next_step(asked, failed_more=False) is None, status


def test_cards_of_other_tools_are_told_apart() -> None:
    asked = state(approval(tool="send_email"))
    assert waits_for_marta(asked, "refund_payments") == []
    assert len(waits_for_marta(asked)) == 1


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ((), "Begin a new demo to try Edit or Reject too."),
        ((approved("executed", revision=2),), "Begin a new demo to try Reject too."),
        ((approved("rejected"),), "Begin a new demo to try Edit too."),
        ((approved("rejected", revision=2),), "A new demo begins it again."),
    ],
)
def test_the_end_offers_what_has_not_been_tried(rows: tuple[Approval, ...], left: str) -> None:
    end = step(run(), *rows, failed=0)
    assert (end.name, end.there) == (
        "The end",
        f"1 payment refunded, each once. Its thread has the agent's words. {left}",
    )
    assert end.nearby.endswith("Read in #support what the agent says.")
    assert LEO.user_id == end.user
