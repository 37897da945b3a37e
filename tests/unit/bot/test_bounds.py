"""Hostile and extreme values: nothing breaks a limit of Slack, and nothing becomes markup."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.blocks import bounded, limits
from bot.blocks.bounded import Message
from bot.blocks.card import CardContext, card, plain_card
from bot.blocks.characters import clean, clusters, cut, escape, escaped_width, width
from bot.blocks.listing import approvals_list
from bot.blocks.modals import confirm_edit_view, reject_view
from bot.blocks.notices import notice
from bot.blocks.phrases import fill, mrkdwn, words
from bot.blocks.target import Target
from bot.blocks.unknown import reminder
from bot.texts import texts
from store.records import Actor, Approval, ApprovalId, Overlap, Veto, Vote
from store.transitions import ApprovalStatus
from tests.unit.bot.rows import NOW, RULE, approval, draft, measured
from tests.unit.bot.seen import accepted, accepted_view, parsed_as_markup, read

EN = texts("en")
HOSTILE = (
    "<!channel> <@U0ANA> <https://evil.example|Approve> &amp; *bold* :tada: \u202egnp.exe\u202c a\u200bb\x07"
)
EXTREMES = [
    "",
    " ",
    "\n",
    HOSTILE,
    "x" * 3_001,
    "<" * 3_001,
    "e\u0301" * 3_001,
    "🏳️‍🌈🇪🇸👍🏽" * 1_000,
    "\u0301" * 3_001,
]


def hostile_approval(value: str, status: str = "pending") -> Approval:
    """An approval in which every text from outside is `value`."""
    actor = Actor("person", "T0SHOP", "U0ANA", value, "admin")
    preview = {
        "title": value,
        "impact": [value] * 20,
        "columns": [value] * 8,
        "sample": [[value] * 8] * 5,
        "change": None,
        "added": [0],
        "hidden": {"lines": 0, "columns": 0, "rows": 9},
    }
    items = tuple(f"{value}{n}" for n in range(500))
    shown = measured(preview=preview, precondition={value: value}, input={value: value}, items=items)
    return approval(
        status,
        shown=shown,
        agent=value,
        tool=value,
        requester=actor,
        votes=(Vote(actor, NOW.isoformat()),) * 5,
        rule=replace(RULE, approvers=("support_lead",) * 30),
        decided_by=actor,
        decided_at=NOW,
        reason=value,
        rationale=value,
        author=actor,
        original_input={value: None, "other": [value] * 100},
        replaces=ApprovalId("ap_0"),
        escalated_at=NOW,
        outcome={
            "text": value,
            "output": {value: value, "more": [value] * 50},
            "done": [value] * 500,
            "moved": [{"name": value, "was": value, "is": value}] * 30,
            "attempts": 5,
            "key": value,
            "first_attempt_at": NOW.isoformat(),
            "retry_until": "2099-01-01T00:00:00+00:00",
            "since": NOW.isoformat(),
            "tried_again_by": actor.to_json(),
            "tried_again_at": NOW.isoformat(),
            **({"settled_by": actor.to_json()} if status == "failed" else {}),
        },
    )


def hostile_context(value: str) -> CardContext:
    actor = Actor("person", "T0SHOP", "U0ANA", value, "admin")
    return CardContext(
        EN,
        irreversible=True,
        deciders=("U0MARTA",) * 300,
        overlaps=(Overlap(ApprovalId("ap_2"), ApprovalStatus.PENDING, (value,)),) * 40,
        earlier_refusal=Veto("refund", ApprovalId("ap_0"), "rejected", actor, value),
        replaced=approval(),
        field_titles={value: value},
        repeat="risky",
    )


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("status", ["pending", "superseded", "executed", "unknown", "failed"])
def test_no_card_breaks_a_limit(value: str, status: str) -> None:
    row, context = hostile_approval(value, status), hostile_context(value)
    accepted(card(row, context, mention=True))
    accepted(card(row, context, table=False))
    accepted(plain_card(row, context))


@pytest.mark.parametrize("value", EXTREMES)
def test_no_window_list_or_notice_breaks_a_limit(value: str) -> None:
    row = hostile_approval(value)
    accepted_view(reject_view(Target("ap_1", 1), EN, row))
    accepted_view(confirm_edit_view(row, replace(draft(), content=row.shown), EN, note=True))
    accepted(approvals_list([row] * 40, 900, EN, mine=True))
    accepted(notice("run_completed", {"run_id": "r", "text": value * 20}, EN))
    accepted(approvals_list([hostile_approval(value, "unknown")] * 40, 900, EN, mine=True))
    accepted(reminder(hostile_approval(value, "unknown"), hostile_context(value), again=True))
    settled = {"ap_1": hostile_approval(value, "failed")}
    accepted(notice("outcome_settled", {"approval_id": "ap_1"}, EN, approvals=settled))
    accepted(notice("call_ran", {"call_id": "c", "tool": value, "text": value}, EN))
    accepted(notice("call_asked", {"approval_ids": ["ap_1"], "deferred": 2}, EN, approvals={"ap_1": row}))


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_nothing_from_outside_stands_where_markup_is_parsed(status: ApprovalStatus) -> None:
    row, context = hostile_approval(HOSTILE, status), hostile_context(HOSTILE)
    for message in (card(row, context), card(row, context, table=False), plain_card(row, context)):
        for text in parsed_as_markup(list(accepted(message).blocks)):
            assert "evil" not in text
        for control in ("<!channel>", "<@U0ANA>", "<https://evil"):
            assert control not in message.text


def test_the_title_in_a_reminder_stands_where_no_markup_is_parsed() -> None:
    message = accepted(reminder(hostile_approval(HOSTILE, "unknown"), hostile_context(HOSTILE), again=False))
    assert not [text for text in parsed_as_markup(list(message.blocks)) if "evil" in text]
    assert "<!channel>" not in message.text and "<@U0MARTA>" in message.text


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_what_nobody_sees_is_taken_out(status: ApprovalStatus) -> None:
    message = card(hostile_approval(HOSTILE, status), hostile_context(HOSTILE))
    assert not set("\u202e\u202c\u200b\x07") & set(message.text + read(message))


def test_plain_text_renders_no_emoji() -> None:
    message = card(hostile_approval(HOSTILE), hostile_context(HOSTILE))
    plain = [part for part in _objects(message) if part.get("type") == "plain_text"]
    assert plain and all(part["emoji"] is False for part in plain)


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, Message):
        return _objects(list(value.blocks))
    if isinstance(value, dict):
        return [value, *(found for part in value.values() for found in _objects(part))]
    return [found for part in value for found in _objects(part)] if isinstance(value, list) else []


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_cut_text_keeps_its_limit_and_its_beginning(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert width(short) <= limit
    assert text.startswith(short.removesuffix("…"))


@given(st.text(alphabet="<>&a\u0301👍🏽", max_size=200), st.integers(1, 60))
def test_an_escaped_text_keeps_its_limit_and_its_entities(text: str, limit: int) -> None:
    escaped = escape(cut(text, limit, escaped_width))
    assert width(escaped) <= limit
    assert all(part.startswith(("amp;", "lt;", "gt;")) for part in escaped.split("&")[1:])


@given(st.text(max_size=200))
def test_splitting_into_characters_loses_nothing(text: str) -> None:
    assert "".join(clusters(text)) == text


@pytest.mark.parametrize("whole", ["e\u0301", "🇪🇸", "👍🏽", "\u1100\u1161\u11a8", "q\u0307\u0323"])
def test_a_character_that_people_see_as_one_is_never_cut(whole: str) -> None:
    assert list(clusters(whole)) == [whole]
    assert cut(f"a{whole}bcd", width(whole) + 1) == "a…"


def test_two_flags_are_two_characters() -> None:
    assert list(clusters("🇪🇸🇵🇹")) == ["🇪🇸", "🇵🇹"]


def test_exactly_three_characters_are_escaped() -> None:
    assert escape("a & b < c > \"d\" 'e' é") == "a &amp; b &lt; c &gt; \"d\" 'e' é"


def test_lines_survive_cleaning_and_tabs_become_spaces() -> None:
    assert clean("a\r\nb\rc\u2028d\te\x00") == "a\nb\nc\nd e"


def test_an_empty_value_becomes_a_dash() -> None:
    assert bounded.header("\u200b ")["text"]["text"] == "—"
    assert bounded.table(["A"], [[""]])["rows"][1][0]["text"] == "—"


def test_a_token_that_does_not_fit_is_left_out_whole() -> None:
    phrase = fill("{a} {b}", a=words("x" * 20), b=words("y"))
    assert mrkdwn(phrase, 10) == "xxxxxxxxx…"
    mentioned = bounded.section(phrase)["text"]["text"]
    assert mentioned == "x" * 20 + " y"


TOKEN = "<!date^1796083200^{date} at {time}|2026-12-01 00:00 UTC>"


@given(st.text("a&<> ", max_size=60), st.integers(1, 200))
def test_a_text_without_its_blocks_is_cut_inside_no_entity_and_no_token(words: str, limit: int) -> None:
    whole = bounded.Message(f"{escape(words)} {TOKEN} {escape(words)}", ({"type": "divider"},))
    alone = bounded.text_only(whole, limit)
    assert alone.blocks == () and 0 < width(alone.text) <= limit
    kept = alone.text.removesuffix("…")
    assert alone.text == whole.text or whole.text.startswith(kept)
    rest = re.sub("&(amp|lt|gt);", "", kept.replace(TOKEN, ""))
    assert not set("&<>") & set(rest)


def test_a_message_has_at_most_fifty_blocks() -> None:
    message = bounded.message(words("x"), [bounded.divider()] * 60)
    assert len(message.blocks) == limits.BLOCKS_PER_MESSAGE
