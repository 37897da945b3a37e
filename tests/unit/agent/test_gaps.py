"""Who is left to decide one approval, and what is lacking where these are too few."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from agent.gaps import Lack, deciders, lack, waited_for
from agent.policy import AgentPolicy, Policy
from store.records import Actor, Approval, Vote
from store.transitions import ApprovalStatus, RunStatus
from tests.unit.bot.rows import ANA, LEO, MARTA, NOW, RULE, approval, approved, unknown

ALONE = replace(RULE, escalate_to=())
TWO = replace(ALONE, quorum=2)


def policy(*leads: str) -> Policy:
    roles = {"support_lead": leads or ("U0MARTA",), "admin": ("U0ANA",)}
    return Policy("policy.toml", AgentPolicy("a", "", 1, None, None), roles, {}, (), "d")


def asked_by(requester: Actor, **changes: Any) -> Approval:
    return approval(**{"requester": requester, "rule": ALONE, **changes})


@pytest.mark.parametrize(
    "row",
    [
        asked_by(LEO),
        asked_by(Actor("operator")),
        asked_by(MARTA, rule=replace(ALONE, four_eyes=False)),
        asked_by(ANA),
        asked_by(MARTA, rule=RULE, escalated_at=NOW),
        approved(requester=MARTA, rule=ALONE),
        unknown(requester=LEO, rule=replace(RULE, quorum=3)),
    ],
)
def test_nothing_is_lacking_where_enough_people_may_decide(row: Approval) -> None:
    assert lack(policy(), row) is None


def test_a_run_waits_for_people_who_are_asked_and_for_what_nobody_knows_for_a_day() -> None:
    day = timedelta(hours=24)
    asked, lost = approval(), unknown()
    rows = [asked, approved(), approval(ApprovalStatus.EXECUTING), lost, unknown(now=lost.now + day)]
    waiting: Any = SimpleNamespace(status=RunStatus.AWAITING_APPROVAL)
    stopped: Any = SimpleNamespace(status=RunStatus.CANCELLED)
    assert waited_for(waiting, rows) == [asked, lost]
    assert waited_for(stopped, rows) == []


def test_nobody_is_left_where_the_only_approver_has_asked() -> None:
    assert lack(policy(), asked_by(MARTA)) == Lack(0, 1, four_eyes=True)
    assert lack(policy("U0MARTA", "U0EVA"), asked_by(MARTA)) is None
    assert lack(policy(), unknown(requester=MARTA, rule=ALONE)) == Lack(0, 1, four_eyes=True)


def test_a_quorum_that_is_not_reached_without_the_requester_is_lacking_too() -> None:
    assert lack(policy("U0MARTA", "U0EVA"), asked_by(MARTA, rule=TWO)) == Lack(1, 2, four_eyes=True)
    eva = Vote(Actor("person", "T0SHOP", "U0EVA", "Eva"), NOW.isoformat())
    assert lack(policy("U0MARTA", "U0EVA"), asked_by(MARTA, rule=TWO, votes=(eva,))) == Lack(
        0, 1, four_eyes=True, voted=1
    )
    assert lack(policy("U0MARTA", "U0EVA"), asked_by(LEO, rule=TWO, votes=(eva,))) is None


def test_an_escalation_makes_up_for_it_only_if_it_comes_in_time_and_brings_enough() -> None:
    soon = NOW + timedelta(hours=1)
    row = asked_by(MARTA, rule=RULE, escalate_at=soon)
    assert lack(policy(), row) == Lack(0, 1, four_eyes=True, later=soon)
    lost = unknown(requester=MARTA)
    assert lack(policy(), lost) == Lack(0, 1, four_eyes=True, later=NOW + timedelta(hours=3, minutes=1))
    for change in (
        {"escalate_at": row.expires_at},
        {"escalate_at": None},
        {"rule": replace(RULE, quorum=2)},
    ):
        found = lack(policy(), replace(row, **change))
        assert found is not None and found.later is None, change


def test_a_role_that_nobody_has_any_more_is_no_matter_of_four_eyes() -> None:
    assert lack(policy(), asked_by(LEO, rule=replace(ALONE, approvers=("gone",)))) == Lack(
        0, 1, four_eyes=False
    )


def test_who_may_decide_is_neither_the_requester_nor_who_has_approved() -> None:
    some = policy("U0MARTA", "U0EVA", "U0LEO")
    vote = Vote(MARTA, NOW.isoformat())
    assert deciders(some, asked_by(LEO), ["support_lead"]) == ("U0MARTA", "U0EVA")
    assert deciders(some, asked_by(LEO, votes=(vote,)), ["support_lead"]) == ("U0EVA",)
    assert deciders(some, unknown(requester=LEO), ["support_lead"]) == ("U0MARTA", "U0EVA")
