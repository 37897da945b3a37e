"""One effect for one decision, whatever breaks between the claim and the record."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer

from agent.decide import confirm_draft
from agent.edit import draft_edit
from agent.execute import MOST_ATTEMPTS
from agent.scripted import call, expect_results, say, script, step
from agent.tool import Context, Facts, Risk, Tool, ToolError
from agent.usercode import UserCodeTimeout
from store.records import Draft
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import approved, office, until, with_tool, without

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS})
TIP = call("tip", {"bills": ["b1"]})
MEASURING = ("facts", "policy", "preview", "precondition")
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("That is all.")))


@pytest.mark.parametrize("proposed", [PAY, TIP])
async def test_the_attempt_is_committed_before_the_tool_is_called(
    database: Database, tmp_path: Path, proposed: Any
) -> None:
    seen: list[Any] = []

    async with office(database, tmp_path, script(step(proposed), step(say("Done.")))) as o:

        def watch(ctx: Context) -> None:
            seen.append((ctx.attempt, ctx.idempotency_key))
            seen.extend(o.execute("SELECT status, attempts, key FROM calls"))

        o.world.watch = watch
        run = await o.start()
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)
        await o.work()
        key = o.world.keys[0]
        assert seen == [(1, key), ("executing", 1, key)]
        (done,) = await o.calls(run.id)
        assert key == (done.id if proposed is TIP else o.execute("SELECT id FROM approvals")[0][0])
        kinds = [k for k in await o.events(run.id) if k.startswith(("attempt", "call.e", "call.cl"))]
        assert kinds == ["call.claimed", "attempt.started", "call.executed"]


class Batch(BaseModel):
    """Do something to these."""

    ids: list[str]


def lazily(input: Batch, ctx: Context) -> Any:
    return map(print, input.ids)


def in_a_generator(input: Batch, ctx: Context) -> Any:
    return (print(one) for one in input.ids)


@pytest.mark.parametrize("execute", [lazily, in_a_generator])
async def test_work_that_is_still_to_be_done_is_not_called_done(
    database: Database, tmp_path: Path, execute: Any
) -> None:
    batch = Tool(name="batch", input=Batch, risk=Risk.IRREVERSIBLE, execute=execute)
    asking = script(step(call("batch", {"ids": ["a"]})))
    async with office(database, tmp_path, asking, extra_tools=[batch]) as o:
        asked = await approved(o)
        await o.work()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.UNKNOWN
        assert "whose work is done only when it is read" in after.outcome["text"]


async def test_a_worker_that_lost_its_claim_records_nothing(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.watch = lambda ctx: o.execute("UPDATE calls SET token = 'another' WHERE status = 'executing'")
        await o.work()
        (one,) = await o.calls(asked.run_id)
        assert (one.status, one.result, one.output) == (CallStatus.EXECUTING, None, None)
        assert (await o.run(asked.run_id)).status is RunStatus.AWAITING_APPROVAL


async def test_a_worker_whose_lease_is_over_does_not_begin(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        slow = o.another_worker(lease=-1)
        await slow.work_off()
        (one,) = await o.calls(asked.run_id)
        assert (o.world.attempts, one.attempts, one.key) == ([], 0, None)


async def test_an_exception_of_a_tool_without_key_is_unknown_and_never_repeated(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("connection lost")]
        await o.work()
        o.shift_clock("23 hours")
        await o.sweep()
        after = await o.approval(asked.id)
        assert (after.status, o.world.attempts) == (ApprovalStatus.UNKNOWN, [1])
        assert "connection lost" in after.outcome["text"]
        assert (await o.run(asked.run_id)).status is RunStatus.AWAITING_APPROVAL
        assert len(o.execute("SELECT item FROM held_items")) == 2
        assert o.execute("SELECT data->>'approval_id' FROM notices WHERE kind = 'unknown_outcome'") == [
            (asked.id,)
        ]


async def test_an_exception_of_a_tool_with_a_key_is_repeated_with_the_same_key(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("connection lost")]
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.APPROVED
        await o.work()
        assert o.world.attempts == [1]
        o.shift_clock("3 seconds")
        await o.work()
        assert (o.world.attempts, o.world.keys, o.world.paid) == ([1, 2], [asked.id, asked.id], BILLS)


async def test_after_a_first_attempt_the_world_is_not_checked_again(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("connection lost")]
        await o.work()
        o.world.due, o.world.price = 0, 99
        o.shift_clock("3 seconds")
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED


async def test_a_repeat_is_not_held_to_the_time_in_which_it_had_to_begin(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("connection lost")]
        await o.work()
        o.shift_clock("23 hours")
        await o.sweep()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED


@pytest.mark.parametrize("proposed", [PAY, TIP])
async def test_repeats_end_after_the_most_attempts_and_a_person_must_look(
    database: Database, tmp_path: Path, proposed: Any
) -> None:
    async with office(database, tmp_path, script(step(proposed))) as o:
        o.world.fail = [RuntimeError("down")] * 9
        run = await o.start()
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)
        for minutes in range(9):
            o.shift_clock(f"{minutes} minutes")
            await o.sweep()
        assert o.world.attempts == list(range(1, MOST_ATTEMPTS + 1))
        assert o.execute("SELECT status, attempted FROM approvals") == [("unknown", True)]
        assert (await o.run(run.id)).status is RunStatus.AWAITING_APPROVAL


@pytest.mark.parametrize("proposed", [PAY, TIP])
async def test_nothing_is_repeated_later_than_a_day_after_the_first_attempt(
    database: Database, tmp_path: Path, proposed: Any
) -> None:
    closing = script(
        step(proposed), step(say("Nobody knows."), expect=expect_results(lambda t: t[0]["unknown"]))
    )
    async with office(database, tmp_path, closing) as o:
        o.world.fail = [RuntimeError("down")]
        run = await o.start()
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)
        await o.work()
        o.shift_clock("24 hours 1 second")
        await o.work()
        await o.sweep()
        await o.sweep()
        assert o.world.attempts == [1]
        assert o.execute("SELECT status FROM approvals") == [("unknown",)]
        assert (await o.run(run.id)).answer == "Nobody knows."


async def test_an_allowed_call_of_unknown_outcome_gets_an_approval_and_a_card(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(TIP)), repeatable=False) as o:
        o.world.fail = [RuntimeError("down")]
        run = await o.start()
        await o.work()
        born = o.execute("SELECT a.status, a.attempted, k.channel_id FROM approvals a JOIN cards k ON true")
        assert born == [("unknown", True, "C0APPROVALS")]
        assert (await o.run(run.id)).status is RunStatus.AWAITING_APPROVAL
        assert (await o.events(run.id)).count("call.unknown") == 1


async def test_a_tool_that_knows_it_did_nothing_has_failed(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.refuse = [ToolError("The bank is closed.")]
        await o.work()
        after, told = await o.approval(asked.id), await o.result(asked)
        assert (after.status, after.outcome["text"]) == (ApprovalStatus.FAILED, "The bank is closed.")
        assert (told["executed"], told["error"]) == (False, "The bank is closed.")
        assert o.execute("SELECT item FROM held_items") == []


async def test_what_a_later_attempt_says_it_did_not_do_an_earlier_one_may_have_done(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("the answer was lost")]
        await o.work()
        o.world.refuse = [ToolError("The bank cannot be reached.")]
        o.shift_clock("1 minute")
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.APPROVED
        o.shift_clock("2 minutes")
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXECUTED
        assert o.world.paid == BILLS


async def test_a_tool_that_did_a_part_says_which_items_went_through(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.refuse = [ToolError("The bank closed.", done=["b1"])]
        await o.work()
        (one,), told = await o.calls(asked.run_id), await o.result(asked)
        assert one.done_items == ("b1",)
        assert (told["itemsDone"], told["itemsNotDone"]) == (["b1"], ["b2"])
        assert (await o.approval(asked.id)).outcome["done"] == ["b1"]


async def test_what_a_tool_says_it_did_are_items_of_the_call_each_once(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.refuse = [ToolError("The bank closed.", done=["b1", "zzz", "b1"])]
        await o.work()
        told = await o.result(asked)
        assert (told["itemsDone"], told["itemsNotDone"]) == (["b1"], ["b2"])
        assert told["error"].endswith("The tool also named what is no item of this call: zzz.")


async def test_a_tool_that_did_only_what_is_no_item_of_the_call_has_not_done_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.refuse = [ToolError("The bank closed.", done=["re_1", "re_2"])]
        await o.work()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.UNKNOWN
        assert "no item of this call: re_1, re_2" in after.outcome["text"]


async def test_a_tool_that_may_not_be_repeated_any_more_is_not(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("the answer was lost")]
        await o.work()
        o.shift_clock("1 minute")
        await o.another_worker(house=with_tool(o.house, "pay", repeatable=False)).work_off()
        after = await o.approval(asked.id)
        assert (after.status, o.world.attempts) == (ApprovalStatus.UNKNOWN, [1])
        assert after.outcome["text"] == "It was attempted, and pay has changed since."


async def test_a_tool_that_writes_into_its_input_runs_with_what_was_shown(
    database: Database, tmp_path: Path
) -> None:
    def facts(input: Any, ctx: Context) -> Facts:
        input.bills.append("b3")
        return Facts(len(input.bills), items=sorted(input.bills))

    async with office(database, tmp_path, DONE) as o:
        house = with_tool(o.house, "pay", facts=facts)
        await o.start()
        await o.another_worker(house=house).work_off()
        asked = await o.asked()
        assert asked.shown.input == {"bills": BILLS}
        await o.approve(asked)
        await o.another_worker(house=house).work_off()
        assert ((await o.approval(asked.id)).status, o.world.paid) == (ApprovalStatus.EXECUTED, BILLS)


class OfItsOwn(ToolError):
    """What it says is made when it is asked for, on whatever thread that is."""

    def __init__(self, done: Any, message: Any = "The bank closed.") -> None:
        self.made = {"done": done, "message": message}

    @property
    def done(self) -> Any:  # type: ignore[override]
        assert threading.current_thread() is not threading.main_thread()
        return self.made["done"]

    @property
    def message(self) -> Any:  # type: ignore[override]
        assert threading.current_thread() is not threading.main_thread()
        return self.made["message"]


async def test_what_a_tool_s_own_error_says_is_read_where_the_tool_runs(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        o.world.refuse = [OfItsOwn((bill for bill in ["b1"]), message=404)]
        await o.work()
        (one,), after = await o.calls(asked.run_id), await o.approval(asked.id)
        assert (one.status, one.done_items, after.outcome["text"]) == (CallStatus.FAILED, ("b1",), "404")


async def test_an_error_of_a_tool_s_own_that_cannot_be_read_leaves_open_what_happened(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.refuse = [OfItsOwn(done=7)]
        await o.work()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.UNKNOWN
        assert after.outcome["text"] == "pay broke off: OfItsOwn"


async def test_endless_words_of_a_tool_are_kept_up_to_a_limit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.refuse = [ToolError("No. " * 250_000, done=[f"re_{n}" for n in range(50_000)])]
        await o.work()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.UNKNOWN
        assert len(after.outcome["text"]) < 10_000


async def test_a_repeat_that_names_only_other_things_leaves_open_what_the_first_attempt_did(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.fail = [TimeoutError("boom")]
        await o.work()
        assert o.world.paid == BILLS
        o.world.refuse = [ToolError("Already paid.", done=["re_1"]) for _ in range(4)]
        for minutes in (2, 4, 6, 8):
            o.shift_clock(f"{minutes} minutes")
            await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN


async def test_a_timeout_is_an_outcome_that_nobody_knows(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)

        async def forever(input: Any, ctx: Context) -> None:
            await asyncio.Event().wait()

        slow = with_tool(o.house, "pay", execute=forever, timeout="200ms")
        await o.another_worker(house=slow).work_off()
        assert (await o.approval(asked.id)).status is ApprovalStatus.UNKNOWN


class Total(BaseModel):
    """An output whose JSON is made by code of the tool's own."""

    @model_serializer
    def quits(self) -> dict[str, int]:
        raise SystemExit(3)


