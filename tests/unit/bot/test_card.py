"""The card: every status, what must be on it, and nothing else."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.tool import Facts, Money
from bot.blocks.card import CardContext, card, plain_card
from bot.texts import texts
from store.records import Actor, Approval, ApprovalId, Overlap, Veto, Vote
from store.transitions import ApprovalStatus
from tests.unit.agent.samples import frozen
from tests.unit.bot.rows import ANA, ITEMS, MARTA, NOW, RULE, approval, approved, measured
from tests.unit.bot.seen import accepted, buttons, read

CONTEXT = CardContext(texts("en"), irreversible=True, deciders=("U0MARTA",))
MOVED = {"moved": [{"kind": "precondition", "name": "failed payments", "was": 38, "is": 41}]}


def seen(row: Approval, context: CardContext = CONTEXT, **options: Any) -> str:
    return read(accepted(card(row, context, **options)))


@pytest.mark.parametrize("status", list(ApprovalStatus))
@pytest.mark.parametrize("table", [True, False])
def test_every_status_is_accepted_by_slack_and_names_the_call(status: ApprovalStatus, table: bool) -> None:
    for row in (approval(status), approved(status)):
        said = seen(row, table=table)
        assert "Refund 38 payments · €4,120.00" in said
        assert "38 customers get their money back" in said


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_there_are_buttons_only_while_it_is_pending(status: ApprovalStatus) -> None:
    labels = [button["text"]["text"] for button in buttons(card(approval(status), CONTEXT))]
    assert labels == (["Approve", "Edit", "Reject"] if status == "pending" else [])


def test_the_buttons_carry_an_opaque_id_and_revision_and_nothing_else() -> None:
    found = buttons(card(approval(revision=2), CONTEXT))
    assert [b["value"] for b in found] == ["ap_1:2"] * 3
    assert [b["action_id"] for b in found] == ["approval_approve", "approval_edit", "approval_reject"]
    assert [b.get("style") for b in found] == ["primary", None, "danger"]
    assert found[0]["accessibility_label"].startswith("Approve: Refund 38 payments")


def test_a_pending_card_says_all_that_a_decision_rests_on() -> None:
    said = seen(approval())
    for words in (
        "failed payments = 38, checked again before it runs",
        "This cannot be undone.",
        "Refund helper asks for Leo in ",
        "support_lead may decide · 1 approval needed · expires <!date^",
        "In the agent's own words:",
        "They failed twice and the customers asked.",
        "5 of 38 shown: the 2 largest, 3 spread evenly",
    ):
        assert words in said


def test_on_an_edited_card_the_agents_words_are_those_of_before_the_edit() -> None:
    assert "In the agent's own words, before the edit:" in seen(approval(revision=2))


def test_a_card_that_is_closed_no_longer_speaks_of_what_will_be_checked() -> None:
    said = seen(approved("executed"))
    assert "failed payments = 38 when it was asked" in said
    assert "checked again" not in said and "cannot be undone" not in said
    assert "failed payments = 38 when it was edited" in seen(approved("executed", revision=2))


def test_the_essentials_stand_before_the_sample_and_the_buttons_at_the_end() -> None:
    kinds = [block["type"] for block in card(approval(), CONTEXT).blocks]
    assert kinds[:4] == ["header", "rich_text", "rich_text", "section"]
    assert kinds.index("table") > kinds.index("section")
    assert kinds[-2:] == ["actions", "context"]


def test_people_are_mentioned_only_when_it_is_posted() -> None:
    posted, updated = card(approval(), CONTEXT, mention=True), card(approval(), CONTEXT)
    assert "<@U0MARTA>" in read(posted) and "<@U0MARTA>" in posted.text
    assert "<@" not in read(updated) and "<@" not in updated.text


def test_the_sample_is_the_one_table_of_the_message_or_short_lines() -> None:
    with_table, without = (card(approval(), CONTEXT, table=table) for table in (True, False))
    (table,) = [block for block in with_table.blocks if block["type"] == "table"]
    assert len(table["rows"]) == 6
    assert [setting["align"] for setting in table["column_settings"]] == ["left", "right", "left"]
    assert not [block for block in without.blocks if block["type"] == "table"]
    assert "\npay_001 · €120.00 · 2026-11-20\npay_001" in read(without)


@pytest.mark.parametrize(
    ("rows", "added", "is_picked", "said"),
    [
        (5, 3, True, "5 of 38 shown: 3 new, the 2 largest"),
        (5, 4, True, "5 of 38 shown: 4 new, the largest"),
        (5, 5, True, "5 of 38 shown: 5 new"),
        (5, 1, True, "5 of 38 shown: 1 new, the 2 largest, 2 spread evenly"),
        (5, 0, False, "5 of 38 shown"),
    ],
)
def test_which_rows_of_many_are_shown_is_said(rows: int, added: int, is_picked: bool, said: str) -> None:
    hidden = {"lines": 0, "columns": 0, "rows": 33 if is_picked else 0}
    chosen = {"added": list(range(added)), "largest": min(2, rows - added)}
    preview = {**measured().preview, **chosen, "hidden": hidden}
    assert f"{said}In the agent's own" in seen(approval(shown=measured(preview=preview)))


def test_rows_without_an_amount_are_none_of_the_largest() -> None:
    preview = {**measured().preview, "columns": ["Payment"], "sample": [["pay_001"]] * 5, "largest": 0}
    assert "5 of 38 shown: 5 spread evenlyIn the" in seen(approval(shown=measured(preview=preview)))


def test_of_rows_that_an_older_release_picked_only_the_count_is_said() -> None:
    preview = {name: part for name, part in measured().preview.items() if name != "largest"}
    assert "5 of 38 shownIn the" in seen(approval(shown=measured(preview=preview)))


def test_the_votes_that_are_missing_and_given_are_named() -> None:
    row = approval(rule=replace(RULE, quorum=3), votes=(Vote(ANA, NOW.isoformat()),))
    said = seen(row)
    assert "2 approvals needed" in said
    assert "Approved so far by Ana Ruiz (admin)" in said


def test_an_escalation_says_who_may_decide_too() -> None:
    assert "admin may decide too since <!date^" in seen(approval(escalated_at=NOW))


def test_an_approved_card_says_by_whom_and_until_when_it_must_run() -> None:
    said = seen(approved(claim_by=NOW + timedelta(hours=1)))
    assert "Approved by Marta Gil (support_lead) " in said
    assert "Waiting to run, " in said


def test_an_approval_that_was_tried_says_that_the_key_is_the_same() -> None:
    assert "tried again under the same key" in seen(approved(attempted=True))


def test_the_policys_approval_is_not_laid_on_a_person() -> None:
    row = approved(decided_by=Actor("policy"), votes=())
    assert "Approved by the policy" in seen(row)


def test_a_superseded_card_says_what_moved_that_nothing_ran_and_links_the_new_one() -> None:
    context = replace(CONTEXT, replaced_by_link="https://shop.slack.com/archives/C0/p2")
    message = accepted(card(approved("superseded", outcome=MOVED), context))
    said = read(message)
    assert "failed payments: 38 → 41" in said
    assert "Nothing ran." in said
    assert "https://shop.slack.com/archives/C0/p2" in str(message.blocks)
    assert "failed payments: 38 → 41" in message.text


def test_a_superseded_card_says_that_the_agent_looks_again_until_there_is_a_new_request() -> None:
    row = approved("superseded", outcome=MOVED)
    assert "Nothing ran. The agent is looking again." in seen(row)
    anew = seen(replace(row, replaced_by=ApprovalId("ap_2")))
    assert "Nothing ran." in anew and "looking again" not in anew


def test_a_superseded_card_without_moved_facts_says_why() -> None:
    said = seen(approval("superseded", outcome={"text": "the tool has changed"}))
    assert "the tool has changed" in said and "Nothing ran" in said


def test_an_executed_card_says_what_it_returned_and_which_items_went_through() -> None:
    output = {"refunded": 38, "payment_ids": list(ITEMS)}
    outcome = {"text": "41 refunds made", "output": output, "done": list(ITEMS)}
    said = seen(approved("executed", outcome=outcome))
    assert "Done " in said and "41 refunds made" in said
    assert "refunded: 38" in said
    assert "payment_ids: pay_001, pay_002, pay_003, pay_004, pay_005 and 33 more" in said
    assert "38 went through: pay_001, pay_002, pay_003, pay_004, pay_005 and 33 more" in said


def test_a_failed_card_says_why_and_what_went_through() -> None:
    assert "card expired" in seen(approved("failed", outcome={"text": "card expired", "done": []}))
    assert "Nothing was done." in seen(approved("failed", outcome={"text": "x", "done": []}))
    assert "1 went through: pay_001" in seen(approved("failed", outcome={"text": "x", "done": ["pay_001"]}))


def test_a_rejected_card_quotes_the_reason() -> None:
    row = approval("rejected", decided_at=NOW, decided_by=ANA, reason="they were paid in cash")
    said = seen(row)
    assert "Rejected by Ana Ruiz (admin) " in said
    assert "Reason: they were paid in cash" in said
    assert "Nothing ran." in said


def test_an_expiry_after_an_approval_is_told_from_one_without() -> None:
    assert "nobody decided" in seen(approval("expired"))
    assert "it was approved and did not start in time" in seen(approved("expired"))


def test_an_unknown_outcome_warns_against_repeating() -> None:
    said = seen(approved("unknown", outcome={"kind": "unknown", "text": "no answer", "done": None}))
    assert "Nobody knows whether it ran." in said
    assert "Look at what really happened" in said


def test_what_was_added_and_left_out_of_the_replaced_one_is_marked() -> None:
    now = measured(items=(*ITEMS[1:], "pay_039"), preview={**measured().preview, "added": [0]})
    context = replace(CONTEXT, replaced=approval(), replaced_link="https://shop.slack.com/archives/C0/p1")
    message = accepted(card(approval(shown=now, replaces=ApprovalId("ap_0")), context))
    said = read(message)
    assert "1 added: pay_039; 1 left out: pay_001" in said
    assert "pay_001 (new)" in said
    assert "https://shop.slack.com/archives/C0/p1" in str(message.blocks)


def test_that_the_replaced_one_had_been_edited_is_said() -> None:
    edited = replace(approval(), author=ANA, revision=2)
    context = replace(CONTEXT, replaced=edited)
    said = seen(approval(replaces=ApprovalId("ap_0")), context)
    assert "Ana Ruiz (admin) had edited that one, so this is compared with what the edit had left." in said
    assert "had edited" not in seen(
        approval(replaces=ApprovalId("ap_0")), replace(CONTEXT, replaced=approval())
    )


def test_overlaps_and_an_earlier_refusal_are_shown() -> None:
    overlap = Overlap(ApprovalId("ap_7"), ApprovalStatus.PENDING, ("pay_001", "pay_002"))
    veto = Veto("refund", ApprovalId("ap_0"), "rejected", ANA, "not this month")
    said = seen(approval(), replace(CONTEXT, overlaps=(overlap,), earlier_refusal=veto))
    assert "2 of these items also wait in another approval (ap_7)" in said
    assert "Ana Ruiz (admin) refused this earlier in the conversation: not this month" in said


@pytest.mark.parametrize("status", [ApprovalStatus.SUPERSEDED, ApprovalStatus.EXECUTED])
def test_overlaps_are_no_longer_shown_once_it_has_ended(status: ApprovalStatus) -> None:
    overlap = Overlap(ApprovalId("ap_7"), ApprovalStatus.PENDING, ("pay_001", "pay_002"))
    assert "another approval" not in seen(approved(status), replace(CONTEXT, overlaps=(overlap,)))


def test_an_edit_says_who_changed_what() -> None:
    row = approval(
        revision=2,
        author=ANA,
        original_input={"payment_ids": [*ITEMS, "pay_099"], "reason": "charged twice"},
    )
    said = seen(row, replace(CONTEXT, field_titles={"payment_ids": "Payments"}))
    assert "Edited by Ana Ruiz (admin)" in said
    assert "Payments: 39 → 38, 1 left out: pay_099" in said


def test_counted_facts_are_shown_where_the_title_does_not_say_them() -> None:
    untold = measured(preview={**measured().preview, "title": "Refund the failed payments"})
    assert "Counted by code: 38 items · €4,120.00" in seen(approval(shown=untold))
    assert "Counted by code" not in seen(approval())


@pytest.mark.parametrize(
    ("count", "title", "is_said"),
    [
        (6, "Delete customers inactive for 365 days", False),
        (365, "Delete customers inactive for 365 days", True),  # a number of its own: no code can tell
        (4, "Refund them · €4,120.00", False),
        (120, "Refund them · €4,120.00", False),
        (4, "Pay the bills of Q4", False),
        (6, "Close case-6", False),
        (1204, "Delete 1,204 customers", True),
        (204, "Delete 1 204 customers", False),
        (1204, "Delete 1204 customers.", True),
        (6, "Delete customers (6)", True),
        (1, "Delete inactive customers", False),
        (1, "Delete 1 customer", True),
        (1, "Delete cus_1", True),
        (1, "Delete cus_12", False),
    ],
)
def test_a_count_is_left_out_only_where_the_title_has_it_as_a_word(
    count: int, title: str, is_said: bool
) -> None:
    items = tuple(f"cus_{n + 1}" for n in range(count))
    facts = {"count": count, "amount": None, "items": list(items), "more": {}}
    shown = measured(facts=facts, items=items, preview={**measured().preview, "title": title})
    line = f"Counted by code: {count:,} item"
    assert (line in seen(approval(shown=shown))) is not is_said


def test_a_card_without_a_preview_of_its_own_says_count_and_amount_once() -> None:
    shown = frozen(["pay_1", "pay_2"], facts=Facts(2, Money("75", "EUR"), ["pay_1", "pay_2"]))
    said = seen(approval(shown=shown))
    assert "Counted by code: 2 items · €75.00" in said
    assert said.count("75.00") == 1 and "Count: " not in said


def test_one_that_nothing_counted_is_not_called_counted() -> None:
    facts = {"count": 1, "amount": None, "items": [], "more": {}}
    shown = measured(facts=facts, items=(), preview={**measured().preview, "title": "Send the report"})
    assert "Counted by code" not in seen(approval(shown=shown))


def test_an_amount_is_left_out_only_where_the_title_has_it_whole() -> None:
    amount = {"amount": "20.00", "currency": "EUR"}
    context = replace(CONTEXT, texts=replace(texts(), locale="de"))
    for title, is_said in (("Refund 38 payments · 120,00\u00a0€", False), ("Refund 38: 20,00\u00a0€", True)):
        preview = {**measured().preview, "title": title}
        shown = measured(preview=preview, facts={**measured().facts, "amount": amount})
        assert ("Counted by code" in seen(approval(shown=shown), context)) is not is_said


def test_amounts_follow_the_locale() -> None:
    untold = measured(preview={**measured().preview, "title": "Refund"})
    context = replace(CONTEXT, texts=replace(texts(), locale="de"))
    assert "4.120,00" in seen(approval(shown=untold), context)


def test_the_notification_says_all_that_is_needed() -> None:
    text = card(approval(), CONTEXT).text
    assert text.startswith("Approval needed: Refund 38 payments · €4,120.00")
    assert "failed payments = 38" in text and "Leo" in text and "<!date^" in text


def test_the_plain_card_can_still_be_decided() -> None:
    message = accepted(plain_card(approval(), CONTEXT, mention=True))
    assert len(buttons(message)) == 3
    assert {block["type"] for block in message.blocks} <= {"section", "rich_text", "actions"}
    assert "Refund 38 payments" in read(message) and "<@U0MARTA>" in read(message)
    assert not buttons(plain_card(approved("executed"), CONTEXT))


def test_a_card_in_a_direct_message_names_no_channel() -> None:
    row = approval()
    row = replace(row, conversation=replace(row.conversation, channel_id="D0LEO"))
    assert "Leo in a direct message" in seen(row)


def test_the_one_who_decided_is_named_and_not_mentioned() -> None:
    message = card(approved(decided_by=MARTA), CONTEXT)
    assert "Marta Gil" in read(message)
    assert "U0MARTA" not in str(message.blocks)
