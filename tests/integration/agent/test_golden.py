"""Conversations that older releases stored go on with today's code: one golden file for each form."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent.loop import MOST_FAULTS
from agent.scripted import Script, call, expect_results, say, script, step
from agent.start import retry_run
from store.records import Actor
from store.runs import STATE_VERSION
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office, shape
from tests.integration.agent.stored import golden, restore, rows_of

VERSIONS = range(1, STATE_VERSION + 1)
ALL_THREE = expect_results(
    lambda told: (
        [r["executed"] for r in told] == [True, False, False]
        and told[1]["approvalDenied"]
        and told[2]["deferred"]
    )
)


def talk(*after: Any) -> Script:
    """What was said until it was stored, and what is said then."""
    return script(
        step(call("look", {"bills": ["b1"]}), call("tip", {"bills": ["b1"]})),
        step(say("I ask."), call("pay", {"bills": ["b2", "b3"]}), expect=expect_results(2)),
        step(say("Paid.")),
        step(call("pay", {"bills": ["b4"]}), call("pay", {"bills": ["b5"]}), call("tip", {"bills": ["b6"]})),
        *after,
    )


async def told_until_stored(o: Office) -> None:
    """A run that was completed, and one that asks for two things in one turn and defers a third."""
    await o.approve(await o.propose(text="Pay what is due."))
    await o.work()
    await o.start(text="And the rest.", key="ev2")
    await o.work()


def test_each_form_has_its_golden_file() -> None:
    assert [version for version in VERSIONS if not golden(version).exists()] == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_conversation_that_was_stored_goes_on_to_its_end(
    database: Database, tmp_path: Path, version: int
) -> None:
    restore(database, version)
    go_on = talk(
        step(call("look", {"bills": ["b4"]}), expect=ALL_THREE),
        step(say("One of two.")),
        step(say("You're welcome.")),
    )
    async with office(database, tmp_path, go_on) as o:
        o.model.scripted.used |= {(0, n) for n in range(4)}  # of the release that stored it
        first, second = await o.all_asked()
        await o.approve(first)
        await o.reject(second, "Not that one.")
        await o.work()
        assert ((await o.approval(first.id)).status, o.world.paid) == (ApprovalStatus.EXECUTED, ["b4"])
        run = await o.run(first.run_id)
        assert (run.status, run.answer) == (RunStatus.COMPLETED, "One of two.")
        assert shape(o.model.requests[0])[0] == ("user", ["text"])
        assert "Pay what is due." in str(o.model.requests[0]["messages"][0])
        await o.start(text="Thank you.", key="ev3")
        await o.work()
        assert "tool_result" in str(o.model.requests[-1]["messages"])


ANY_ID = re.compile(r"\b(toolu|call|run|apr|conv)_[0-9a-f]+")


def form_of(rows: dict[str, Any]) -> list[Any]:
    """The stored messages, without what is another each time."""
    bodies = [(row["state_version"], row["body"]) for row in rows["messages"]]
    form: list[Any] = sorted(json.loads(ANY_ID.sub("id", json.dumps(bodies))), key=str)
    return form


async def test_what_is_stored_today_has_the_form_of_its_golden_file(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, talk()) as o:
        await told_until_stored(o)
        assert form_of(rows_of(o.owner_url)) == form_of(json.loads(golden(STATE_VERSION).read_text()))


async def test_a_form_of_a_newer_release_is_left_to_it_and_at_last_said_in_words(
    database: Database, tmp_path: Path
) -> None:
    two = script(step(call("pay", {"bills": ["b1"]})), step(say("Done.")))
    async with office(database, tmp_path, two) as o:
        asked = await o.propose()
        o.execute("UPDATE messages SET state_version = %s", STATE_VERSION + 1)
        await o.approve(asked)
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED
        waiting = await o.run(asked.run_id)
        assert (waiting.status, waiting.faults) == (RunStatus.QUEUED, 1)
        for hour in range(1, MOST_FAULTS):
            o.shift_clock(f"{hour} hours")
            await o.work()
        failed = await o.run(asked.run_id)
        assert (failed.status, failed.error) == (
            RunStatus.FAILED,
            "The run could not be taken up after 8 tries: The conversation was saved by a newer release "
            f"(form {STATE_VERSION + 1}, this one knows up to {STATE_VERSION}): run that release again.",
        )
        o.execute("UPDATE messages SET state_version = %s", STATE_VERSION)
        await retry_run(o.house, failed.id, Actor("operator", name="operator"))
        await o.work()
        assert ((await o.run(asked.run_id)).answer, o.world.paid) == ("Done.", ["b1"])
