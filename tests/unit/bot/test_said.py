"""Lists, App Home and notices."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bot.blocks.bounded import Message
from bot.blocks.home import home_view
from bot.blocks.listing import approvals_list, help_message
from bot.blocks.notices import NoticeKind, UnknownNotice, approvals_of, notice
from bot.texts import texts
from store.records import ApprovalId
from store.transitions import ApprovalStatus, RunStatus
from tests.unit.bot.rows import MARTA, NOW, approval, approved, unknown
from tests.unit.bot.seen import accepted, accepted_view, read

EN = texts("en")
WAITING: Any = SimpleNamespace(status=RunStatus.AWAITING_APPROVAL)
DATA: dict[str, dict[str, Any]] = {
    "run_received": {"run_id": "r1"},
    "call_asked": {"approval_ids": ["ap_1"], "deferred": 0},
    "call_ran": {"call_id": "c1", "tool": "draft_refund_report", "text": "report drafted"},
    "run_completed": {"run_id": "r1", "text": "41 payments were refunded."},
    "run_exhausted": {"run_id": "r1", "text": "I looked at 200 payments."},
    "run_failed": {"run_id": "r1", "error": "the model could not be reached"},
    "run_cancelled": {"run_id": "r1"},
    "approval_expired": {"approval_id": "ap_1"},
    "superseded_thrice": {"approval_id": "ap_1"},
    "unknown_outcome": {"approval_id": "ap_1"},
    "outcome_reminder": {"approval_ids": ["ap_1"], "number": 1},
    "outcome_settled": {"approval_id": "ap_1"},
}
ROWS = {"ap_1": approval()}
MOVED = {"moved": [{"kind": "precondition", "name": "failed payments", "was": 38, "is": 41}]}


def said(kind: str, data: dict[str, Any] | None = None, **options: Any) -> Message:
    return accepted(notice(kind, data or DATA[kind], EN, **options))


def test_who_stopped_a_run_is_named_where_the_notice_has_it() -> None:
    assert read(said("run_cancelled")) == "This run was stopped. What had not run does not run any more."
    by_marta = said("run_cancelled", {"run_id": "r1", "by": MARTA.to_json()})
    assert "This run was stopped by Marta Gil (support_lead). What had not run " in read(by_marta)


def test_a_row_of_the_list_says_what_waits_and_how_long() -> None:
    message = accepted(
        approvals_list([approval()], 1, EN, mine=True, links={"ap_1": "https://shop.slack.com/p1"})
    )
    words = read(message)
    assert "1 approval waits for you." in words
    assert "Refund 38 payments · €4,120.00" in words
    assert "Refund helper · refund_payments · 38 items · €4,120.00 · asked 3 hours ago · expires " in words
    assert "https://shop.slack.com/p1" in str(message.blocks)
    assert "Refund 38 payments" in message.text


def test_the_list_keeps_its_order_and_counts_what_does_not_fit() -> None:
    rows = [replace(approval(), id=ApprovalId(f"ap_{n}")) for n in range(5)]
    words = read(accepted(approvals_list(rows, 12, EN, mine=False)))
    assert "12 approvals wait for somebody." in words and "… and 7 more" in words
    assert [words.index(f"ap_{n}") for n in range(5)] == sorted(words.index(f"ap_{n}") for n in range(5))


def test_empty_lists_say_so() -> None:
    assert "Nothing waits for your approval." in read(approvals_list([], 0, EN, mine=True))
    assert "Nothing waits for anybody." in read(approvals_list([], 0, EN, mine=False))


def test_nonsense_is_answered_with_the_help() -> None:
    words = read(accepted(help_message(EN, "<!channel>")))
    assert "I do not know “<!channel>”." in words and "/approvals all" in words
    assert "<!channel>" not in help_message(EN, "<!channel>").text
    assert "I do not know" not in read(help_message(EN))


def test_home_shows_what_waits() -> None:
    assert "Refund 38 payments" in read(accepted_view(home_view([approval()] * 30, 30, EN)))
    assert "Nothing waits for your approval." in read(accepted_view(home_view([], 0, EN)))


@pytest.mark.parametrize("kind", list(NoticeKind))
def test_every_kind_of_notice_is_accepted_with_and_without_its_rows(kind: NoticeKind) -> None:
    said(kind, approvals=ROWS, links={"ap_1": "https://shop.slack.com/p1"})
    said(kind)


def test_another_kind_of_notice_is_refused() -> None:
    with pytest.raises(UnknownNotice, match="run_dreamt"):
        notice("run_dreamt", {}, EN)


def test_the_rows_that_a_notice_needs_are_named() -> None:
    assert approvals_of("call_asked", DATA["call_asked"]) == ("ap_1",)
    assert approvals_of("approval_expired", DATA["approval_expired"]) == ("ap_1",)
    assert approvals_of("run_completed", DATA["run_completed"]) == ()


def test_a_received_run_says_what_it_waits_for_on_whom_and_until_when() -> None:
    assert read(said("run_received")) == "On it."
    words = read(said("run_received", in_the_way=(WAITING, [approval(escalated_at=NOW)])))
    assert "It waits for support_lead, admin to decide “Refund 38 payments · €4,120.00” until " in words
    assert "Your message is read as soon as that is settled." in words


def test_a_received_run_behind_one_of_which_nobody_knows_says_who_may_say_it_and_until_when() -> None:
    words = read(said("run_received", in_the_way=(WAITING, [unknown()])))
    assert "It waits for support_lead to say whether “Refund 38 payments · €4,120.00” ran, until " in words
    assert "Your message is read as soon as that is settled." in words
    too_late = unknown(outcome={"retry_until": (NOW - timedelta(minutes=1)).isoformat()})
    assert "say whether" not in read(said("run_received", in_the_way=(WAITING, [too_late])))


def test_a_received_run_behind_a_stopped_one_waits_for_nobody() -> None:
    stopped: Any = SimpleNamespace(status=RunStatus.CANCELLED)
    words = read(said("run_received", in_the_way=(stopped, [unknown()])))
    assert "is not finished" in words and "say whether" not in words


def test_a_received_run_behind_a_decided_one_waits_for_nobody() -> None:
    words = read(said("run_received", in_the_way=(WAITING, [approval(ApprovalStatus.EXECUTING)])))
    assert "is not finished" in words and "decide" not in words


def test_a_call_that_asks_says_where_and_for_what_and_leaves_until_when_to_the_line() -> None:
    data = {"approval_ids": ["ap_1"], "deferred": 2}
    message = said("call_asked", data, approvals=ROWS, links={"ap_1": "https://shop.slack.com/p1"})
    assert "Approval asked for in <#C0APPROVALS>: Refund 38 payments · €4,120.00 <" in message.text
    assert "<!date^" not in message.text
    assert "2 further calls of this turn were not run" in read(message)
    assert "https://shop.slack.com/p1" in str(message.blocks)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            MOVED,
            "The facts moved (failed payments: 38 → 41), so nothing of “Refund 38 payments · €4,120.00” ran.",
        ),
        ({"text": "the tool has changed"}, "Nothing of “Refund 38 payments · €4,120.00” ran."),
    ],
)
def test_a_call_that_replaces_another_says_first_that_the_other_did_not_run(
    outcome: dict[str, Any], words: str
) -> None:
    old = approved("superseded", outcome=outcome)
    new = replace(approval(), id=ApprovalId("ap_2"), replaces=old.id)
    told = read(said("call_asked", {"approval_ids": ["ap_2"]}, approvals={"ap_1": old, "ap_2": new}))
    assert told.split("\n")[0] == words
    assert told.split("\n")[1].startswith("Approval asked for in ")


def test_the_agents_answer_is_shown_as_it_is() -> None:
    words = "Done:\n*41* payments <!channel> & more"
    message = said("run_completed", {"run_id": "r1", "text": words})
    assert read(message) == words
    assert "<!channel>" not in message.text


def test_an_answer_is_split_at_line_ends_and_cut_only_at_the_very_end() -> None:
    lines = [f"{n}: " + "x" * 90 for n in range(80)]
    message = said("run_completed", {"run_id": "r1", "text": "\n".join(lines)})
    shown = [block["elements"][0]["elements"][0]["text"] for block in message.blocks]
    assert "\n".join(shown).split("\n") == lines
    assert "longer than fits" in read(said("run_completed", {"run_id": "r1", "text": "y" * 30_000}))


def test_an_answer_without_words_is_not_empty() -> None:
    assert read(said("run_completed", {"run_id": "r1", "text": None})) == "Finished."


def test_an_exhausted_run_says_that_it_stopped() -> None:
    words = read(said("run_exhausted"))
    assert "I looked at 200 payments." in words and "used up its steps" in words


def test_an_expired_approval_says_what_was_not_done() -> None:
    words = read(said("approval_expired", approvals={"ap_1": approval("expired")}))
    assert "Nobody decided in time, so this was not done: Refund 38 payments" in words
    assert "Refund helper had asked for Leo. Nothing ran." in words
    late = approved("expired", claim_by=NOW + timedelta(hours=1))
    assert "not started in time" in read(said("approval_expired", approvals={"ap_1": late}))


def test_other_notices_about_an_approval_name_the_call() -> None:
    assert "moved three times" in read(said("superseded_thrice", approvals=ROWS))
    assert "Nobody knows whether “Refund 38 payments" in read(said("unknown_outcome", approvals=ROWS))


def test_a_failed_run_says_why_and_how_it_can_go_on() -> None:
    words = read(said("run_failed"))
    assert words.startswith("I could not finish: the model could not be reached\n")
    assert words.endswith("An operator can let this run go on: vistobueno runs retry r1")
