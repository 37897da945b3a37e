"""policy.toml: what it means, and the one sentence for each way to get it wrong."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from agent.gaps import Gap, gaps
from agent.policy import Policy, PolicyError, load_policy, verdict_of, warnings
from agent.tool import Facts, Risk, Tool, Verdict, ask_when
from agent.toolbox import load_tools
from agent.why import said

REPOSITORY = Path(__file__).parents[3]
GOOD = """
[agent]
name = "Refund helper"

[defaults]
channel = "C0APPROVALS"
approvers = ["support_lead"]
escalate_to = ["admin"]

[roles.support_lead]
users = ["U0MARTA"]
[roles.admin]
users = ["U0ANA"]

[tools.refund_payments]
expires_after = "2h"
"""


class Input(BaseModel):
    """Do it."""


def nothing(*_: object) -> None:
    return None


def tool(name: str, risk: Risk = Risk.IRREVERSIBLE, **more: object) -> Tool:
    undo = nothing if risk is Risk.REVERSIBLE else None
    return Tool(name=name, input=Input, risk=risk, execute=nothing, undo=undo, **more)  # type: ignore[arg-type]


TOOLS = {
    "refund_payments": tool("refund_payments"),
    "send_email": tool("send_email"),
    "draft_refund_report": tool("draft_refund_report", Risk.REVERSIBLE),
    "search_payments": tool("search_payments", Risk.READ_ONLY),
}


def load(folder: Path, text: str = GOOD) -> Policy:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return load_policy(path, TOOLS, home_team="T0SHOP")


def test_a_tool_has_the_defaults_and_what_its_own_table_changes(tmp_path: Path) -> None:
    policy = load(tmp_path)
    refund, email = policy.rule_for("refund_payments"), policy.rule_for("send_email")
    assert refund.expires_after == 2 * 3600
    assert email.expires_after == 24 * 3600
    assert refund.approvers == email.approvers == ("support_lead",)
    assert (refund.quorum, refund.escalate_after, refund.claim_within) == (1, 4 * 3600, 3600)
    assert refund.channel == "C0APPROVALS"


def test_four_eyes_hold_for_what_cannot_be_undone(tmp_path: Path) -> None:
    policy = load(tmp_path)
    assert policy.rule_for("refund_payments").four_eyes
    assert not policy.rule_for("draft_refund_report").four_eyes


def test_four_eyes_of_a_reversible_tools_own_table_hold(tmp_path: Path) -> None:
    policy = load(tmp_path, GOOD + "[tools.draft_refund_report]\nfour_eyes = true\n")
    assert policy.rule_for("draft_refund_report").four_eyes


def test_a_tool_that_is_not_there_has_no_rule(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        load(tmp_path).rule_for("drop_tables")


def test_roles_hold_in_the_home_workspace_only(tmp_path: Path) -> None:
    policy = load(tmp_path)
    assert policy.roles_of("T0SHOP", "U0MARTA") == {"support_lead"}
    assert policy.roles_of("T0OTHER", "U0MARTA") == frozenset()
    assert policy.roles_of("T0SHOP", "U0STRANGER") == frozenset()
    assert policy.at_home("T0OTHER").roles_of("T0SHOP", "U0MARTA") == frozenset()


def test_without_a_home_workspace_nobody_has_a_role(tmp_path: Path) -> None:
    load(tmp_path)
    assert load_policy(tmp_path / "policy.toml", TOOLS).roles_of("T0SHOP", "U0MARTA") == frozenset()


def test_users_of_roles_come_once_each(tmp_path: Path) -> None:
    policy = load(tmp_path, GOOD.replace('["U0ANA"]', '["U0ANA", "U0MARTA"]'))
    assert policy.users_of(["support_lead", "admin"]) == ("U0MARTA", "U0ANA")


def test_instructions_are_read_next_to_the_policy(tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("Be kind.\n", encoding="utf-8")
    policy = load(tmp_path, GOOD.replace("[defaults]", 'instructions = "how.md"\n[defaults]'))
    assert policy.agent.instructions == "Be kind."
    assert policy.agent.max_steps == 12
    assert policy.agent.max_tokens is None


def test_the_digest_changes_with_the_policy_and_with_the_instructions(tmp_path: Path) -> None:
    text = GOOD.replace("[defaults]", 'instructions = "how.md"\n[defaults]')
    (tmp_path / "how.md").write_text("Be kind.", encoding="utf-8")
    first = load(tmp_path, text).digest
    assert load(tmp_path, text + "# a comment\n").digest == first
    assert load(tmp_path, text.replace('"2h"', '"3h"')).digest != first
    (tmp_path / "how.md").write_text("Be quick.", encoding="utf-8")
    assert load(tmp_path, text).digest != first


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90s"), (1800, "30m"), (4 * 3600, "4h"), (2 * 86400, "2d"), (7 * 86400, "7d")]
)
def test_a_duration_is_a_number_and_a_unit(tmp_path: Path, text: str, seconds: float) -> None:
    assert (
        load(tmp_path, GOOD.replace('"2h"', f'"{text}"')).rule_for("refund_payments").expires_after == seconds
    )


OTHER_ROLE = '["support_lead"]'
MISTAKES = [
    ("unknown table", "[agent]", "[agents]", ['"agents"', "did you mean agent?"]),
    ("unknown key of agent", 'name = "', 'nam = "x"\nname = "', ['"nam" in [agent]', "did you mean name?"]),
    ("unknown default", "escalate_to", "escalte_to", ["[defaults]", "did you mean escalate_to?"]),
    ("unknown key of a tool", "expires_after", "expire_after", ["[tools.refund_payments]", "expires_after?"]),
    ("unknown key of a role", "users =", "user =", ["[roles.support_lead]", "did you mean users?"]),
    ("unknown tool", "refund_payments", "refund_payment", ["did you mean refund_payments?"]),
    (
        "read-only tool",
        "refund_payments",
        "search_payments",
        ["never asks", "remove [tools.search_payments]"],
    ),
    (
        "unknown approver",
        OTHER_ROLE,
        '["suport_lead"]',
        ["approvers in [defaults]", "did you mean support_lead?"],
    ),
    ("unknown escalation", '["admin"]', '["admins"]', ["escalate_to in [defaults]", "did you mean admin?"]),
    ("no approvers", OTHER_ROLE, "[]", ["approvers in [defaults] is empty", "nobody"]),
    ("approvers missing", "approvers =", "# approvers =", ["approvers in [defaults] is missing"]),
    ("approvers as text", OTHER_ROLE, '"support_lead"', ["approvers", "list of texts"]),
    ("role without users", '["U0MARTA"]', "[]", ["users in [roles.support_lead] is empty"]),
    ("role without list", 'users = ["U0MARTA"]', "", ["users in [roles.support_lead] is missing"]),
    ("user by name", '["U0MARTA"]', '["@marta"]', ["'@marta'", "member ID"]),
    ("channel missing", "channel =", "# channel =", ["channel in [defaults] is missing"]),
    ("channel by name", "C0APPROVALS", "#approvals", ["'#approvals'", "ID"]),
    ("name missing", "name =", "# name =", ["name in [agent] is missing"]),
    ("name blank", '"Refund helper"', '" "', ["name in [agent] is empty"]),
    ("name of two lines", "Refund helper", r"Refund\nhelper", ["one line"]),
    ("role is no table", "[roles.admin]\nusers", "[roles]\nadmin", ["admin in [roles] must be a table"]),
    ("duration without unit", '"2h"', '"2"', ["expires_after in [tools.refund_payments]", '"30m"']),
    ("duration as number", '"2h"', "7200", ["expires_after", '"30m"']),
    ("duration of nothing", '"2h"', '"0s"', ['more than "0s"']),
    ("expiry too late", '"2h"', '"8d"', ['at most "7d"']),
    (
        "claim too late",
        "expires_after",
        'claim_within = "25h"\nexpires_after',
        ["claim_within", 'at most "24h"'],
    ),
    (
        "quorum of nobody",
        "expires_after",
        "quorum = 0\nexpires_after",
        ["quorum in [tools.refund_payments] is 0"],
    ),
    ("quorum as flag", "expires_after", "quorum = true\nexpires_after", ["quorum", "a whole number"]),
    ("four_eyes as text", "expires_after", 'four_eyes = "no"\nexpires_after', ["four_eyes", "true or false"]),
    ("steps of nothing", "[defaults]", "max_steps = 0\n[defaults]", ["max_steps in [agent] is 0"]),
    (
        "no instructions",
        "[defaults]",
        'instructions = "no.md"\n[defaults]',
        ["no.md cannot be read", "[agent]"],
    ),
    ("no TOML", "[defaults]", "[defaults", ["is not valid TOML"]),
]


@pytest.mark.parametrize(("old", "new", "told"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence_with_file_key_and_remedy(
    tmp_path: Path, old: str, new: str, told: list[str]
) -> None:
    assert old in GOOD
    with pytest.raises(PolicyError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith(str(tmp_path))
    assert "\n" not in message
    for part in told:
        assert part in message


def test_a_quorum_that_too_few_people_could_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"quorum in \[defaults\] is 3, but only 2 people could decide"):
        load(tmp_path, GOOD.replace("approvers =", "quorum = 3\napprovers ="))


def test_an_escalation_at_expiry_brings_nobody_who_could_decide(tmp_path: Path) -> None:
    # refunds expire after 2 h and escalate after 4: the default quorum of two cannot be reached for them
    message = r"quorum in \[defaults\] is 2, but only 1 person could decide \(\[tools.refund_payments\]\)"
    with pytest.raises(PolicyError, match=message):
        load(tmp_path, GOOD.replace("approvers =", "quorum = 2\napprovers ="))


def test_nobody_to_escalate_to_is_a_choice(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD.replace('["admin"]', "[]")).rule_for("send_email").escalate_to == ()


def test_a_missing_file_says_what_names_it(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.toml cannot be read .* VISTOBUENO_POLICY"):
        load_policy(tmp_path / "nowhere.toml", TOOLS)


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="/dev/zero is larger than 1 MB; correct its path in"):
        load(tmp_path, GOOD.replace("[defaults]", 'instructions = "/dev/zero"\n[defaults]'))


def test_values_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"policy\.toml has values nested too deeply"):
        load(tmp_path, "a = " + "[" * 3_000 + "]" * 3_000)


@pytest.mark.parametrize(
    "number", ["9" * 5_000, "0x" + "f" * 5_000, "-9223372036854775809", "[[1, 0x8" + "0" * 15 + "]]"]
)
def test_a_number_that_toml_does_not_hold_is_refused(tmp_path: Path, number: str) -> None:
    with pytest.raises(PolicyError, match=r"policy\.toml has a number of more than 64 bits; write a smaller"):
        load(tmp_path, GOOD.replace("[defaults]", f"[defaults]\nquorum = {number}"))


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "words.md").write_text("\ufeffRefund what failed.", encoding="utf-8")
    policy = load(tmp_path, "\ufeff" + GOOD.replace("[defaults]", 'instructions = "words.md"\n[defaults]'))
    assert policy.agent.instructions == "Refund what failed."


@pytest.mark.parametrize("name", ["", "  ", "\\n", "\\u202e"])
def test_a_role_without_a_name_that_can_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PolicyError, match=r"in \[roles\] is no name of a role; write it like \[roles\."):
        load(tmp_path, f'{GOOD}\n[roles."{name}"]\nusers = ["U0LEO"]\n')


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_bytes(b'[agent]\nname = "Caf\xe9"')
    with pytest.raises(PolicyError, match="save it as UTF-8"):
        load_policy(tmp_path / "policy.toml", TOOLS)


def test_one_approver_under_four_eyes_is_allowed_and_warned_of(tmp_path: Path) -> None:
    told = warnings(load(tmp_path))
    assert len(told) == 2
    assert (
        "refund_payments: four_eyes is on, so what the only approver asks for cannot be approved;" in told[0]
    )
    assert "send_email: " in told[1]
    assert "before the escalation" in told[1]


def test_two_approvers_leave_nothing_to_warn_of(tmp_path: Path) -> None:
    assert warnings(load(tmp_path, GOOD.replace('["U0MARTA"]', '["U0MARTA", "U0ANA"]'))) == ()


def test_a_quorum_that_needs_the_escalation_is_warned_of(tmp_path: Path) -> None:
    slow = GOOD.replace('"2h"', '"8h"').replace("approvers =", "quorum = 2\napprovers =")
    told = warnings(load(tmp_path, slow))
    assert [warning.partition(": ")[2] for warning in told] == [
        "refund_payments, send_email, draft_refund_report: "
        "the quorum of 2 is reached only after the escalation; name more approvers."
    ]


def test_a_tool_lacks_approvers_for_ever_if_no_escalation_brings_them(tmp_path: Path) -> None:
    assert gaps(load(tmp_path)) == (Gap(("refund_payments",), ("support_lead",), people=1, quorum=1),)
    alone = load(tmp_path).without({"U0MARTA"})
    assert gaps(alone) == (
        Gap(("refund_payments",), ("support_lead",), people=0, quorum=1),
        Gap(("send_email",), ("support_lead", "admin"), people=1, quorum=1),
    )


def test_without_some_people_their_roles_stay_and_are_emptier(tmp_path: Path) -> None:
    policy = load(tmp_path).without({"U0MARTA", "U0STRANGER"})
    assert policy.roles == {"support_lead": (), "admin": ("U0ANA",)}


def test_the_shipped_policy_holds() -> None:
    tools = load_tools("agent.tools:TOOLS")
    policy = load_policy(REPOSITORY / "policy.toml", tools, home_team="T0SHOP")
    assert policy.rule_for("refund_payments").expires_after == 2 * 3600
    assert policy.users_of(policy.rule_for("refund_payments").approvers) == ("U0MARTA",)
    assert policy.agent.instructions
    assert policy.agent.model


def test_the_verdict_is_the_tools_own() -> None:
    refund = tool("refund", policy=ask_when(lambda _, facts: facts.count > 1, "more than one"))
    assert verdict_of(refund, Input(), Facts(2)) == (Verdict.ASK, said("more than one"))
    assert verdict_of(refund, Input(), Facts(1))[0] is Verdict.ALLOW
