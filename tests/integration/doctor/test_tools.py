"""The doctor on what the tools say of themselves, and on Stripe."""

import os
from pathlib import Path

import pytest

from agent.tools import TOOLS as OF_THE_SHOP
from store.engine import migrate
from tests.databases import Database
from tests.integration.doctor.house import House
from tests.standins.stripe.careless import CarelessStripe
from tests.standins.stripe.line import TEST_KEY, Fault, StripeLine

CHECK = "refund_payments"
TOOLS = """
import asyncio
from pydantic import BaseModel
from agent.tool import Risk, Tool, ToolError

class Nothing(BaseModel):
    '''Do nothing.'''

def fine(): return "the printer is on."
def silent(): return None
def missing(): raise ToolError("the printer is off; switch it on")
def broken(): return {}["x"]
async def stuck(): await asyncio.sleep(60)

TOOLS = [
    Tool(name=check.__name__, input=Nothing, risk=Risk.READ_ONLY, execute=print, check=check)
    for check in (fine, silent, missing, broken, stuck)
]
"""


async def test_a_tool_says_itself_whether_it_can_do_its_work(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "printing.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("bot.doctor.tool_checks.SECONDS", 0.1)
    found = await house.findings(VISTOBUENO_TOOLS="printing:TOOLS")
    assert (found["fine"].status, found["fine"].says) == ("ok", "the printer is on")
    assert "silent" not in found
    assert (found["missing"].status, found["missing"].do) == ("failed", "The printer is off; switch it on.")
    assert found["broken"].do == "Mend the check of broken: it broke off with KeyError."
    assert found["stuck"].do == "Look at what stuck needs: its check did not answer within 0 s."


async def test_tools_of_the_shop_do_no_work_in_a_database_without_it(
    house: House, empty_database: Database
) -> None:
    await migrate(empty_database.owner_url)
    found = await house.findings(DATABASE_URL=empty_database.url)
    assert (found["migrations"].status, found["tools"].status) == ("ok", "ok")
    first, *others = [tool.name for tool in OF_THE_SHOP]
    assert found[first].status == "failed"
    assert found[first].says == f"it cannot do its work, nor can {', '.join(others)}"
    assert (found[first].do or "").startswith("The example shop is not in this database; ")
    assert not set(others) & found.keys(), "five times the same is said once"


async def test_the_tools_look_into_the_database_that_the_app_uses(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/none")
    assert not {tool.name for tool in OF_THE_SHOP} & (await house.findings()).keys()
    assert os.environ["DATABASE_URL"] == "postgresql://elsewhere/none"


async def test_without_a_database_the_tools_that_need_one_say_nothing(house: House) -> None:
    found = await house.findings(DATABASE_URL="")
    assert found["database"].status == "failed"
    assert not {tool.name for tool in OF_THE_SHOP} & found.keys()


async def test_without_a_key_nothing_is_said_of_stripe(house: House) -> None:
    assert CHECK not in await house.findings()


async def test_a_key_that_stripe_takes_is_said_with_its_mode(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with CarelessStripe.running() as url:
        monkeypatch.setenv("STRIPE_API_KEY", TEST_KEY)
        monkeypatch.setenv("STRIPE_API_BASE", url)
        finding = await house.finding(CHECK)
    assert (finding.status, finding.says) == ("ok", "Stripe takes the key, test mode")


@pytest.mark.parametrize(
    ("fault", "do"),
    [
        (Fault.KEY_REVOKED, "Stripe does not take STRIPE_API_KEY; copy it again."),
        (Fault.NOT_ALLOWED, "Stripe says: The key lacks a permission."),
        (Fault.ERROR_BEFORE, "Stripe says: Something went wrong on Stripe's end."),
    ],
)
async def test_what_stripe_refuses_is_one_sentence(
    house: House, monkeypatch: pytest.MonkeyPatch, fault: Fault, do: str
) -> None:
    async with CarelessStripe.running() as url, StripeLine.to(url) as line:
        monkeypatch.setenv("STRIPE_API_KEY", TEST_KEY)
        monkeypatch.setenv("STRIPE_API_BASE", line.url)
        line.plan_reads(fault)
        finding = await house.finding(CHECK)
    assert (finding.status, finding.do) == ("failed", do)


@pytest.mark.parametrize(
    ("key", "base", "do"),
    [
        (TEST_KEY, "http://127.0.0.1:1", "Stripe cannot be reached; look at the network, and at STRIPE_API"),
        ("pk_test_1", "", "STRIPE_API_KEY is no secret key of Stripe; copy one"),
        ("sk_live_1", "http://127.0.0.1:1", "STRIPE_API_BASE is for tests, and a live key"),
    ],
)
async def test_variables_that_cannot_be_used_are_one_sentence_and_no_live_key_leaves(
    house: House, monkeypatch: pytest.MonkeyPatch, key: str, base: str, do: str
) -> None:
    monkeypatch.setenv("STRIPE_API_KEY", key)
    monkeypatch.setenv("STRIPE_API_BASE", base)
    finding = await house.finding(CHECK)
    assert finding.status == "failed"
    assert (finding.do or "").startswith(do)
