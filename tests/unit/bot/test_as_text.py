"""Blocks as text for a terminal: nothing that a card says is lost, and nothing is wider than the terminal."""

from datetime import UTC, datetime

import pytest

from bot.aligned import columns
from bot.blocks import bounded
from bot.blocks.as_text import as_text
from bot.blocks.card import CardContext, card, plain_card
from bot.blocks.phrases import Channel, Link, User, When, Words
from bot.texts import texts
from store.transitions import ApprovalStatus
from tests.unit.bot.rows import approval, approved, measured

CONTEXT = CardContext(texts=texts("en"), irreversible=True, deciders=("U0MARTA",))
AT = When(datetime(2026, 11, 30, 12, tzinfo=UTC), "{date_short_pretty}")
PHRASE = (Words("<b> & *c* "), User("U0LEO"), Words(" "), Channel("C0SHOP"), Words(" "), AT)


def test_markup_and_rich_text_read_the_same() -> None:
    wanted = "<b> & *c* {0}U0LEO {1}C0SHOP 2026-11-30 12:00 UTC"
    assert as_text([bounded.section(PHRASE)], 80) == wanted.format("@", "#")
    assert as_text([bounded.lines([PHRASE])], 80) == wanted.format("@", "#")


def test_what_looks_like_an_entity_in_a_text_from_outside_stays_as_it_is() -> None:
    assert as_text([bounded.section((Words("&lt;U&gt; &amp;amp;"),))], 80) == "&lt;U&gt; &amp;amp;"


def test_a_link_is_its_words() -> None:
    link = (Link("https://x.example/a|b", "Open it"),)
    assert as_text([bounded.section(link), bounded.lines([link])], 80) == "Open it\n\nOpen it"


def test_words_of_the_agent_are_marked_line_by_line() -> None:
    said = as_text([bounded.quote("one\ntwo " + "three " * 20, 600)], 40)
    assert all(line.startswith("> ") for line in said.splitlines())
    assert max(map(columns, said.splitlines())) <= 40


def test_a_block_that_no_card_has_is_a_fault() -> None:
    with pytest.raises(KeyError):
        as_text([{"type": "video"}], 80)


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_a_card_of_every_status_can_be_read(status: ApprovalStatus) -> None:
    row = approval() if status is ApprovalStatus.PENDING else approved(status.value)
    for message in (card(row, CONTEXT), card(row, CONTEXT, table=False), plain_card(row, CONTEXT)):
        said = as_text(message.blocks, 80)
        assert "Refund 38 payments · €4,120.00" in said
        assert "38 customers get their money back" in said


def test_a_table_keeps_to_the_terminal_and_amounts_stand_to_the_right() -> None:
    preview = measured().preview
    row = ["pay_001", {"amount": "9.00", "currency": "EUR"}, "山" * 60]
    shown = measured(preview={**preview, "sample": [preview["sample"][0], row]})
    lines = as_text(card(approval(shown=shown), CONTEXT).blocks, 80).splitlines()
    at = lines.index(next(line for line in lines if line.startswith("Payment ")))
    assert max(map(columns, lines)) <= 80
    assert lines[at + 1].startswith("pay_001  €120.00  ")
    assert lines[at + 2].startswith("pay_001    €9.00  山")
    assert lines[at + 2].endswith("…")