HELD = threading.Event()


class Slow(BaseModel):
    """An output whose JSON takes long."""

    @model_serializer
    def waits(self) -> dict[str, int]:
        HELD.wait(5)
        return {}


class Mute(Exception):
    """An error whose words are code that raises."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (Total(), "SystemExit: 3"),
        ({"total": 10**5000}, "ValueError"),
        ({"total": Total()}, "SystemExit: 3"),
        (Slow(), "did not answer within 0.2 s"),
    ],
    ids=["quits", "too many digits", "quits inside", "slow"],
)
@pytest.mark.parametrize("repeatable", [True, False])
async def test_what_ran_has_run_though_its_output_cannot_be_kept(
    database: Database, tmp_path: Path, output: object, why: str, repeatable: bool
) -> None:
    async with office(database, tmp_path, DONE, repeatable=repeatable) as o:
        asked = await approved(o)
        paying = with_tool(o.house, "pay", execute=lambda input, ctx: output, timeout="200ms")
        late: list[float] = []
        HELD.clear()
        watch = asyncio.create_task(watch_loop(late))
        await o.another_worker(house=paying).work_off()
        watch.cancel()
        HELD.set()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.EXECUTED
        assert why in after.outcome["output"]["unreadable"]
        assert max(late, default=0.0) < 4


class Letter(BaseModel):
    """An input that the schema completes."""

    names: list[str]
    note: str = "none"
    copies: float = 1.0


@pytest.mark.parametrize(("note", "edited"), [(None, False), ("please hurry", True)])
async def test_only_what_a_person_changed_is_called_edited_not_what_the_schema_added(
    database: Database, tmp_path: Path, note: str | None, edited: bool
) -> None:
    letter = Tool(
        name="letter", input=Letter, risk=Risk.IRREVERSIBLE, execute=lambda input, ctx: {"sent": input.note}
    )
    wanted = script(step(call("letter", {"names": ["Ana"]})), step(say("Sent.")))
    async with office(database, tmp_path, wanted, extra_tools=[letter]) as o:
        asked = await o.propose()
        if note is None:
            await o.approve(asked)
        else:
            changed = {**asked.shown.input, "note": note}
            made = await draft_edit(o.house, asked.id, asked.revision, o.person(), changed)
            assert isinstance(made, Draft)
            await confirm_draft(o.house, made.id, o.person())
        await o.work()
        result = await o.result(asked)
        assert (result["edited"], "requestedInput" in result) == (edited, edited)


async def watch_loop(late: list[float]) -> None:
    """Note by how many seconds the main loop is late, again and again."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        late.append(time.monotonic() - began)


