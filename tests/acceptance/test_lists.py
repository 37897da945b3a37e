"""`runs` and `approvals` in a terminal: the story in columns, and a sentence where there is nothing."""

import json
import re

import pytest

from agent.scripted import Script, call, say, script, step
from agent.tools.shop.seed import fail_three_overnight
from bot.aligned import columns
from store import approvals
from store.records import Approval
from tests.acceptance.commands import Ended, answered, vistobueno
from tests.acceptance.scripts import LAST_WORDS, LOOK, ONLY_ASK, ask_for_refunds, refund
from tests.acceptance.stage import staged
from tests.databases import Database

WHY = "They failed twice, and the customers have asked for their money back in three messages since."
WITH_A_REASON = script(
    LOOK,
    step(call("refund_payments", lambda asked: {**refund(asked), "rationale": WHY})),
    step(say("That is all."), optional=True),
)
NOTHING = [
    (("runs", "list"), "No run is unfinished; --all shows those that have ended.\n"),
    (("runs", "list", "--all"), "There are no runs yet.\n"),
    (("approvals", "list"), "Nothing waits; --all shows what has ended.\n"),
    (("approvals", "list", "--all"), "There are no approvals yet.\n"),
]


@pytest.mark.parametrize(("words", "said"), NOTHING)
def test_an_empty_list_is_a_sentence(database: Database, words: tuple[str, ...], said: str) -> None:
    ended = vistobueno(*words, DATABASE_URL=database.url)
    assert (ended.code, ended.out, ended.err) == (0, said, "")


def row_below(head: list[str], ended: Ended) -> str:
    """The only row of a table with these headings."""
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.split() == head)
    return lines[at + 1]


async def asked(
    database: Database, monkeypatch: pytest.MonkeyPatch, model: Script = ONLY_ASK
) -> tuple[Approval, str]:
    """An approval that waits, and how its card reads; the app has stopped."""
    async with staged(database, monkeypatch, model) as stage:
        await stage.ask()
        card = stage.marta.read(await stage.card())
        return await stage.approval(), card


async def test_the_story_is_listed_and_shown(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    approval, _ = await asked(database, monkeypatch)

    async def said(*words: str) -> Ended:
        return await answered(*words, DATABASE_URL=database.url)

    listed = row_below(["ID", "STATUS", "TITLE", "APPROVERS", "EXPIRES"], await said("approvals", "list"))
    assert listed.startswith(f"{approval.id}  pending  Refund 38 payments · €4,120.00  support_lead  20")
    run = row_below(["ID", "STATUS", "BEGUN", "REQUESTER", "TASK"], await said("runs", "list"))
    assert run.startswith(f"{approval.run_id}  awaiting_approval  ")
    heads = ["TURN", "TOOL", "STATUS", "ATTEMPTS", "WENT", "THROUGH", "INPUT"]
    call = row_below(heads, await said("runs", "show", approval.run_id))
    assert call.split(maxsplit=4) == [
        *("1", "search_payments", "done", "1"),
        '{"limit": 500, "status": "failed"}',
    ]


async def test_what_became_of_an_approval_is_shown_in_the_words_of_its_card(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = ask_for_refunds(LOOK, step(call("refund_payments", refund)), LAST_WORDS)
    async with staged(database, monkeypatch, twice) as stage:
        message = await stage.ask()
        first = await stage.card("38 payments")
        await fail_three_overnight(database.owner_url)
        await stage.marta.click(first, "Approve")
        await stage.marta.click(await stage.card("41 payments"), "Approve")
        await stage.said(message, "That is all.")
        old, new = await approvals.of_run(stage.db, (await stage.run()).id)

    async def shown(approval: Approval) -> str:
        return (await answered("approvals", "show", approval.id, DATABASE_URL=database.url)).out

    moved, done = await shown(old), await shown(new)
    for words in ("↻ The facts moved before it ran:", "failed payments: 38 → 41", "Nothing ran."):
        assert words in moved.splitlines()
    assert f"replaced by  {new.id}" in moved
    assert re.search(r"^✅ Done 20\d\d-\d\d-\d\d \d\d:\d\d UTC\.$", done, re.MULTILINE)
    assert re.search(r"^ended +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC$", done, re.MULTILINE)
    assert "It returned:" in done and re.search(r"^    refunded: 41$", done, re.MULTILINE)


async def test_an_approval_is_shown_in_the_words_of_its_card(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval, card = await asked(database, monkeypatch, WITH_A_REASON)
    shown = await answered("approvals", "show", approval.id, DATABASE_URL=database.url)
    _, _, about = shown.out.partition("\n\n")
    lines = [line for line in about.splitlines() if line]
    assert lines[0] == "• to the cards of 38 customers"
    assert lines[0] in card
    assert "failed payments = 38, checked again before it runs" in lines
    [sample] = [line for line in lines if line.startswith("pay_0167")]
    assert "  €194.16  " in sample
    assert max(map(columns, lines)) <= 80
    at = lines.index("In the agent's own words:")
    assert " ".join(line.removeprefix("> ") for line in lines[at + 1 :]) == WHY
    assert WHY in card
    for words in ("This cannot be undone.", "support_lead may decide · 1 approval needed · expires 20"):
        assert any(line.startswith(words) for line in lines), words
        assert words in card


async def test_of_an_approval_whose_tool_is_not_here_it_is_said_what_is_not_known(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval, _ = await asked(database, monkeypatch)
    for tools in ("json:__all__", "no.such.module:TOOLS"):
        here = {"DATABASE_URL": database.url, "VISTOBUENO_TOOLS": tools}
        shown = await answered("approvals", "show", approval.id, **here)
        assert (shown.code, shown.err) == (0, "")
        assert "This cannot be undone." not in shown.out
        assert shown.out.splitlines()[-1].startswith("refund_payments is none of the tools here")


async def test_where_an_input_is_cut_it_is_said_how_to_read_it_whole(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval, _ = await asked(database, monkeypatch)
    [given] = [
        line
        for line in (
            await answered("approvals", "show", approval.id, DATABASE_URL=database.url)
        ).out.splitlines()
        if line.startswith("input ")
    ]
    assert given.endswith("… (--json prints all of it)")
    whole = await answered("approvals", "show", approval.id, "--json", DATABASE_URL=database.url)
    assert json.loads(whole.out)["shown"]["input"] == approval.shown.input
