"""The line says in people's words what a run is doing, what it waits for, and how it ended."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.results import withdrawn
from bot.blocks.line import LineContext, line
from bot.texts import texts
from store.records import Actor, Approval, ApprovalId, Call, CallId, ConversationId, Line, Run, RunId
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests.unit.bot.rows import IN_CHANNEL, ITEMS, LEO, MARTA, NOW, approval, approved, measured
from tests.unit.bot.seen import accepted, read

EN = texts("en")
DOING = {"refund_payments": "Refunding payments"}
TITLE = "Refund 38 payments · €4,120.00"


def run(status: str, **changes: Any) -> Run:
    made = Run(
        id=RunId("r1"),
        conversation_id=ConversationId("v1"),
        seq=1,
        status=RunStatus(status),
        agent="Refund helper",
        task="refund them",
        requester=LEO,
        source_key="e1",
        state_version=1,
        steps=1,
        input_tokens=0,
        output_tokens=0,
        turn=1,
        open_calls=0,
        faults=0,
        not_before=None,
        started_at=NOW,
        ended_at=None,
        created_at=NOW,
        error=None,
        answer=None,
    )
    return replace(made, **changes)


def call(status: str, tool: str = "refund_payments", **changes: Any) -> Call:
    made = Call(
        id=CallId("c1"),
        run_id=RunId("r1"),
        turn=1,
        position=0,
        provider_id="toolu_1",
        tool=tool,
        effect=None,
        input={},
        rationale=None,
        status=CallStatus(status),
        result=None,
        measured=None,
        items=(),
        not_before=None,
        attempts=1,
        first_attempt_at=None,
        key=None,
        repeatable=True,
        only_reads=False,
        output=None,
        done_items=None,
        ended_at=None,
    )
    return replace(made, **changes)


def said(
    of: Run,
    *calls: Call,
    approvals: tuple[Approval, ...] = (),
    stopped_by: Actor | None = None,
    **context: Any,
) -> str:
    """The line, after a strict Slack has taken it."""
    made = LineContext(EN, **{"doing": DOING, **context})
    return read(accepted(line(Line(of, IN_CHANNEL, "1.1", calls, approvals, NOW, stopped_by), made)))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("proposed", "Refunding payments: checking what it would do."),
        ("executing", "⏳ Refunding payments"),
        ("done", "Reading the results."),
        ("superseded", "The facts moved before it ran, so nothing ran. Looking again."),
        ("rejected", "Reading what was decided; nothing ran."),
        ("expired", "Reading what was decided; nothing ran."),
    ],
)
def test_a_run_at_work_says_what_it_does_now(status: str, words: str) -> None:
    assert said(run("running"), call(status)) == words


@pytest.mark.parametrize("status", ["running", "queued"])
def test_an_allowed_call_that_must_wait_is_told_the_same_while_it_is_tried(status: str) -> None:
    of = run(status, not_before=NOW if status == "queued" else None)
    words = said(of, call("allowed", attempts=0))
    assert words == "Refunding payments: next, as soon as nothing else is in its way."


def test_a_call_that_the_house_took_back_is_not_said_to_have_moved() -> None:
    gone = call("superseded", result=withdrawn("refund_payments", "It is gone.").to_json())
    words = "It could not run any more as it was asked, so nothing ran. Looking again."
    assert said(run("running"), gone) == words
    assert said(run("running"), gone, call("superseded")).startswith("The facts moved")


def test_a_run_that_has_just_begun_reads_the_request() -> None:
    assert said(run("running", turn=0)) == "Reading your request."


def test_a_tool_without_words_of_its_own_is_named() -> None:
    assert said(run("running"), call("executing", "search_payments")) == "⏳ Using search_payments"


def test_a_call_that_was_approved_is_first_checked_again() -> None:
    checking = call("executing", attempts=0)
    words = said(run("awaiting_approval"), checking, approvals=(approved("executing"),))
    assert words == "Refunding payments: checking first that the facts still hold."


@pytest.mark.parametrize(
    ("count", "words"),
    [((12, 41), "12 of 41"), ((0, 41), "0 of 41"), ((1200, 12000), "1,200 of 12,000"), ((7, None), "7")],
)
def test_long_work_shows_its_count(count: tuple[int, int | None], words: str) -> None:
    assert said(run("running"), call("executing"), count=count) == f"⏳ Refunding payments: {words}"


def test_a_count_belongs_to_the_call_that_executes() -> None:
    assert said(run("running"), call("done"), count=(12, 41)) == "Reading the results."


def test_a_run_that_waits_says_for_whom_and_until_when() -> None:
    waits, asked = run("awaiting_approval"), (approval(),)
    until = "until 2026-11-27 23:10 UTC"
    assert said(waits, call("asked"), approvals=asked) == f"Waiting for support_lead, {until}"
    named = said(waits, call("asked"), approvals=asked, names={"ap_1": ["Marta", "Ana"]})
    assert named == f"Waiting for Marta or Ana, {until}"


def test_a_run_that_waits_for_several_says_for_what() -> None:
    other = replace(approval(), id=ApprovalId("ap_2"))
    words = said(run("awaiting_approval"), call("asked"), approvals=(approval(), other))
    assert words.split("\n") == [f"Waiting for support_lead, until 2026-11-27 23:10 UTC: {TITLE}"] * 2
    ended = replace(approved("superseded"), id=ApprovalId("ap_2"))
    words = said(run("awaiting_approval"), call("asked"), approvals=(ended, approval()))
    assert words == "Waiting for support_lead, until 2026-11-27 23:10 UTC"


EDITED = {"author": MARTA, "original_input": {"payment_ids": [*ITEMS, "pay_900"], "reason": "twice"}}


def test_whoever_asked_reads_that_it_was_edited_by_whom_and_how_many_were_left_out() -> None:
    few = measured(input={"payment_ids": ["pay_001", "pay_002", "pay_950"], "reason": "twice"})
    row = approved("executed", shown=few, **EDITED)
    by = f"{TITLE}, edited by Marta Gil (support_lead)"
    assert said(run("completed"), approvals=(row,)) == f"Finished.\n✅ Done: {by}: 1 added, 37 left out"
    waits = approval(shown=few, **EDITED)
    assert said(run("awaiting_approval"), approvals=(waits,)).endswith(f"{by}: 1 added, 37 left out")


def test_an_edit_of_no_list_is_told_without_a_count() -> None:
    row = approved(author=MARTA, original_input={**measured().input, "reason": "another"})
    words = said(run("awaiting_approval"), approvals=(row,))
    assert words == f"Approved, about to run: {TITLE}, edited by Marta Gil (support_lead)"


def test_who_waits_is_never_a_mention() -> None:
    context = LineContext(EN, names={"ap_1": ["<@U0MARTA>"]})
    made = line(Line(run("awaiting_approval"), IN_CHANNEL, "1.1", (), (approval(),), NOW), context)
    assert "<@" not in made.text
    assert '"user"' not in str(made.blocks)


def test_calls_of_one_turn_are_told_one_a_line() -> None:
    executing = replace(approved("executing"), id=ApprovalId("ap_2"), call_id=CallId("c2"))
    words = said(
        run("awaiting_approval"),
        call("asked"),
        call("executing", id=CallId("c2")),
        approvals=(approval(), executing, replace(approved(), id=ApprovalId("ap_3"))),
    )
    first, second, third = words.split("\n")
    assert (first, third) == ("⏳ Refunding payments", f"Approved, about to run: {TITLE}")
    assert second == f"Waiting for support_lead, until 2026-11-27 23:10 UTC: {TITLE}"


def test_what_nobody_knows_waits_for_a_person() -> None:
    unknown = (approved("unknown", attempted=True),)
    words = said(run("awaiting_approval"), call("unknown"), approvals=unknown)
    assert words == f"⚠️ Nobody knows whether it ran, a person has to look: {TITLE}"


def test_a_run_in_the_queue_says_whether_something_is_in_its_way() -> None:
    assert said(run("queued")) == "About to go on."
    later = run("queued", not_before=NOW + timedelta(minutes=5))
    assert said(later) == "Something is in the way; trying again 2026-11-26 23:16 UTC."


def test_a_run_that_is_tried_every_few_seconds_says_the_same_each_time() -> None:
    tries = {said(run("queued", not_before=NOW + timedelta(seconds=n))) for n in (-3, 2, 59)}
    assert tries == {"Something is in the way; trying again shortly."}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("completed", "Finished."),
        ("exhausted", "Stopped: this run has used up its steps."),
        ("failed", "Stopped: this run could not be finished."),
        ("cancelled", "Stopped by a person."),
    ],
)
def test_a_run_that_has_ended_says_how(status: str, words: str) -> None:
    assert said(run(status), call("executing"), count=(12, 41)) == words


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (MARTA, "Stopped by Marta Gil (support_lead)."),
        (Actor("person", "T0SHOP", "U0LEO", "Leo"), "Stopped by Leo."),
        (Actor("operator", name="the operator"), "Stopped by the operator."),
    ],
)
def test_a_run_that_was_stopped_says_by_whom_if_that_is_known(by: Actor, words: str) -> None:
    assert said(run("cancelled"), stopped_by=by) == words


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("executed", "✅ Done: "),
        ("failed", "❌ Failed: "),
        ("rejected", "⛔ Rejected, nothing ran: "),
        ("expired", "⌛ Out of time, nothing ran: "),
        ("cancelled", "Cancelled, nothing ran: "),
        ("superseded", "↻ Out of date, nothing ran: "),
        ("executing", "⏳ Still running: "),
        ("unknown", "⚠️ Nobody knows whether it ran, a person has to look: "),
    ],
)
def test_what_became_of_each_request_is_told_at_the_end(status: str, words: str) -> None:
    ended = said(run("completed"), approvals=(approved(status, attempted=True),))
    assert ended == f"Finished.\n{words}{TITLE}"


def test_many_requests_are_counted_and_not_all_named() -> None:
    many = tuple(replace(approved("executed"), id=ApprovalId(f"ap_{n}")) for n in range(12))
    words = said(run("completed"), approvals=many).split("\n")
    assert (len(words), words[-1]) == (7, "… and 7 more")


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("of", ApprovalStatus)
def test_every_state_fits_into_a_message_however_long_its_words_are(
    status: RunStatus, of: ApprovalStatus
) -> None:
    shown = approval().shown
    long = replace(shown, preview={**shown.preview, "title": "<&" * 5_000})
    rows = tuple(replace(approved(of), id=ApprovalId(f"ap_{n}"), shown=long) for n in range(12))
    calls = [call("executing", "x" * 64, id=CallId(f"c{n}")) for n in range(12)]
    assert said(run(status), *calls, approvals=rows, names={"ap_1": ["&" * 80] * 3})