async def test_an_exception_without_readable_words_is_an_outcome_like_any_other(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, repeatable=False) as o:
        asked = await approved(o)
        o.world.fail = [Mute()]
        await o.work()
        after = await o.approval(asked.id)
        assert after.status is ApprovalStatus.UNKNOWN
        assert "Mute" in str(after.outcome["text"])


async def test_facts_that_fail_without_readable_words_are_told_to_the_model(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        o.world.unmeasurable = [Mute()]
        run = await o.start()
        await o.work()
        (one,) = await o.calls(run.id)
        assert one.status is CallStatus.FAILED
        assert "Mute" in one.result["content"]["error"]


async def test_no_attempt_is_made_while_an_older_one_is_still_inside_the_tool(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await approved(o)
        go_on = threading.Event()
        o.world.watch = lambda ctx: go_on.wait(20)
        worker = o.another_worker(house=with_tool(o.house, "pay", timeout="200ms"))
        await worker.work_off()
        o.shift_clock("3 seconds")
        await worker.work_off()
        assert (await o.calls(asked.run_id))[0].attempts == 1
        go_on.set()

        async def came_back() -> bool:
            return not o.house.user_code.holds(asked.id)

        await until(came_back, "the older attempt comes back")
        o.shift_clock("10 seconds")
        await worker.work_off()
        assert (o.world.attempts, o.world.paid) == ([1, 2], BILLS)


async def test_an_attempt_that_could_not_begin_did_nothing_unless_an_earlier_one_may_have(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with office(database, tmp_path, script(step(PAY), step(PAY), step(say("No.")))) as o:
        run_code = o.house.user_code.run

        async def full(tool: str, *args: Any, **values: Any) -> Any:
            if "key" in values:  # an attempt, not a measurement
                raise UserCodeTimeout(tool, values["timeout"], started=False)
            return await run_code(tool, *args, **values)

        first = await approved(o)
        with monkeypatch.context() as patch:
            patch.setattr(o.house.user_code, "run", full)
            await o.work()
        assert (await o.approval(first.id)).status is ApprovalStatus.FAILED
        second = await o.asked()
        await o.approve(second)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("3 seconds")
        with monkeypatch.context() as patch:
            patch.setattr(o.house.user_code, "run", full)
            await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.APPROVED
        o.shift_clock("1 minute")
        await o.work()
        assert (await o.approval(second.id)).status is ApprovalStatus.EXECUTED


@pytest.mark.parametrize("change", [{"version": "2"}, None], ids=["changed", "gone"])
async def test_an_attempted_call_whose_tool_changed_is_for_a_person(
    database: Database, tmp_path: Path, change: dict[str, Any] | None
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await approved(o)
        o.world.fail = [RuntimeError("lost")]
        await o.work()
        o.shift_clock("3 seconds")
        house = with_tool(o.house, "pay", **change) if change else without(o.house, "pay")
        await o.another_worker(house=house).work_off()
        assert ((await o.approval(asked.id)).status, o.world.attempts) == (ApprovalStatus.UNKNOWN, [1])
