"""Who may decide, and when votes suffice."""

from dataclasses import replace

import pytest

from agent.policy import Person, acting_role, may_decide, same_person, votes_after
from store.records import Actor, Vote
from tests.unit.agent.samples import ANA, MARTA, NOON, RULE, approval

LEO = Actor("person", "T0SHOP", "U0LEO", "Leo")
AT = NOON.isoformat()
marta = Person("T0SHOP", "U0MARTA", "Marta", frozenset({"support_lead"}))
ana = Person("T0SHOP", "U0ANA", "Ana", frozenset({"admin"}))
leo = Person("T0SHOP", "U0LEO", "Leo", frozenset())


def test_an_approver_may_decide_and_nobody_else() -> None:
    assert may_decide(RULE, marta, LEO, escalated=False) is None
    assert may_decide(RULE, leo, MARTA, escalated=True) == "not_an_approver"


def test_those_who_are_escalated_to_may_decide_from_then_on() -> None:
    assert may_decide(RULE, ana, LEO, escalated=False) == "not_an_approver"
    assert may_decide(RULE, ana, LEO, escalated=True) is None


def test_the_requester_does_not_decide_under_four_eyes() -> None:
    assert may_decide(RULE, marta, MARTA, escalated=False) == "four_eyes"
    assert may_decide(replace(RULE, four_eyes=False), marta, MARTA, escalated=False) is None


def test_four_eyes_tell_people_of_two_workspaces_apart() -> None:
    assert may_decide(RULE, marta, replace(MARTA, team_id="T0OTHER"), escalated=False) is None


def test_an_operator_is_the_same_person_as_nobody() -> None:
    operator = Actor("operator", name="operator")
    assert not same_person(operator, operator)
    assert same_person(MARTA, replace(MARTA, name="M.", role=None))


def test_people_act_by_the_first_role_that_the_rule_names() -> None:
    both = replace(marta, roles=frozenset({"admin", "support_lead"}))
    assert acting_role(RULE, both) == "support_lead"
    assert acting_role(RULE, ana) == "admin"
    with pytest.raises(ValueError, match="U0LEO"):
        acting_role(RULE, leo)


def test_one_vote_decides_a_quorum_of_one() -> None:
    votes, missing = votes_after(approval(), marta, "approve", AT)
    assert votes == (Vote(MARTA, AT),)
    assert missing == 0


def test_a_quorum_of_two_needs_two_people() -> None:
    waiting = approval(rule=replace(RULE, quorum=2))
    votes, missing = votes_after(waiting, marta, "approve", AT)
    assert missing == 1
    again, still_missing = votes_after(replace(waiting, votes=votes), marta, "approve", "later")
    assert (again, still_missing) == (votes, 1)
    assert votes_after(replace(waiting, votes=votes), ana, "approve", AT) == ((*votes, Vote(ANA, AT)), 0)


def test_an_edit_voids_all_other_votes() -> None:
    waiting = approval(rule=replace(RULE, quorum=2), votes=(Vote(MARTA, AT),))
    assert votes_after(waiting, ana, "edit", "later") == ((Vote(ANA, "later"),), 1)


def test_an_edit_of_somebody_who_voted_is_a_vote_for_the_new_content() -> None:
    waiting = approval(rule=replace(RULE, quorum=2), votes=(Vote(MARTA, AT), Vote(ANA, AT)))
    assert votes_after(waiting, marta, "edit", "later") == ((Vote(MARTA, "later"),), 1)


def test_one_rejection_decides_whatever_the_quorum() -> None:
    waiting = approval(rule=replace(RULE, quorum=2), votes=(Vote(MARTA, AT),))
    assert votes_after(waiting, ana, "reject", "later") == ((Vote(MARTA, AT),), 0)
