"""`vistobueno preview`: what people would see, measured in the real shop, and nothing is left behind."""

import asyncio
import json
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import psycopg
import pytest

from agent.tools.shop.seed import create_shop
from bot.aligned import columns
from bot.demo import showing
from bot.sandbox import Sandbox
from store import approvals
from store.engine import Database as Store
from tests.acceptance.commands import COMMAND, NOWHERE, ROOT, SECONDS, Ended, answered, clean, vistobueno
from tests.acceptance.contents import contents
from tests.acceptance.scripts import ONLY_ASK
from tests.acceptance.stage import staged
from tests.databases import Database
from tests.sandbox.browsing import Browser

CARD = """\
refund_payments would ask first. This is the card:

Refund 38 payments · €4,120.00
──────────────────────────────

• to the cards of 38 customers
• charged from YYYY-MM-DD to YYYY-MM-DD
• the provider is told: charged twice

This cannot be undone.
failed payments = 38, checked again before it runs
Refund helper asks for U0LEO in #C0APPROVALS

support_lead may decide · 1 approval needed · expires YYYY-MM-DD hh:mm UTC
@U0MARTA: please decide.

Payment   Customer         Amount  Charged
pay_0167  Tomás Fonseca   €194.16  YYYY-MM-DD
pay_0337  Bruno Salgado   €193.39  YYYY-MM-DD
pay_0067  Dario Bosch     €101.95  YYYY-MM-DD
pay_0197  Bruno Ibarra     €29.29  YYYY-MM-DD
pay_0317  Yusuf Quintana   €69.93  YYYY-MM-DD

5 of 38 shown: the 2 largest, 3 spread evenly

In the agent's own words:

> They failed twice.

[Approve]  [Edit]  [Reject]

Approval preview · revision 1 · refund_payments

verdict       ask
who decides   support_lead: U0MARTA
deadline      YYYY-MM-DD hh:mm UTC, in 2 h; then it is not done
card goes to  C0APPROVALS
undo          no, this cannot be undone
note: U0LEO is not known here yet: the real card has the name from Slack
"""


@pytest.fixture
async def shop(database: Database) -> Database:
    """A database with the shop as the story begins."""
    await create_shop(database.owner_url)
    return database


def payments(shop: Database, status: str) -> list[str]:
    """The ids of the payments in a status."""
    with psycopg.connect(shop.admin_url) as connection:
        found = connection.execute("SELECT id FROM shop.payments WHERE status = %s ORDER BY id", [status])
        return [str(id_) for (id_,) in found]


def refund(shop: Database, status: str = "failed", **more: str) -> str:
    """An input for refund_payments, with all payments of a status."""
    return json.dumps({"payment_ids": payments(shop, status), "reason": "charged twice", **more})


COMMON = ("preview", "refund_payments", "--input")


def preview(shop: Database, tool: str, given: str, *more: str, **variables: str) -> Ended:
    return vistobueno("preview", tool, "--input", given, *more, DATABASE_URL=shop.url, **variables)


def dateless(text: str) -> str:
    """The text with letters for days and times, which the shop reckons from today."""
    return re.sub(r"\d\d:\d\d UTC", "hh:mm UTC", re.sub(r"\d{4}-\d\d-\d\d", "YYYY-MM-DD", text))


def timeless(block: Any) -> Any:
    """A block with no moment in its date tokens."""
    return json.loads(re.sub(r"<!date[^>]*>", "<!date>", json.dumps(block)))


def parsed(ended: Ended) -> Any:
    assert (ended.code, ended.err) == (0, ""), ended
    return json.loads(ended.out)


def test_what_asks_is_shown_as_the_approvers_would_see_it(shop: Database) -> None:
    before = contents(shop)
    ended = preview(shop, "refund_payments", refund(shop, rationale="They failed twice."), "--as", "U0LEO")
    assert (ended.code, ended.err) == (0, "")
    assert dateless(ended.out) == CARD
    assert max(map(columns, ended.out.splitlines())) <= 80
    assert contents(shop) == before


