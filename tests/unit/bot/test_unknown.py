"""What people see of a call whose outcome nobody knows: the card that asks, reminders, answers to clicks."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.cancel import NotStopped, Stopped
from agent.decide import Refused
from agent.settle import Said, Settled
from bot import replies
from bot.blocks.card import CardContext, card, plain_card
from bot.blocks.listing import approvals_list
from bot.blocks.notices import notice
from bot.blocks.unknown import reminder
from bot.commands.approvals import what_to_do
from bot.texts import texts
from bot.texts.words import EndedWords
from store.records import Actor, Approval, NobodyKnows, Run
from store.transitions import FINISHED_RUNS, OPEN_APPROVALS, ApprovalStatus
from tests.unit.bot.rows import ANA, LEO, MARTA, NOW, approval, approved, settled, tried_again, unknown
from tests.unit.bot.seen import accepted, buttons, read

EN = texts("en")
SAFE = CardContext(EN, irreversible=True, deciders=("U0MARTA",), repeat="safe")
RISKY, NO = replace(SAFE, repeat="risky"), replace(SAFE, repeat="no")
LATE = {"retry_until": (NOW - timedelta(seconds=1)).isoformat()}


def labels(row: Approval, context: CardContext) -> list[str]:
    return [button["text"]["text"] for button in buttons(accepted(card(row, context)))]


# --- the card ---


def test_the_card_says_what_is_known_and_asks() -> None:
    said = read(accepted(card(unknown(), SAFE)))
    for words in (
        "Nobody knows whether it ran.",
        "refund_payments broke off: TimeoutError",
        "Tried once, ",
        "The key was ap_1.",
        "Nobody knows which of these 38 went through: pay_001, pay_002",
        "support_lead may say what happened",
        "it can be tried again until <!date^",
        "Approved by Marta Gil (support_lead)",
    ):
        assert words in said
    assert "Tried 3 times, first " in read(card(unknown(outcome={"attempts": 3}), SAFE))


def test_the_buttons_say_what_happened_and_carry_after_how_many_attempts() -> None:
    found = buttons(accepted(card(unknown(outcome={"attempts": 2}), SAFE)))
    assert [b["text"]["text"] for b in found] == ["It ran", "It did not run", "Try again"]
    assert [b["action_id"] for b in found] == ["outcome_ran", "outcome_did_not_run", "outcome_try_again"]
    assert [b["value"] for b in found] == ["ap_1:1@2"] * 3
    assert found[0]["accessibility_label"].startswith("It ran: Refund 38 payments")


def test_try_again_asks_first_and_says_the_risk() -> None:
    for context, words in ((SAFE, "a repeat changes nothing more"), (RISKY, "it may happen twice")):
        (*_, again) = buttons(card(unknown(), context))
        assert words in again["confirm"]["text"]["text"]
        assert again["confirm"]["style"] == "danger"


def test_what_is_final_asks_first_and_says_what_is_recorded_and_told_to_the_agent() -> None:
    ran, did_not_run, _ = (button["confirm"] for button in buttons(accepted(card(unknown(), SAFE))))
    for asked, words in (
        (ran, "told that it did happen and must not be repeated. Look at what really happened first."),
        (did_not_run, "told that it did not happen, and may ask for it again. Look at what really happened"),
    ):
        assert asked["text"]["text"].startswith("It is recorded under your name that ")
        assert words in asked["text"]["text"] and "nobody can change that" in asked["text"]["text"]
    assert (ran["confirm"]["text"], did_not_run["confirm"]["text"]) == ("It ran", "It did not run")
    assert ran["deny"]["text"] == did_not_run["deny"]["text"] == "Not now"


@pytest.mark.parametrize("risk", [RISKY, SAFE])
def test_the_risk_fits_whole_into_its_dialog(risk: CardContext) -> None:
    ran, did_not_run, again = (button["confirm"]["text"]["text"] for button in buttons(card(unknown(), risk)))
    assert again.endswith("whether the facts still hold.")
    assert ran.endswith("happened first.") and did_not_run.endswith("happened first.")


@pytest.mark.parametrize(("row", "context"), [(unknown(outcome=LATE), SAFE), (unknown(), NO)])
def test_after_a_day_or_when_it_cannot_run_the_other_two_stay(row: Approval, context: CardContext) -> None:
    assert labels(row, context) == ["It ran", "It did not run"]
    assert "it cannot be tried again any more" in read(card(row, context))


def test_the_plain_card_can_be_settled_too() -> None:
    assert len(buttons(accepted(plain_card(unknown(), SAFE)))) == 3
    assert "may say what happened" in read(plain_card(unknown(), SAFE))


def test_the_notification_asks_to_look() -> None:
    assert card(unknown(), SAFE).text.startswith("Please look: nobody knows whether this ran: Refund 38")


def test_an_outcome_of_an_older_release_is_shown_without_a_question() -> None:
    row = approved("unknown", outcome={"kind": "unknown", "text": "no answer"})
    assert "no answer" in read(accepted(card(row, SAFE)))
    assert labels(row, SAFE) == []


def test_a_settled_card_says_who_said_it_and_does_not_say_that_code_knows() -> None:
    ran, not_run = (read(accepted(card(settled(ran=ran), SAFE))) for ran in (True, False))
    assert "Marta Gil (support_lead) looked and says that it ran, " in ran and "Done" not in ran
    assert "Marta Gil (support_lead) looked and says that it did not run, " in not_run
    assert "❌ Failed" not in not_run


@pytest.mark.parametrize("status", ["approved", "executing"])
def test_a_card_that_is_tried_again_says_who_let_it(status: str) -> None:
    said = read(accepted(card(tried_again(status), SAFE)))
    assert "Marta Gil (support_lead) let it be tried again " in said and "under the same key" in said
    assert "cannot run twice" not in said


# --- reminders and the thread ---


def test_a_reminder_names_those_who_are_asked_and_what_they_can_say() -> None:
    first = accepted(reminder(unknown(), SAFE, again=False))
    assert "<@U0MARTA> Nobody knows whether “Refund 38 payments · €4,120.00” ran: please look" in first.text
    assert "It ran, It did not run, or until <!date^" in first.text
    assert "please look at what really happened" in read(first)
    later = accepted(reminder(unknown(outcome=LATE), SAFE, again=True))
    assert "Still nobody knows whether" in read(later) and "Try again" not in read(later)


@pytest.mark.parametrize(("ran", "words"), [(True, "did run."), (False, "did not run.")])
def test_a_late_settlement_is_told_in_the_thread(ran: bool, words: str) -> None:
    data = {"approval_id": "ap_1"}
    rows = {"ap_1": settled(ran=ran)}
    said = accepted(notice("outcome_settled", data, EN, approvals=rows, links={"ap_1": "https://shop/p1"}))
    assert "Marta Gil (support_lead) looked and says that “Refund 38 payments" in read(said)
    assert words in read(said) and "https://shop/p1" in said.text


def test_in_the_list_it_says_that_nobody_knows() -> None:
    said = read(accepted(approvals_list([unknown()], 1, EN, mine=True)))
    assert "nobody knows whether it ran · asked 1 hour ago" in said
    assert "expires" not in said


# --- answers ---


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ran", "You said that “Refund 38 payments · €4,120.00” ran"),
        ("did_not_run", "You said that “Refund 38 payments · €4,120.00” did not run"),
        ("try_again", "“Refund 38 payments · €4,120.00” is tried again under the same key"),
    ],
)
def test_what_counts_is_confirmed(said: Said, words: str) -> None:
    assert read(accepted(replies.settled(Settled(unknown(), said), EN))).startswith(words)


@pytest.mark.parametrize(
    ("row", "by_another", "by_you"),
    [
        (settled(ran=True), "Marta Gil (support_lead) said ", "You have already said "),
        (settled(ran=False), "Marta Gil (support_lead) said ", "You have already said "),
        (tried_again(), "Marta Gil (support_lead) let it be tried again", "You have already let it be"),
        (approved("executed", outcome={"kind": "executed"}), "What became of this is not", "What became of"),
        (approval(), "What became of this is not", "What became of this is not"),
    ],
)
def test_a_second_click_is_told_who_was_first(row: Approval, by_another: str, by_you: str) -> None:
    for user, words in (("U0ANA", by_another), ("U0MARTA", by_you)):
        said = read(accepted(replies.refused(Refused("settled", row), EN, user_id=user)))
        assert said.startswith(words) and "your click changed nothing" in said


def test_what_was_said_first_is_repeated() -> None:
    for ran, words in ((True, "that it ran"), (False, "that it did not run")):
        refused = Refused("settled", settled(ran=ran, by=ANA))
        assert words in read(replies.refused(refused, EN, user_id="U0MARTA"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("too_old", "cannot be tried again: say whether it ran"),
        ("run_stopped", "The run was stopped"),
        ("attempted_again", "look at the card as it is now"),
        ("tool_changed", "The tool has changed"),
    ],
)
def test_why_it_is_not_tried_again_is_said(kind: Any, words: str) -> None:
    link = "https://shop/p1"
    said = accepted(replies.refused(Refused(kind, unknown()), EN, user_id="U0MARTA", current_link=link))
    assert words in read(said)


# --- /approvals cancel ---


def a_run(requester: Actor = LEO) -> Run:
    values: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__)
    return Run(**{**values, "task": "please refund the failed payments", "requester": requester})


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ((), "Stopped: what waited of “please refund the failed payments” does not run any more."),
        ((approved("executing"), unknown()), "what is already running is let finish"),
        ((unknown(),), "somebody has to say on its card whether it ran"),
    ],
)
def test_a_stopped_run_says_what_of_it_is_not_over(left: tuple[Approval, ...], words: str) -> None:
    assert words in read(accepted(replies.stopped(Stopped(a_run(), left), EN)))


def test_a_call_that_asked_nobody_and_is_running_is_let_finish_too() -> None:
    said = read(accepted(replies.stopped(Stopped(a_run(), (), under_way=True), EN)))
    assert (
        "what is already running is let finish, and its card, if it has one, will say how it ended." in said
    )


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (NotStopped("no_such"), "There is no approval and no run “apr_<x>” here"),
        (
            NotStopped("not_yours", a_run(MARTA), roles=("admin",)),
            "Only Marta Gil (support_lead) or admin may",
        ),
        (NotStopped("ended", a_run(), "completed"), "This has ended already (completed), so"),
        (
            NotStopped("ended", a_run(), "rejected", by=MARTA, at=NOW),
            "This has ended already (rejected by Marta Gil (support_lead) 2026-11-26 23:10 UTC), so",
        ),
    ],
)
def test_why_nothing_was_stopped_is_said(refused: NotStopped, words: str) -> None:
    assert words in read(accepted(replies.not_stopped(refused, "apr_<x>", EN)))
    assert "/approvals cancel ID" in read(accepted(replies.stop_which(EN)))


ENDS = sorted({*FINISHED_RUNS, *(set(ApprovalStatus) - OPEN_APPROVALS)})


@pytest.mark.parametrize("status", ENDS)
def test_how_it_ended_is_said_in_the_readers_language(status: str) -> None:
    words = EndedWords(**{name: f"[{said}]" for name, said in vars(EN.ended).items()})
    said = replies.not_stopped(NotStopped("ended", a_run(), status), "apr_1", replace(EN, ended=words))
    assert f"ended already ([{vars(EN.ended)[status]}])" in read(accepted(said))


def test_a_cancelled_card_and_whoever_presses_it_read_who_stopped_the_run() -> None:
    stopped = {"kind": "cancelled", "text": None, "by": LEO.to_json()}
    row = approval("cancelled", outcome=stopped, ended_at=NOW)
    assert "the run was stopped by Leo." in read(accepted(card(row, SAFE)))
    told = read(accepted(replies.refused(Refused("cancelled", row), EN, user_id="U0MARTA")))
    assert told.startswith("The run was stopped by Leo ") and "nothing ran" in told
    by_itself = approval("cancelled", outcome={**stopped, "by": Actor("system").to_json()}, ended_at=NOW)
    assert "the run was stopped." in read(card(by_itself, SAFE))


# --- the command line ---


def test_the_command_line_says_what_is_known_and_what_to_do() -> None:
    lines = what_to_do(unknown())
    assert lines[0] == "Nobody knows whether it ran: refund_payments broke off: TimeoutError"
    assert lines[1].startswith("Tried once, first at 20") and lines[1].endswith("under the key ap_1.")
    assert "It ran, It did not run, and until 20" in lines[2]
    assert lines[3] == "Roles that may say it: support_lead."
    assert "Try again" not in what_to_do(unknown(outcome=LATE))[2]
    assert what_to_do(settled(ran=True)) == []
    assert NobodyKnows.of(settled(ran=True)) is None
