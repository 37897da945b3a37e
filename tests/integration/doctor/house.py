"""A house with everything right, for one thing at a time to be made wrong."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.tools.shop.seed import create_shop
from bot.doctor.examination import examine
from bot.doctor.finding import Finding
from bot.doctor.program import Installed, running
from bot.doctor.scopes import BOT_SCOPES
from bot.sandbox import RateLimits, Sandbox
from bot.sandbox.model_api import create_model_api
from tests.databases import Database
from tests.standins.model import serve

KEY = "sk-right"
SECRET = "0123456789abcdef0123456789abcdef"
POLICY = """
[agent]
name = "Refund helper"

[defaults]
channel = "C0APPROVALS"
approvers = ["support_lead"]
escalate_to = ["admin"]

[roles.support_lead]
users = ["U0MARTA", "U0LEO"]
[roles.admin]
users = ["U0ANA"]
"""


@dataclass
class House:
    """Variables of an environment in which all is well, and what they name."""

    sandbox: Sandbox
    database: Database
    variables: dict[str, str]

    def write_policy(self, old: str, new: str) -> None:
        """Write the policy with `new` in the place of `old`."""
        assert old in POLICY
        Path(self.variables["VISTOBUENO_POLICY"]).write_text(POLICY.replace(old, new), encoding="utf-8")

    async def findings(self, **variables: str) -> dict[str, Finding]:
        """What the doctor finds with these variables changed (empty: unset), by check."""
        found = await examine({**self.variables, **variables})
        assert_form(found)
        return {finding.check: finding for finding in found}

    async def finding(self, check: str, **variables: str) -> Finding:
        """What the doctor finds in one check."""
        return (await self.findings(**variables))[check]


def assert_form(found: Sequence[Finding]) -> None:
    """Every failure and warning says what to do, and nothing else does; no check is there twice."""
    assert len({finding.check for finding in found}) == len(found)
    for finding in found:
        assert (finding.do is not None) == (finding.status in {"failed", "warning"}), finding
        assert not finding.says.endswith("."), finding
        assert finding.do is None or finding.do.endswith((".", "?")), finding


@asynccontextmanager
async def healthy(database: Database, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """A house in which every check is fine."""
    [root] = running()  # the tests may run in another folder than the one that is installed
    patch.setattr("bot.doctor.program.installed", lambda: Installed("0.1.0", root))
    patch.setattr("store.embedded.default_folder", lambda: folder / "no database")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    await create_shop(database.owner_url)
    provider = create_model_api(_no_answer, faults=(), api_key=KEY)
    async with Sandbox.running(rate_limits=RateLimits.off()) as sandbox, serve(provider) as model_url:
        sandbox.workspace.app.scopes = set(BOT_SCOPES)
        sandbox.workspace.app.signing_secret = SECRET
        yield House(
            sandbox,
            database,
            {
                "DATABASE_URL": database.url,
                "SLACK_API_URL": sandbox.api_url,
                "SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token,
                "SLACK_SIGNING_SECRET": SECRET,
                "ANTHROPIC_API_KEY": KEY,
                "ANTHROPIC_BASE_URL": model_url,
                "VISTOBUENO_POLICY": str(folder / "policy.toml"),
            },
        )


async def _no_answer(request: dict[str, object]) -> dict[str, object]:
    raise AssertionError("the doctor asks the model for nothing that costs")