async def test_facts_and_blocks_are_those_of_a_call_that_is_really_made(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        given = refund(database, reason="the charge failed")  # as the script gives it
        foreseen = parsed(await answered(*COMMON, given, "--json", DATABASE_URL=database.url))
        await stage.ask()
        card = await stage.card()
        asked = (await stage.approval()).shown
    for part in ("facts", "precondition", "preview"):
        assert foreseen[part] == getattr(asked, part)
    posted = [
        timeless({name: part for name, part in block.items() if name != "block_id"}) for block in card.blocks
    ]
    shown = [timeless(block) for block in foreseen["card"]["blocks"]]
    assert [block["type"] for block in shown] == [block["type"] for block in posted]
    same = [block["type"] for block in shown if block in posted]
    # the place and the ids differ; title, impact, who decides, sample and the agent's words do not
    assert same == ["header", "rich_text", "section", "table", "rich_text", "rich_text"]


async def test_items_that_already_wait_are_said(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        await stage.card()
        waiting = await stage.approval()
        before = contents(database)
    ended = preview(database, "refund_payments", json.dumps(waiting.shown.input))
    assert f"Careful: 38 of these items also wait in another approval ({waiting.id})." in " ".join(
        ended.out.split()
    )
    assert contents(database)["approvals"] == before["approvals"]


async def test_who_asks_has_the_name_that_the_real_card_has(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK) as stage:
        await stage.ask()
        card = await stage.card()
        posted = stage.marta.read(card)
    ended = preview(database, "refund_payments", refund(database), "--as", "U0LEO")
    for said in ("Refund helper asks for Leo in #", "please decide."):
        assert said in ended.out and said in posted
    assert "is not known here yet" not in ended.out


def test_a_program_gets_everything_in_one_object(shop: Database) -> None:
    found = parsed(preview(shop, "delete_customers", '{"opened_before": "2100-01-01"}', "--json"))
    assert found["verdict"] == "ask"
    assert found["reversible"] is False
    assert found["decides"] == {"roles": ["support_lead"], "people": ["U0MARTA"]}
    assert found["escalates_to"] == {"roles": ["admin"], "people": ["U0ANA"]}
    assert found["facts"]["count"] == len(found["facts"]["items"]) > 0
    assert found["preview"]["title"] in found["card"]["text"]
    assert found["card"]["blocks"][0]["type"] == "header"
    in_hours = (datetime.fromisoformat(found["expires_at"]) - datetime.now(UTC)) / timedelta(hours=1)
    assert 23.9 < in_hours <= 24


def test_what_is_allowed_runs_without_a_card(shop: Database) -> None:
    mail = '{"to": ["ana@example.com"], "subject": "Hello", "body": "All is well."}'
    ended = preview(shop, "send_email", mail)
    assert ended.out.startswith("send_email would run at once, and nobody is asked.\n\nSend an email to 1")
    assert "[Approve]" not in ended.out
    found = parsed(preview(shop, "send_email", mail, "--json"))
    assert (found["verdict"], found["card"], found["expires_at"]) == ("allow", None, None)
    assert found["facts"]["count"] == 1


def test_what_is_forbidden_says_why(shop: Database) -> None:
    ended = preview(shop, "refund_payments", refund(shop, "refunded"))
    assert ended.code == 0
    said = " ".join(ended.out.split())
    assert said.startswith("refund_payments would be refused, and nobody is asked: only failed payments")
    found = parsed(preview(shop, "refund_payments", refund(shop, "refunded"), "--json"))
    assert found["verdict"] == "forbid"
    assert found["told"]["rule"] == found["why"]


def test_who_asks_does_not_decide_and_the_lack_of_others_is_said(shop: Database) -> None:
    ended = preview(shop, "refund_payments", refund(shop), "--as", "U0MARTA")
    assert "who decides   support_lead: nobody\n" in ended.out
    assert "not           U0MARTA, who asks for it (four_eyes)\n" in ended.out
    assert "warning: 1 must approve, and too few may decide what U0MARTA asks for" in ended.out
    card = " ".join(ended.out.split())
    assert (
        "Nobody may decide this: only U0MARTA has the role, and asked for it (four eyes). It expires" in card
    )
    assert "please decide" not in card and "support_lead may decide" not in card


# --- on the page of a local Slack


@pytest.fixture
async def page(shop: Database) -> AsyncIterator[tuple[Browser, str, asyncio.subprocess.Process]]:
    """A browser, the address that `preview --open` of 38 refunds prints, and its process."""
    words = ["preview", "refund_payments", "--input", refund(shop), "--as", "U0LEO", "--open"]
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, *words),
        cwd=ROOT,
        env=clean({"DATABASE_URL": shop.url}),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SECONDS):
            said = b""
            while b"Open http" not in said:
                said = await process.stdout.readline()
                assert said, "it ended"
        base, _, address = said.decode().split()[1].partition("/?")
        async with aiohttp.ClientSession() as http:
            yield Browser(cast(Sandbox, SimpleNamespace(base_url=base)), http), f"/?{address}", process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_card_is_shown_to_who_may_decide_on_the_page_of_a_local_slack(
    shop: Database, page: tuple[Browser, str, asyncio.subprocess.Process]
) -> None:
    browser, address, process = page
    before = contents(shop)
    seen = await browser.get(address)
    assert "as Marta, Support lead" in seen.text
    assert "This is only a preview: nobody has asked for it, and nothing is recorded." in seen.text
    assert "Refund 38 payments · €4,120.00" in seen.text
    assert [label for label in seen.labels_of_buttons if label in {"Approve", "Edit", "Reject"}] == [
        "Approve",
        "Edit",
        "Reject",
    ]
    assert contents(shop) == before
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), SECONDS) == 0


