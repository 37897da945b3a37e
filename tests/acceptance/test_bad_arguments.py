"""Arguments that cannot be used: one line and exit 1, or 2 for wrong usage, and nothing is changed."""

import json
import os

import pytest

from bot.sandbox import Channel, Sandbox
from store import runs
from store.engine import Database as Store
from store.records import Actor
from tests.acceptance.commands import EVERYTHING, NOWHERE, answered, vistobueno
from tests.acceptance.contents import contents
from tests.databases import Database


async def queued(database: Database) -> str:
    """The id of a run that waits for a worker."""
    db = Store.open(database.url)
    run, _ = await runs.start(
        db,
        team_id="T0SHOP",
        channel_id="C0SUPPORT",
        thread_ts="1.1",
        agent="Refund helper",
        task="look at the payments",
        requester=Actor("person", "T0SHOP", "U0LEO", "Leo"),
        source_key="key:1",
    )
    await db.close()
    return str(run.id)


async def test_a_run_is_not_started_from_what_is_no_task(database: Database) -> None:
    cases = [
        (("",), "The task is empty: write what the agent is to do."),
        ((" \n ",), "The task is empty: write what the agent is to do."),
        (("x" * 100_000,), "The task is too long: write at most 40,000 characters."),
        (("hello", "--agent", "Robot"), "There is no agent 'Robot': the policy file has 'Refund helper'."),
        (("hello", "--key", ""), "--key is '': write a name in one line, like nightly-2026-11-30."),
        (("hello", "--key", "a\nb"), "--key is 'a\\nb': write a name in one line, like nightly-2026-11-30."),
        (("hello", "--key", "k" * 201), "--key is too long: write at most 200 characters."),
        (
            ("hello", "--user", "U0NOBODY"),
            "--user U0NOBODY is not known to Slack: name a person who may ask the bot.",
        ),
        (("hello", "--user", "U0BOT"), "--user U0BOT is a bot: name a person who may ask the bot."),
        (
            ("hello", "--channel", "C0NOWHERE"),
            "--channel C0NOWHERE does not exist, or is private and the bot is not in it: "
            "correct the ID, or invite the bot.",
        ),
        (
            ("hello", "--channel", "C0OLD"),
            "--channel C0OLD is archived: unarchive it, or name another.",
        ),
        (
            ("hello", "--channel", "C0OTHERS"),
            "The bot is not in --channel C0OTHERS: invite it there, or name another.",
        ),
    ]
    before = contents(database)
    async with Sandbox.running() as sandbox:
        sandbox.workspace.add_channel(Channel("C0OLD", "old", {"U0BOT"}, is_archived=True))
        sandbox.workspace.add_channel(Channel("C0OTHERS", "others", {"U0LEO"}))
        slack = {"SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token, "SLACK_API_URL": sandbox.api_url}
        for words, said in cases:
            ended = await answered("start", *words, DATABASE_URL=database.url, **slack)
            assert ended.sentence == said
    assert contents(database) == before


async def test_the_same_key_again_starts_nothing_and_prints_the_first_run(database: Database) -> None:
    async with Sandbox.running() as sandbox:
        slack = {"SLACK_BOT_TOKEN": sandbox.workspace.app.bot_token, "SLACK_API_URL": sandbox.api_url}
        words = ("start", "hello", "--user", "U0GUEST", "--channel", "C0SUPPORT", "--key", "nightly")
        first = await answered(*words, DATABASE_URL=database.url, **slack)
        again = await answered(*words, DATABASE_URL=database.url, **slack)
    assert (first.code, again.code, again.out) == (0, 0, first.out)
    db = Store.open(database.url)
    [run] = await runs.listed(db, unfinished_only=False, limit=2)
    await db.close()
    assert (run.id, run.requester.name) == (first.out.strip(), "Gwen")


@pytest.mark.parametrize(
    ("option", "value", "example"),
    [
        ("--user", "marta", "U0MARTA"),
        ("--user", "<@U0MARTA>", "U0MARTA"),
        ("--channel", "#support", "C0SUPPORT"),
        ("--channel", "U0MARTA", "C0SUPPORT"),
    ],
)
def test_ids_that_are_not_slack_s_are_refused_with_an_example(option: str, value: str, example: str) -> None:
    sentence = vistobueno("start", "hello", option, value, DATABASE_URL=NOWHERE, **EVERYTHING).sentence
    assert sentence.startswith(f"{option} is {value!r}: write ")
    assert sentence.endswith(f"like {example}.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("runs", "show"), "There is no run made_up: `vistobueno runs list --all` shows them."),
        (("runs", "show", "--json"), "There is no run made_up: `vistobueno runs list --all` shows them."),
        (("runs", "cancel"), "There is no run made_up: `vistobueno runs list --all` shows them."),
        (("runs", "retry"), "There is no run made_up: `vistobueno runs list --all` shows them."),
        (
            ("approvals", "show"),
            "There is no approval made_up: `vistobueno approvals list --all` shows them.",
        ),
        (("audit", "show"), "Nothing is on record for made_up: give the id of a run or of an approval."),
    ],
)
def test_an_id_that_nobody_gave_is_unknown(database: Database, words: tuple[str, ...], said: str) -> None:
    before = contents(database)
    ended = vistobueno(*words, "made_up", DATABASE_URL=database.url)
    assert ended.sentence == said
    assert ended.out == ""
    assert contents(database) == before


async def test_what_has_ended_is_neither_cancelled_nor_tried_again(database: Database) -> None:
    run_id = await queued(database)
    assert (await answered("runs", "cancel", run_id, DATABASE_URL=database.url)).code == 0
    before = contents(database)
    again = await answered("runs", "cancel", run_id, DATABASE_URL=database.url)
    assert again.sentence.startswith(f"{run_id} has ended already (cancelled by the operator): ")
    retried = await answered("runs", "retry", run_id, DATABASE_URL=database.url)
    assert retried.sentence.startswith(f"{run_id} is cancelled and cannot be tried again: ")
    assert contents(database) == before


async def test_what_a_program_reads_is_json_alone(database: Database) -> None:
    run_id = await queued(database)
    shown = [
        *(("runs", "list"), ("runs", "show", run_id), ("approvals", "list", "--all")),
        *(("audit", "show", run_id), ("audit", "verify"), ("policy", "check")),
    ]
    for words in shown:
        ended = await answered(*words, "--json", DATABASE_URL=database.url)
        assert (ended.code, ended.err) == (0, "")
        json.loads(ended.out)


@pytest.mark.parametrize(
    "words",
    [
        *(("dance",), ("runs", "show"), ("runs", "list", "--limit", "0"), ("runs", "list", "--limit", "x")),
        *(
            ("demo", "--json"),
            ("demo", "--port", "65536"),
            ("start",),
            ("migrate", "twice"),
            ("web", "--fast"),
            ("worker", "--lease", "0"),
            ("dev", "--lease", "301"),
        ),
    ],
)
def test_wrong_usage_exits_2_and_begins_nothing(words: tuple[str, ...]) -> None:
    ended = vistobueno(*words, DATABASE_URL=NOWHERE, **EVERYTHING)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("Usage: vistobueno")


def test_an_argument_that_is_no_text_is_refused() -> None:
    said = vistobueno("runs", "show", os.fsdecode(b"\xff"), DATABASE_URL=NOWHERE).sentence
    assert said == "An argument is not UTF-8 text: write it in UTF-8."
