"""What the person who clicked is told: one sentence for every outcome."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest

from agent.decide import Recorded, RefusalKind, Refused
from bot import replies
from bot.texts import texts
from store.errors import (
    DatabaseUnavailable,
    ForbiddenMove,
    NotMigrated,
    StatementRefused,
    StoreError,
    Unconfirmed,
    UnfitServer,
)
from store.records import Vote
from tests.unit.bot.rows import ANA, MARTA, NOW, RULE, approval, approved
from tests.unit.bot.seen import accepted, read

EN = texts("en")
LINK = "https://shop.slack.com/archives/C0APPROVALS/p2"


def told(kind: Any, row: Any, user_id: str = "U0MARTA", link: str | None = None) -> str:
    message = accepted(replies.refused(Refused(kind, row), EN, user_id=user_id, current_link=link))
    assert len(message.blocks) == 1
    return read(message)


@pytest.mark.parametrize("kind", get_args(RefusalKind))
@pytest.mark.parametrize("row", [None, approval(), approved("executed")], ids=["none", "pending", "executed"])
def test_every_refusal_has_a_sentence(kind: str, row: Any) -> None:
    assert told(kind, row, link=LINK)


def test_the_second_click_is_told_who_was_first_and_when() -> None:
    row = approved(decided_by=ANA, votes=(Vote(ANA, NOW.isoformat()),))
    message = replies.refused(Refused("decided", row), EN, user_id="U0MARTA")
    assert "Already approved by Ana Ruiz (admin) " in read(message)
    assert f"<!date^{int(NOW.timestamp())}^" in message.text


def test_a_second_click_of_the_same_person_is_told_that_it_was_them() -> None:
    assert "You have already approved this" in told("decided", approved())


def test_a_vote_that_did_not_decide_is_still_the_persons_own() -> None:
    row = approved(decided_by=ANA, votes=(Vote(MARTA, NOW.isoformat()), Vote(ANA, NOW.isoformat())))
    assert "You have already approved this" in told("decided", row)


def test_a_rejected_approval_says_who_rejected_it() -> None:
    row = approval("rejected", decided_by=ANA, decided_at=NOW)
    assert "Already rejected by Ana Ruiz (admin)" in told("decided", row)
    assert "You have already rejected this" in told("decided", row, user_id="U0ANA")


def test_a_vote_that_counts_already_says_how_many_are_missing() -> None:
    row = approval(rule=replace(RULE, quorum=2), votes=(Vote(MARTA, NOW.isoformat()),))
    assert told("already_voted", row) == "You have already approved this; 1 more approval is needed."


def test_who_may_decide_is_named() -> None:
    assert "Only support_lead may decide this" in told("not_an_approver", approval())
    escalated = approval(escalated_at=NOW)
    assert "Only support_lead, admin may decide this" in told("not_an_approver", escalated)


def test_the_requester_is_told_that_somebody_else_decides() -> None:
    assert "somebody else must decide it" in told("four_eyes", approval())


def test_a_stale_card_names_the_editor_and_points_to_the_current_one() -> None:
    row = approval(revision=2, author=ANA)
    message = replies.refused(Refused("stale_revision", row), EN, user_id="U0MARTA", current_link=LINK)
    assert "Ana Ruiz (admin) edited this meanwhile" in read(message)
    assert LINK in str(message.blocks) and LINK in message.text


def test_a_replaced_card_points_to_the_current_one() -> None:
    message = replies.refused(
        Refused("superseded", approval("superseded")), EN, user_id="U0MARTA", current_link=LINK
    )
    assert "was replaced because its facts moved; nothing of it ran" in read(message)
    assert "See the current card" in read(message) and LINK in message.text


def test_a_card_that_was_taken_back_says_why() -> None:
    row = approval("superseded", outcome={"text": "There is no tool pay any more.", "moved": []})
    assert told("superseded", row) == (
        "This request is no longer valid, and nothing of it ran: There is no tool pay any more."
    )


def test_an_expired_approval_says_since_when() -> None:
    assert told("expired", approval("expired")).startswith("This expired 2026-11-27 23:10 UTC; nothing ran")
    late = approved("expired", ended_at=NOW + timedelta(hours=1))
    assert told("expired", late).startswith("This expired 2026-11-27 00:10 UTC")


def test_an_outdated_draft_says_who_was_first() -> None:
    assert told("draft_outdated", approved(decided_by=ANA)).startswith("Ana Ruiz (admin) was first")
    assert told("draft_outdated", approval(revision=2, author=ANA)).startswith("Ana Ruiz (admin) was first")
    assert told("draft_outdated", approval()).startswith("Somebody else was first")


def test_an_edit_that_is_confirmed_once_more_is_told_that_it_counts() -> None:
    rule = replace(RULE, quorum=2)
    row = approval(revision=2, author=ANA, votes=(Vote(ANA, NOW.isoformat()),), rule=rule)
    said = "Your changes to “Refund 38 payments · €4,120.00” and your approval count; 1 more is needed."
    assert told("edit_counted", row) == said


@pytest.mark.parametrize(
    ("verdict", "missing", "expected"),
    [
        ("approve", 0, "You approved “Refund 38 payments · €4,120.00”."),
        ("approve", 1, "Your approval of “Refund 38 payments · €4,120.00” counts; 1 more is needed."),
        ("approve", 2, "Your approval of “Refund 38 payments · €4,120.00” counts; 2 more are needed."),
        ("edit", 0, "You approved “Refund 38 payments · €4,120.00” with your changes."),
        ("reject", 0, "You rejected “Refund 38 payments · €4,120.00”."),
    ],
)
def test_a_recorded_decision_is_confirmed(verdict: Any, missing: int, expected: str) -> None:
    message = accepted(replies.recorded(Recorded(approved(), verdict, missing), EN))
    assert read(message).startswith(expected)


@pytest.mark.parametrize("error", [DatabaseUnavailable("x"), StatementRefused("x"), ForbiddenMove("x")])
def test_what_was_not_recorded_may_be_pressed_again(error: StoreError) -> None:
    said = read(accepted(replies.store_error(error, EN)))
    assert "nothing was recorded" in said and "press again" in said


@pytest.mark.parametrize("error", [Unconfirmed("x"), StoreError("x")])
def test_what_is_not_confirmed_is_never_called_unrecorded(error: StoreError) -> None:
    said = read(replies.store_error(error, EN))
    assert "not confirmed" in said and "the card will show whether it counted" in said
    assert "pressing again is safe" in said


@pytest.mark.parametrize("error", [NotMigrated("x"), UnfitServer("x")])
def test_a_database_of_another_version_is_the_operators_to_mend(error: StoreError) -> None:
    assert "tell the operator" in read(replies.store_error(error, EN))


def test_a_store_error_gives_no_detail_away() -> None:
    assert "secret" not in read(replies.store_error(StatementRefused("secret detail"), EN))


def test_the_other_sentences() -> None:
    for message, words in (
        (replies.stranger(EN), "Only full members of this workspace may decide here, no guests"),
        (replies.not_for_you(EN), "for full members of this workspace, so nothing was done"),
        (replies.try_again(EN), "Your rights could not be checked"),
        (replies.unreadable(EN), "This button is not one I know"),
        (replies.trigger_dead(EN), "press the button again"),
        (replies.cannot_preview("no such payment <!here>", EN), "no such payment <!here>"),
        (replies.task_too_long(40_000, EN), "40,000 characters"),
        (replies.task_empty(EN), "Tell me what to do"),
    ):
        assert words in read(accepted(message))
        assert "<!here>" not in message.text