async def test_a_button_of_a_previewed_card_says_that_nothing_was_decided(
    shop: Database, page: tuple[Browser, str, asyncio.subprocess.Process]
) -> None:
    browser, address, _ = page
    before = contents(shop)
    for label in ("Approve", "Edit", "Reject"):
        pressed = await browser.press(await browser.get(address), label)
        assert "This is only a preview: nothing was decided, and nothing runs." in pressed.text
        await browser.press(pressed, "Dismiss")
    assert contents(shop) == before


def test_without_a_card_there_is_nothing_to_open(shop: Database) -> None:
    ended = preview(shop, "refund_payments", refund(shop, "refunded"), "--open")
    assert ended.sentence == "There is no card to open: nobody would be asked."
    assert " ".join(ended.out.split()).startswith("refund_payments would be refused")


def test_a_page_is_not_for_programs() -> None:
    assert vistobueno("preview", "send_email", "--input", "{}", "--json", "--open").code == 2


@pytest.mark.parametrize(("variables", "opens"), [({}, False), ({"DISPLAY": ":0"}, True)])
def test_a_browser_is_opened_only_where_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], opens: bool
) -> None:
    urls: list[str] = []
    monkeypatch.setattr(showing.webbrowser, "open", urls.append)
    monkeypatch.setattr(showing.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    showing.open_browser("http://127.0.0.1:1/")
    assert urls == (["http://127.0.0.1:1/"] if opens else [])


# --- what cannot be previewed


def wrong(*words: str, **variables: str) -> list[str]:
    """The lines of an error, of a command that printed nothing else."""
    ended = vistobueno("preview", *words, **{"DATABASE_URL": NOWHERE, **variables})
    assert (ended.code, ended.out) == (1, ""), ended
    return ended.err.splitlines()


def test_every_wrong_field_has_a_line(shop: Database) -> None:
    given = '{"to": ["nobody", "a@b.co"], "subject": 3, "colour": "red"}'
    assert wrong("send_email", "--input", given, DATABASE_URL=shop.url) == [
        "vistobueno: The input does not fit send_email: correct these 4 fields.",
        r"  to.0: String should match pattern '^[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>]+$'",
        "  subject: Input should be a valid string",
        "  body: This is needed",
        "  colour: There is no such field",
    ]
    assert wrong("send_email", "--input", "[1]", DATABASE_URL=shop.url) == [
        "vistobueno: The input does not fit send_email: correct this field.",
        "  the input must be an object",
    ]


def test_an_unknown_tool_names_the_known_ones() -> None:
    assert wrong("refund", "--input", "{}") == [
        "vistobueno: There is no tool 'refund': the tools are delete_customers, draft_refund_report, "
        "refund_payments, search_payments, send_email."
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"to": [,]}', "--input is not JSON at line 1, column 9: Expecting value."),
        ('{\n"to": 1', "--input is not JSON at line 2, column 8: Expecting ',' delimiter."),
        ("", "--input is empty: write a JSON object, like {}."),
        ('{"to": NaN}', "--input cannot be read as JSON: NaN is no number of JSON."),
        ("@none.json", "The input 'none.json' cannot be read: No such file or directory; correct its name."),
    ],
)
def test_what_is_no_json_says_where(given: str, said: str) -> None:
    assert wrong("send_email", "--input", given) == [f"vistobueno: {said}"]


def test_depth_without_end_is_refused_in_one_line() -> None:
    [line] = wrong("send_email", "--input", "[" * 50_000)
    assert line.startswith("vistobueno: --input is nested too deeply: ")


def test_a_person_who_is_no_id_is_refused() -> None:
    [line] = wrong("send_email", "--input", "{}", "--as", "marta")
    assert line.startswith("vistobueno: --as is 'marta': write the member ID")


def test_the_input_comes_from_a_file_or_from_stdin(shop: Database, tmp_path: Path) -> None:
    given = tmp_path / "input.json"
    given.write_text('\ufeff{"status": "failed"}', encoding="utf-8")
    assert parsed(preview(shop, "search_payments", f"@{given}", "--json"))["input"]["status"] == "failed"
    piped = subprocess.run(
        [*COMMAND, "preview", "search_payments", "--input", "-", "--json"],
        input=b'{"status": "failed"}',
        cwd=ROOT,
        env=clean({"DATABASE_URL": shop.url}),
        capture_output=True,
        check=True,
    )
    assert json.loads(piped.stdout)["input"]["status"] == "failed"
    given.write_bytes(b"\xff{}")
    [line] = wrong("search_payments", "--input", f"@{given}")
    assert line == f"vistobueno: {given} is not UTF-8 text at byte 0: write it in UTF-8."


