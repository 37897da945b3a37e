"""A policy or tools that cannot be used: one line that names the place and the mend, and exit 1."""

import re
from pathlib import Path

import pytest

from bot.sandbox import Sandbox
from tests.acceptance.commands import MODEL, answered, vistobueno
from tests.databases import Database


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy that can be used, to be spoiled."""
    written = tmp_path / "policy.toml"
    written.write_text(
        '[agent]\nname = "Helper"\n[defaults]\nchannel = "C0APPROVALS"\napprovers = ["lead"]\nquorum = 1\n'
        'expires_after = "24h"\n[roles.lead]\nusers = ["U0MARTA"]\n[tools.refund_payments]\nquorum = 1\n'
    )
    return written


# --- the policy ---

SPOILT = [
    ("quorum = 1", "quorum = = 1", r"is not valid TOML; correct it: .* \(at line 6"),
    ('["lead"]', '["laed"]', r"approvers in \[defaults\] names the role 'laed'.*; did you mean lead\?$"),
    (
        "expires_after",
        "expire_after",
        r'"expire_after" in \[defaults\] is not .*; did you mean expires_after\?$',
    ),
    ('["lead"]', "[]", r"approvers in \[defaults\] is empty, which means nobody; write it like"),
    ('users = ["U0MARTA"]', "", r"users in \[roles.lead\] is missing; write it like"),
    ('["U0MARTA"]', '["marta"]', r"users in \[roles.lead\] has 'marta'; write the member ID"),
    ("refund_payments", "refund_payment", r"is not a tool; did you mean refund_payments\?$"),
    ('"24h"', '"a day"', r"expires_after in \[defaults\] must be a duration like .*, not 'a day'"),
    ("quorum = 1\nexp", "quorum = 9\nexp", r"quorum in \[defaults\] is 9, but only 1 person could decide"),
    ('"C0APPROVALS"', '"#approvals"', r"channel in \[defaults\] is '#approvals'; write the ID"),
]


@pytest.mark.parametrize(("old", "new", "said"), SPOILT)
def test_a_fault_of_the_policy_is_named_with_its_place(policy: Path, old: str, new: str, said: str) -> None:
    policy.write_text(policy.read_text().replace(old, new, 1))
    sentence = vistobueno("policy", "check", VISTOBUENO_POLICY=str(policy)).sentence
    assert sentence.startswith(str(policy))
    assert re.search(said, sentence), sentence


def test_a_policy_that_is_not_there_is_named(tmp_path: Path) -> None:
    sentence = vistobueno("policy", "check", folder=str(tmp_path)).sentence
    assert sentence.startswith(
        "policy.toml cannot be read (No such file or directory); create it, or correct"
    )


async def test_what_runs_refuses_the_same_policy(database: Database, tmp_path: Path) -> None:
    policy = tmp_path / "missing.toml"
    async with Sandbox.running() as sandbox:
        app = sandbox.workspace.app
        slack = {"SLACK_BOT_TOKEN": app.bot_token, "SLACK_API_URL": sandbox.api_url}
        variables = {"DATABASE_URL": database.url, "VISTOBUENO_POLICY": str(policy), **MODEL, **slack}
        ended = await answered("worker", **variables)
    assert ended.sentence.startswith(f"{policy} cannot be read")


# --- the tools ---

TOOLS = """
from pydantic import BaseModel
from agent.tool import Risk, Tool

class Look(BaseModel):
    '''Look.'''

look = Tool(name="look", input=Look, risk=Risk.READ_ONLY, execute=lambda input, ctx: {})
ONE, TWICE, MIXED, WORD = look, [look, look], [look, 3], "look"
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tools of the user's own."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "mine.py").write_text(TOOLS)
    (folder / "lacking.py").write_text("import no_such_library")
    (folder / "leaving.py").write_text("raise SystemExit(3)")
    (folder / "loud.py").write_text("raise RuntimeError('one\\ntwo')")
    return folder


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("lacking:TOOLS", "lacking could not be imported (ModuleNotFoundError: No module named 'no_such_lib"),
        ("leaving:TOOLS", "leaving could not be imported (SystemExit: 3); correct that file, or its name."),
        ("loud:TOOLS", "loud could not be imported (RuntimeError: one two); correct that file"),
        ("missing:TOOLS", "missing could not be imported (ModuleNotFoundError: No module named 'missing')"),
        ("mine:TOOL", "mine has no TOOL; name the list of tools there."),
        ("mine:ONE", "mine:ONE must be a list of tools, not Tool."),
        ("mine:WORD", "mine:WORD must be a list of tools, not str."),
        ("mine:MIXED", "mine:MIXED may hold only Tool(…), not 3."),
        ("mine:TWICE", "mine:TWICE has 2 tools named look; give each its own name."),
    ],
)
def test_a_fault_of_the_tools_is_named(tools: Path, policy: Path, spec: str, said: str) -> None:
    ended = vistobueno(
        "policy", "check", folder=str(tools), VISTOBUENO_TOOLS=spec, VISTOBUENO_POLICY=str(policy)
    )
    assert ended.sentence.startswith(f"VISTOBUENO_TOOLS: {said}")


def test_tools_that_are_not_named_as_they_must_be_are_refused() -> None:
    said = vistobueno("policy", "check", VISTOBUENO_TOOLS="agent.tools").sentence
    assert said == "VISTOBUENO_TOOLS is 'agent.tools': write it as package.module:NAME."
