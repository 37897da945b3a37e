"""The doctor on the tools and the policy."""

from pathlib import Path

import pytest

from tests.integration.doctor.house import House


async def test_tools_that_cannot_be_loaded_leave_the_policy_and_its_people_unchecked(house: House) -> None:
    found = await house.findings(VISTOBUENO_TOOLS="no_such_place:TOOLS")
    assert found["tools"].status == "failed"
    assert found["tools"].do is not None
    assert found["tools"].do.startswith("VISTOBUENO_TOOLS: no_such_place could not be imported")
    assert found["policy"].says == "the tools cannot be loaded"
    assert {found[check].says for check in ("channels", "people", "approvers")} == {
        "the policy cannot be used"
    }
    assert found["slack"].status == found["scopes"].status == found["model"].status == "ok"


async def test_a_policy_that_cannot_be_used_leaves_its_people_unchecked(house: House) -> None:
    house.write_policy('approvers = ["support_lead"]', 'approvers = ["supportlead"]')
    found = await house.findings()
    assert found["tools"].status == "ok"
    assert found["policy"].status == "failed"
    assert found["policy"].do is not None
    assert found["policy"].do.endswith("did you mean support_lead?")
    assert {found[check].status for check in ("channels", "people", "approvers")} == {"skipped"}


async def test_a_policy_without_a_file_says_which(house: House, tmp_path: Path) -> None:
    finding = await house.finding("policy", VISTOBUENO_POLICY=str(tmp_path / "nowhere.toml"))
    assert finding.status == "failed"
    assert "nowhere.toml cannot be read" in (finding.do or "")


async def test_the_warnings_of_the_policy_are_warnings(house: House) -> None:
    house.write_policy('users = ["U0MARTA", "U0LEO"]', 'users = ["U0MARTA"]')
    finding = await house.finding("policy")
    assert finding.status == "warning"
    assert finding.do is not None
    assert "four_eyes is on, so what the only approver asks for cannot be approved" in finding.do
    assert finding.do.endswith("name more approvers.")


async def test_where_no_tool_asks_nobody_has_to_answer(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quiet_tools.py").write_text("TOOLS = []\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = await house.findings(VISTOBUENO_TOOLS="quiet_tools:TOOLS")
    assert found["tools"].says == "0 in quiet_tools:TOOLS"
    assert found["channels"].says == found["approvers"].says == "no tool can ask"