def test_what_the_tool_says_when_it_cannot_measure_is_what_the_agent_would_be_told(shop: Database) -> None:
    given = '{"payment_ids": ["pay_9999"], "reason": "charged twice"}'
    assert wrong("refund_payments", "--input", given, DATABASE_URL=shop.url) == [
        "vistobueno: Nobody would be asked, and the agent would be told: there are no payments pay_9999; "
        "leave them out or look them up."
    ]


# --- tools of somebody's own

TOOLS = '''
import time
from pydantic import BaseModel
from agent.tool import Facts, Preview, Risk, Tool, ToolError, always_ask, ask_when

class Look(BaseModel):
    """Look."""

def stuck(input, ctx):
    time.sleep(600)

def broken(input, ctx):
    raise KeyError("a\\x1b[2Jb")

def table(input, facts, ctx):
    return Preview("山田 & <b>", ["*not bold*"], ["Who", "Why"], [["山" * 30, "w" * 200], ["Ana", "x"]])

def tool(name, risk=Risk.IRREVERSIBLE, **parts):
    return Tool(name=name, input=Look, risk=risk, execute=lambda input, ctx: None, timeout="1s", **parts)

TOOLS = [
    tool("stuck", facts=stuck),
    tool("broken", facts=broken),
    tool("wide", facts=lambda input, ctx: Facts(2), preview=table),
    tool("back", Risk.REVERSIBLE, undo=lambda input, result, ctx: None, policy=always_ask),
    tool("faulty", policy=ask_when(lambda input, facts: facts.nothing)),
]
'''


@pytest.fixture
def own(tmp_path: Path, shop: Database) -> dict[str, str]:
    """The variables for a folder with tools of somebody's own."""
    (tmp_path / "mine.py").write_text(TOOLS)
    policy = (ROOT / "policy.toml").read_text().split("[tools.")[0]
    (tmp_path / "policy.toml").write_text(policy.replace('instructions = "instructions.md"', ""))
    return {"folder": str(tmp_path), "VISTOBUENO_TOOLS": "mine:TOOLS", "DATABASE_URL": shop.url}


def test_a_tool_that_does_not_answer_is_left_after_its_time(own: dict[str, str]) -> None:
    begun = time.monotonic()
    assert wrong("stuck", "--input", "{}", **own) == [
        "vistobueno: Nobody would be asked, and the agent would be told: stuck did not answer within 1 s."
    ]
    assert time.monotonic() - begun < 30


def test_a_tool_that_breaks_gives_the_terminal_no_orders(own: dict[str, str]) -> None:
    [line] = wrong("broken", "--input", "{}", **own)
    assert line.startswith("vistobueno: Nobody would be asked, and the agent would be told: broken failed: ")
    assert line.isprintable()


def test_wide_letters_and_long_cells_keep_to_80_columns(own: dict[str, str]) -> None:
    lines = vistobueno("preview", "wide", "--input", "{}", **own).out.splitlines()
    assert max(map(columns, lines)) <= 80
    assert "山田 & <b>" in lines
    assert "• *not bold*" in lines
    [head] = [line for line in lines if line.startswith("Who ")]
    [long] = [line for line in lines if line.startswith("山山")]
    assert columns(long[: long.index("w")]) == head.index("Why")
    assert long.endswith("…")


def test_what_can_be_undone_says_so(own: dict[str, str]) -> None:
    said = vistobueno("preview", "back", "--input", "{}", **own).out
    assert "undo          yes, this can be undone\n" in said
    assert "asked too     admin: U0ANA, from " in said
    assert "cannot be undone" not in said


def test_a_rule_that_cannot_be_applied_asks_and_says_so(own: dict[str, str]) -> None:
    said = vistobueno("preview", "faulty", "--input", "{}", **own).out
    assert said.startswith("faulty would ask first: a rule of faulty could not be applied (AttributeError")


# --- wrong usage


@pytest.mark.parametrize(
    "words", [(), ("send_email",), ("--input", "{}"), ("send_email", "--input", "{}", "more")]
)
def test_wrong_usage_exits_2(words: tuple[str, ...]) -> None:
    assert vistobueno("preview", *words).code == 2


async def test_no_run_and_no_approval_are_made(shop: Database) -> None:
    preview(shop, "refund_payments", refund(shop))
    db = Store.open(shop.url)
    try:
        assert await approvals.listed(db, open_only=False, limit=1) == []
    finally:
        await db.close()
