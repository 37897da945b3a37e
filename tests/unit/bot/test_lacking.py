"""Where too few people are left to decide, card, line and notices say so, and what helps."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.gaps import Lack
from bot.blocks.card import CardContext, card, plain_card
from bot.blocks.line import LineContext, line
from bot.blocks.notices import NoticeKind, notice
from bot.blocks.unknown import reminder
from bot.texts import texts
from store.records import Approval, Line, Vote
from tests.unit.bot.rows import ANA, IN_CHANNEL, MARTA, NOW, RULE, approval, measured, unknown
from tests.unit.bot.seen import accepted, buttons, read
from tests.unit.bot.test_line import call, run

EN = texts("en")
NOBODY = Lack(0, 1, four_eyes=True)
WHY = "Nobody may decide this: only Marta Gil (support_lead) has the role, and asked for it (four eyes)."
UNTIL = "It expires 2026-11-27 23:10 UTC, unless the operator gives somebody else the role support_lead."
TITLE = "Refund 38 payments · €4,120.00"


def asked(**changes: Any) -> Approval:
    return approval(**{"requester": MARTA, "rule": replace(RULE, escalate_to=()), **changes})


def on_card(lack: Lack, row: Approval | None = None, *deciders: str) -> str:
    context = CardContext(EN, lack=lack, deciders=deciders)
    text = accepted(card(row or asked(), context, mention=True)).text
    return re.sub(r"<!date[^|]*[|]([^>]*)>", r"\1", text)


def in_line(lack: Lack, *rows: Approval) -> str:
    context = LineContext(EN, lacks={row.id: lack for row in rows})
    made = line(Line(run("awaiting_approval"), IN_CHANNEL, "1.1", (call("asked"),), rows, NOW), context)
    return read(accepted(made))


def test_a_card_that_nobody_may_decide_says_so_and_asks_nobody() -> None:
    said = on_card(NOBODY)
    assert said.endswith(f"{WHY} {UNTIL}")
    assert "may decide ·" not in said and "please decide" not in said


@pytest.mark.parametrize("make", [card, plain_card])
def test_the_blocks_say_it_too_and_keep_their_buttons_for_whoever_gets_the_role(make: Any) -> None:
    made = accepted(make(asked(), CardContext(EN, lack=NOBODY)))
    assert "Nobody may decide this: only " in read(made) and "unless the operator gives" in read(made)
    assert len(buttons(made)) == 3


def test_a_card_that_others_may_decide_later_says_from_when() -> None:
    later = NOW + timedelta(hours=4)
    said = on_card(replace(NOBODY, later=later), asked(rule=RULE))
    assert f"{WHY} From 2026-11-27 03:10 UTC admin may decide too.\n1 approval needed · expires" in said
    assert "support_lead may decide" not in said


def test_a_card_that_too_few_may_approve_says_how_many_and_still_asks_them() -> None:
    row = asked(rule=replace(RULE, quorum=2, escalate_to=()))
    said = on_card(Lack(1, 2, four_eyes=True), row, "U0ANA")
    assert "support_lead may decide · 2 approvals needed · expires" in said
    few = "2 people must still approve this, and only 1 may."
    assert f"{few} Marta Gil (support_lead) asked for it and may not (four eyes). {UNTIL}" in said
    assert "<@U0ANA>: please decide." in said
    said = on_card(Lack(1, 2, four_eyes=False), row)
    assert f"{few} {UNTIL}" in said


def test_a_role_that_nobody_has_but_who_has_approved_is_named_so() -> None:
    voted = asked(votes=(Vote(ANA, NOW.isoformat()),))
    assert f"Nobody else has the role support_lead. {UNTIL}" in on_card(
        Lack(0, 1, four_eyes=False, voted=1), voted
    )


def test_who_has_approved_may_still_reject_where_only_the_requester_is_left() -> None:
    row = asked(votes=(Vote(ANA, NOW.isoformat()),), rule=replace(RULE, quorum=2, escalate_to=()))
    said = on_card(replace(NOBODY, voted=1), row)
    assert "support_lead may decide · 1 approval needed" in said
    assert "Nobody else may approve this: only Marta Gil (support_lead) has the role, and asked" in said


def test_a_role_that_nobody_has_is_named() -> None:
    assert f"Nobody has the role support_lead. {UNTIL}" in on_card(Lack(0, 1, four_eyes=False))


def test_the_line_waits_for_nobody() -> None:
    assert in_line(NOBODY, asked()) == f"{WHY} {UNTIL}"
    both = in_line(NOBODY, asked(), asked(id="ap_2"))
    assert both.split("\n") == [f"{TITLE}: {WHY} {UNTIL}"] * 2
    few = in_line(Lack(1, 2, four_eyes=False), asked()).split("\n")
    assert few[0] == "Waiting for support_lead, until 2026-11-27 23:10 UTC"
    assert few[1].endswith(UNTIL)


def test_who_writes_meanwhile_reads_it_too() -> None:
    def said(lack: Lack) -> str:
        behind = (run("awaiting_approval"), [asked()])
        return read(notice(NoticeKind.RUN_RECEIVED, {}, EN, in_the_way=behind, lacks={"ap_1": lack}))

    assert f"It waits with “{TITLE}”. {WHY} {UNTIL}" in said(NOBODY)
    few = said(Lack(1, 2, four_eyes=False))
    assert f"It waits for support_lead to decide “{TITLE}”" in few and UNTIL in few


def test_an_outcome_that_nobody_may_settle_says_so_on_the_card_and_below_it() -> None:
    row = unknown(requester=MARTA, rule=replace(RULE, escalate_to=()))
    context = CardContext(EN, lack=NOBODY, repeat="safe")
    why = "only Marta Gil (support_lead) has the role, and asked for it (four eyes)."
    until = "It stays unknown, unless the operator gives somebody else the role support_lead."
    for made in (card(row, context), reminder(row, context, again=False)):
        said = read(accepted(made)).replace("*", "")
        assert f"Nobody may say what happened: {why} {until}" in said
        assert "support_lead may say what happened" not in said and "say it on the card" not in said
    assert "it can be tried again until" in read(card(row, context))


def test_nothing_of_it_is_said_once_it_is_decided() -> None:
    decided = approval("rejected", requester=MARTA, decided_by=ANA, decided_at=NOW, shown=measured())
    assert "Nobody may decide" not in read(card(decided, CardContext(EN)))
