"""Where a sentence is kept for people, so is the reason that it says, for those who read another language."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.drift import withdraw_outdated
from agent.model import ModelRefused
from agent.scripted import call, say, script, step
from agent.start import cancel_run
from agent.tool import Context, ToolError, always_ask, forbid_when
from agent.why import Code, Why, because, said
from store import calls
from store.records import Approval
from tests.databases import Database
from tests.integration.agent.office import LEO, Office, approved, office, with_tool, without

PAY = call("pay", {"bills": ["b1", "b2"]})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("That is all.")))


def why_of(stored: dict[str, Any], text: str = "text") -> Why:
    """The reason that was stored, which says what was stored as text."""
    why = Why.from_json(stored["why"])
    assert why is not None
    assert why.text == stored[text]
    return why


async def refuse(o: Office) -> None:
    """The tool says that it failed, and names an item that is none."""
    o.world.refuse = [ToolError("The bank closed.", done=["b1", "zzz"])]
    await o.work()


async def break_off(o: Office) -> None:
    """The tool counts and breaks off."""

    def counts(input: Any, ctx: Context) -> None:
        ctx.progress(1, 2)
        raise ValueError("no answer")

    await o.another_worker(house=with_tool(o.house, "pay", execute=counts)).work_off()


async def hang(o: Office) -> None:
    """The tool does not answer."""

    async def forever(input: Any, ctx: Context) -> None:
        await asyncio.Event().wait()

    slow = with_tool(o.house, "pay", execute=forever, timeout="200ms")
    await o.another_worker(house=slow).work_off()


async def leave_work(o: Office) -> None:
    """The tool returns what is still to be done."""
    lazy = with_tool(o.house, "pay", execute=lambda input, ctx: (bill for bill in input.bills))
    await o.another_worker(house=lazy).work_off()


async def lose_tool(o: Office) -> None:
    """The tool is gone when it is to run."""
    await o.another_worker(house=without(o.house, "pay")).work_off()


async def forbid(o: Office) -> None:
    """The tool's own policy forbids it by now, in words."""
    rules = (always_ask, forbid_when(lambda i, f: True, "b1 is blocked"))
    await o.another_worker(house=with_tool(o.house, "pay", policy=rules)).work_off()


async def forbid_silently(o: Office) -> None:
    """The tool's own policy forbids it by now, without a word."""
    rules = (always_ask, forbid_when(lambda i, f: True))
    await o.another_worker(house=with_tool(o.house, "pay", policy=rules)).work_off()


async def die(o: Office) -> None:
    """The worker is gone after it began."""
    claimed = await calls.claim(o.house.db, token="dead", worker="w-dead", lease=1)
    assert claimed is not None
    assert await calls.start_attempt(o.house.db, claimed, key="k", repeatable=False, lease=1)
    o.shift_clock("1 minute")
    await o.sweep()


@pytest.mark.parametrize(
    ("happen", "why"),
    [
        (refuse, said("The bank closed.").and_also(because(Code.NO_ITEMS, items="zzz"))),
        (
            break_off,
            because(Code.BROKE_OFF, tool="pay", error="ValueError: no answer").and_also(
                because(Code.COUNTED_OF, done=1, total=2)
            ),
        ),
        (hang, because(Code.TIMED_OUT, tool="pay", seconds=0.2)),
        (leave_work, because(Code.LAZY, tool="pay", given="generator")),
        (lose_tool, because(Code.TOOL_GONE, tool="pay")),
        (forbid, said("b1 is blocked")),
        (forbid_silently, because(Code.RULE_FORBIDS, tool="pay")),
        (die, because(Code.WORKER_GONE)),
    ],
)
async def test_what_became_of_an_approval_is_kept_with_its_reason(
    database: Database, tmp_path: Path, happen: Callable[[Office], Awaitable[None]], why: Why
) -> None:
    ends = happen not in {break_off, hang, leave_work, die}
    async with office(database, tmp_path, DONE if ends else ASKED, repeatable=False) as o:
        asked = await approved(o)
        await happen(o)
        assert why_of((await o.approval(asked.id)).outcome) == why


async def test_what_is_taken_back_while_people_are_asked_is_kept_with_its_reason(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        await withdraw_outdated(with_tool(o.house, "pay", version="2"))
        await o.work()
        assert why_of((await o.approval(asked.id)).outcome) == because(Code.TOOL_CHANGED, tool="pay")


async def test_what_a_tool_says_when_it_is_checked_again_is_kept_as_its_own_words(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.unmeasurable = [ToolError("The account is closed.")]
        await o.work()
        (moved,) = (await o.approval(asked.id)).outcome["moved"]
        assert why_of(moved, "is") == said("The account is closed.")
        assert (await o.result(asked))["moved"] == [
            {"kind": "fact", "name": "check", "was": "as shown", "is": "The account is closed."}
        ]


async def lost(o: Office) -> Approval:
    """An approved call that was attempted once, without an answer, and may be repeated."""
    asked = await approved(o)
    o.world.fail = [RuntimeError("the answer was lost")]
    await o.work()
    return asked


async def test_repeats_that_are_given_up_are_kept_with_their_reason(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await lost(o)
        o.shift_clock("25 hours")
        await o.sweep()
        assert why_of((await o.approval(asked.id)).outcome) == because(Code.TOO_OLD)


async def test_what_is_tried_no_more_because_its_run_was_stopped_is_kept_with_its_reason(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await lost(o)
        await cancel_run(o.house, asked.run_id, LEO)
        assert why_of((await o.approval(asked.id)).outcome) == because(Code.RUN_STOPPED)


async def test_the_thread_of_a_run_that_fails_is_told_the_reason(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script()) as o:
        o.model.faults = [ModelRefused("Out of credit.")]
        await o.start()
        await o.work()
        ((data,),) = o.execute("SELECT data FROM notices WHERE kind = 'run_failed'")
        assert why_of(data, "error") == said("Out of credit.")
