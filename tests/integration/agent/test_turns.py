"""Several calls in one turn: what runs, what asks, what is left, and one result for each."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field, field_validator

from agent.model import Answer
from agent.scripted import call, expect_results, say, script, step
from agent.tool import Context, Risk, Tool
from store.transitions import CallStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import Office, office, with_tool

ONE, TWO = {"bills": ["b1"]}, {"bills": ["b1", "b2"]}


def told(o: Office) -> list[tuple[str, dict[str, Any]]]:
    """The results of the last message the model got: id and content each, in order."""
    blocks = [block for block in o.model.last_message if block["type"] == "tool_result"]
    return [(block["tool_use_id"], json.loads(block["content"])) for block in blocks]


class Secret(BaseModel):
    """A field that is written as stars."""

    token: SecretStr


class Computed(BaseModel):
    """A field that is written and not read."""

    a: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return self.a * 2


class Hidden(BaseModel):
    """A field that is not written."""

    a: int
    hidden: str = Field(exclude=True)


class Cents(BaseModel):
    """A field that is another each time it is read."""

    amount: int

    @field_validator("amount", mode="before")
    @classmethod
    def in_cents(cls, euros: int) -> int:
        return euros * 100


@pytest.mark.parametrize(
    ("model", "input", "field"),
    [
        (Secret, {"token": "s3cret"}, "token"),
        (Computed, {"a": 2}, "twice"),
        (Hidden, {"a": 1, "hidden": "h"}, "hidden"),
        (Cents, {"amount": 5}, "amount"),
    ],
)
async def test_nobody_is_asked_about_an_input_that_would_come_back_from_the_database_as_another(
    database: Database, tmp_path: Path, model: type[BaseModel], input: dict[str, Any], field: str
) -> None:
    odd = Tool(name="odd", input=model, risk=Risk.IRREVERSIBLE, execute=lambda input, ctx: None)
    asking = script(step(call("odd", input)), step(say("I could not.")))
    async with office(database, tmp_path, asking, extra_tools=[odd]) as o:
        run = await o.start()
        await o.work()
        assert await o.statuses(run.id) == ["failed"]
        [(_, content)] = told(o)
        assert f"odd: {field} would come back from the database as something else" in content["error"]
        assert content["executed"] is False


async def test_allowed_calls_run_in_order_until_the_first_that_asks(
    database: Database, tmp_path: Path
) -> None:
    turn = script(
        step(
            call("look", ONE, id="t1"),
            call("tip", {"bills": ["b5"]}, id="t2"),
            call("pay", TWO, id="t3"),
            call("tip", {"bills": ["b6"]}, id="t4"),
            call("look", ONE, id="t5"),
            call("pay", {"bills": ["b3"]}, id="t6"),
        ),
        step(say("Done.")),
    )
    async with office(database, tmp_path, turn) as o:
        run = await o.start()
        await o.work()
        assert (o.world.looks, o.world.paid) == (1, ["b5"])
        assert await o.statuses(run.id) == ["done", "done", "asked", "deferred", "deferred", "asked"]
        first, second = await o.all_asked()
        assert (first.provider_id, second.provider_id) == ("t3", "t6")
        asked = o.execute("SELECT data FROM notices WHERE kind = 'call_asked'")
        assert asked == [({"approval_ids": [first.id, second.id], "deferred": 2},)]
        await o.approve(first)
        await o.approve(second)
        await o.work()
        results = told(o)
        assert [id for id, _ in results] == ["t1", "t2", "t3", "t4", "t5", "t6"]
        assert [content["executed"] for _, content in results] == [True, True, True, False, False, True]
        assert results[3][1]["deferred"] is True
        assert "ask again" in results[3][1]["instruction"]


async def test_the_rest_of_an_asking_turn_is_judged_with_it(database: Database, tmp_path: Path) -> None:
    turn = script(
        step(call("pay", ONE), say("First.")),
        step(say("Refused.")),
        step(
            call("note", ONE, id="r1"),
            call("pay", {"bills": []}, id="r2"),
            call("vanish", ONE, id="r3"),
            call("pay", {"bills": ["b1"], "more": 1}, id="r4"),
        ),
        step(say("Nothing ran.")),
    )
    async with office(database, tmp_path, turn) as o:
        first = await o.propose()
        await o.reject(first)
        await o.work()
        run = await o.start(text="Once more.", key="ev2")
        await o.work()
        assert await o.statuses(run.id) == ["done", "invalid", "invalid", "invalid"]
        results = told(o)
        assert [id for id, _ in results] == ["r1", "r2", "r3", "r4"]
        assert results[1][1]["fields"][0]["field"] == "bills"
        assert "pay" in results[2][1]["tools"]
        assert results[3][1]["fields"][0]["field"] == "more"
        errors = [block.get("is_error", False) for block in o.model.last_message]
        assert errors == [False, True, True, True]


async def test_vetoed_and_forbidden_and_failing_calls_after_one_that_asks(
    database: Database, tmp_path: Path
) -> None:
    from agent.tool import Facts, Risk, Tool, always_ask, forbid_when
    from tests.integration.agent.till import Pay

    def unmeasurable(input: Pay, ctx: Context) -> Facts:
        raise RuntimeError("the ledger is closed")

    shared: dict[str, Any] = {"input": Pay, "risk": Risk.IRREVERSIBLE, "execute": lambda i, c: "done"}
    tools = (
        Tool(name="burn", policy=always_ask, **shared),
        Tool(name="break_in", policy=forbid_when(lambda i, f: True, "never"), **shared),
        Tool(name="audit", facts=unmeasurable, **shared),
    )
    turn = script(
        step(call("pay", ONE, id="a0")),
        step(
            call("burn", ONE, id="a1"),
            call("tip", ONE, id="a2"),
            call("break_in", ONE, id="a3"),
            call("audit", ONE, id="a4"),
        ),
        step(say("Only one may.")),
    )
    async with office(database, tmp_path, turn, extra_tools=tools) as o:
        await o.reject(await o.propose())
        await o.work()
        asked = await o.asked()
        assert await o.statuses(asked.run_id) == ["rejected", "asked", "vetoed", "forbidden", "failed"]
        await o.approve(asked)
        await o.work()
        assert [id for id, _ in told(o)] == ["a1", "a2", "a3", "a4"]
        assert "the ledger is closed" in told(o)[3][1]["error"]
        assert o.world.attempts == []


@pytest.mark.parametrize("part", ["facts", "preview", "precondition"])
@pytest.mark.parametrize("fault", ["raises", "no such thing"])
async def test_a_call_that_cannot_be_measured_has_failed_and_asks_nobody(
    database: Database, tmp_path: Path, part: str, fault: str
) -> None:
    def broken(*args: Any) -> Any:
        if fault == "raises":
            raise ZeroDivisionError
        return 17

    expected = expect_results(lambda told: part in told[0]["error"] or "ZeroDivision" in told[0]["error"])
    async with office(
        database, tmp_path, script(step(call("pay", ONE)), step(say("It cannot be."), expect=expected))
    ) as o:
        run = await o.start()
        await o.another_worker(house=with_tool(o.house, "pay", **{part: broken})).work_off()
        (failed,) = await o.calls(run.id)
        assert (failed.status, failed.attempts) == (CallStatus.FAILED, 0)
        assert o.execute("SELECT id FROM approvals") == []
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


async def test_approved_calls_execute_in_the_order_of_the_decisions_without_waiting_for_others(
    database: Database, tmp_path: Path
) -> None:
    three = script(
        step(*(call("pay", {"bills": [f"b{number}"]}, id=f"p{number}") for number in range(3))),
        step(say("Done."), expect=expect_results(3)),
    )
    async with office(database, tmp_path, three) as o:
        run = await o.start()
        await o.work()
        first, second, third = await o.all_asked()
        await o.approve(third)
        await o.work()
        assert o.world.paid == ["b2"]
        assert (await o.run(run.id)).status is RunStatus.AWAITING_APPROVAL
        await o.approve(second)
        await o.approve(first)
        await o.work()
        assert o.world.paid == ["b2", "b1", "b0"]
        assert [id for id, _ in told(o)] == ["p0", "p1", "p2"]
        assert len(o.model.requests) == 2


async def test_the_calls_of_one_run_execute_one_at_a_time(database: Database, tmp_path: Path) -> None:
    import asyncio

    both = script(step(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]})), step(say("Done.")))
    async with office(database, tmp_path, both) as o:
        executing: list[Any] = []
        o.world.watch = lambda ctx: executing.extend(
            o.execute("SELECT count(*) FROM calls WHERE status = 'executing'")
        )
        await o.start()
        await o.work()
        for asked in await o.all_asked():
            await o.approve(asked)
        await asyncio.gather(o.work(), o.another_worker().work_off())
        await o.work()
        assert executing == [(1,), (1,)]
        assert o.world.paid == ["b1", "b2"]


async def test_the_rest_of_a_turn_after_a_lost_answer_is_left_and_the_run_goes_on_when_it_is_settled(
    database: Database, tmp_path: Path
) -> None:
    from agent import results
    from store import calls
    from tests.integration.agent.office import LEO

    turn = script(
        step(call("tip", {"bills": ["b1"]}, id="u1"), call("tip", {"bills": ["b2"]}, id="u2")),
        step(say("One was settled."), expect=expect_results(2)),
    )
    async with office(database, tmp_path, turn, repeatable=False) as o:
        o.world.fail = [RuntimeError("lost")]
        run = await o.start()
        await o.work()
        assert await o.statuses(run.id) == ["unknown", "deferred"]
        assert o.world.paid == ["b1"]
        unknown, _ = await o.calls(run.id)
        result = results.settled_by_person("tip", LEO, ran=True, executed_input=unknown.input)
        assert await calls.settle(
            o.house.db, unknown.id, LEO, ran=True, result=result.to_json(), outcome={"kind": "settled"}
        )
        await o.work()
        assert (await o.run(run.id)).answer == "One was settled."
        assert told(o)[0][1]["executed"] is True


async def test_a_call_whose_worker_is_gone_holds_up_the_rest_of_its_turn(
    database: Database, tmp_path: Path
) -> None:
    turn = script(
        step(call("tip", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]})),
        step(say("Done."), expect=expect_results(2)),
    )
    async with office(database, tmp_path, turn) as o:
        run = await o.start()
        o.world.watch = lambda ctx: o.execute(
            "UPDATE calls SET token = 'killed', lease_until = now() + interval '1 hour' WHERE attempts = 1"
        )
        await o.work()
        o.world.watch = lambda ctx: None
        o.shift_clock("16 seconds")
        await o.sweep()
        assert await o.statuses(run.id) == ["executing", "proposed"]
        assert (await o.run(run.id)).status is RunStatus.QUEUED
        o.shift_clock("61 minutes")
        await o.sweep()
        assert await o.statuses(run.id) == ["done", "asked"]
        await o.approve(await o.asked())
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED
        assert o.world.paid == ["b1", "b2"]


def twice(answer: Answer) -> Answer:
    """Every call of it is there twice, under one id."""
    return replace(answer, content=answer.content * 2)


async def test_an_answer_that_is_no_turn_is_asked_for_again_and_nothing_of_it_is_kept(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(call("pay", ONE)))) as o:
        o.model.changing = twice
        run = await o.start()
        await o.work()
        waiting = await o.run(run.id)
        assert (waiting.status, waiting.faults) == (RunStatus.QUEUED, 1)
        assert o.execute("SELECT id FROM calls") == []
        o.model.changing = lambda answer: answer
        o.shift_clock("1 minute")
        await o.work()
        assert (await o.asked()).run_id == run.id


async def test_answers_that_are_never_a_turn_fail_the_run(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(call("pay", ONE)))) as o:
        o.model.changing = twice
        run = await o.start()
        for hours in range(9):
            o.shift_clock(f"{hours} hours")
            await o.work()
        failed = await o.run(run.id)
        assert failed.status is RunStatus.FAILED
        assert failed.error is not None
        assert "two calls the same id" in failed.error
