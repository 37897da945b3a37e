"""The doctor on the people of the policy: who decides nothing, and whether anybody is left."""

from dataclasses import replace

import pytest

from bot.sandbox import Fault
from tests.integration.doctor.house import House

LEADS = 'users = ["U0MARTA", "U0LEO"]'


@pytest.mark.parametrize(
    ("trait", "words"),
    [
        ({"deleted": True}, "was deactivated"),
        ({"is_bot": True}, "is a bot"),
        ({"is_restricted": True}, "is a guest"),
        ({"is_ultra_restricted": True}, "is a guest"),
        ({"is_stranger": True}, "belongs to another workspace"),
        ({"visible_to_bot": False}, "is not known to Slack"),
    ],
)
async def test_whoever_is_no_colleague_is_named_with_their_role(
    house: House, trait: dict[str, bool], words: str
) -> None:
    users = house.sandbox.workspace.users
    users["U0LEO"] = replace(users["U0LEO"], **trait)
    found = await house.findings()
    assert found["people"].status == "failed"
    assert found["people"].says == f"U0LEO (support_lead) {words}"
    assert (found["people"].do or "").startswith("Replace or remove them in [roles.support_lead] of ")
    assert found["approvers"].status == "ok"


async def test_a_user_who_does_not_exist_is_named(house: House) -> None:
    house.write_policy('users = ["U0ANA"]', 'users = ["U0ANNA"]')
    finding = await house.finding("people")
    assert finding.status == "failed"
    assert finding.says == "U0ANNA (admin) is not known to Slack"


async def test_a_tool_that_nobody_is_left_to_approve_fails(house: House) -> None:
    for user in ("U0MARTA", "U0LEO", "U0ANA"):
        house.sandbox.workspace.users[user].deleted = True
    found = await house.findings()
    assert found["people"].says.count("was deactivated") == 3
    assert found["approvers"].status == "failed"
    assert "delete_customers: nobody of support_lead, admin can approve" in found["approvers"].says
    assert (found["approvers"].do or "").startswith(
        "Name more people in [roles.support_lead] or [roles.admin]"
    )


async def test_an_escalation_counts_only_where_it_comes_in_time(house: House) -> None:
    house.write_policy("[roles.admin]", '[tools.send_email]\nexpires_after = "1h"\n[roles.admin]')
    for user in ("U0MARTA", "U0LEO"):
        house.sandbox.workspace.users[user].deleted = True
    finding = await house.finding("approvers")
    assert finding.status == "failed"
    assert "send_email: nobody of support_lead can approve" in finding.says
    assert "delete_customers: four_eyes is on and only 1 person of support_lead, admin can" in finding.says


async def test_a_quorum_that_is_no_longer_reached_fails(house: House) -> None:
    house.write_policy("[roles.support_lead]", "quorum = 3\n[roles.support_lead]")
    house.sandbox.workspace.users["U0LEO"].deleted = True
    finding = await house.finding("approvers")
    assert finding.status == "failed"
    assert "the quorum is 3, and only 2 people of support_lead, admin can approve" in finding.says


async def test_the_only_approver_under_four_eyes_is_warned_of_with_tool_and_role(house: House) -> None:
    house.write_policy('escalate_to = ["admin"]', "")
    house.sandbox.workspace.users["U0LEO"].deleted = True
    finding = await house.finding("approvers")
    assert finding.status == "warning"
    assert finding.says == (
        "refund_payments, send_email, delete_customers: four_eyes is on and only 1 person of support_lead "
        "can approve (quorum 1), so their own requests can never be approved"
    )
    assert (finding.do or "").startswith("Name more people in [roles.support_lead] of ")


async def test_without_four_eyes_one_approver_is_enough(house: House) -> None:
    house.write_policy('escalate_to = ["admin"]', "four_eyes = false")
    house.sandbox.workspace.users["U0LEO"].deleted = True
    assert (await house.finding("approvers")).status == "ok"


async def test_a_look_up_that_fails_is_a_warning_and_counts_against_nobody(house: House) -> None:
    house.sandbox.faults.add("users.info", Fault.error("internal_error"), times=3)
    found = await house.findings()
    assert found["people"].status == "warning"
    assert "U0MARTA could not be looked up (internal_error)" in found["people"].says
    assert found["approvers"].status == "ok"
