"""The model fails, is busy, or has used up its budget: what becomes of the run."""

from dataclasses import replace
from pathlib import Path

from agent.model import ModelBusy
from agent.scripted import call, expect_results, say, script, step
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import office, shape

PAY = call("pay", {"bills": ["b1"]})
LOOK = call("look", {"bills": ["b1"]})


async def test_a_busy_model_is_asked_again_later_and_meanwhile_nothing_is_held(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(say("Hello.")))) as o:
        o.model.faults = [ModelBusy("overloaded", 529), ModelBusy("slow down", 429, retry_after=120)]
        run = await o.start()
        await o.work()
        waiting = await o.run(run.id)
        assert (waiting.status, waiting.faults) == (RunStatus.QUEUED, 1)
        assert o.execute("SELECT token, lease_until FROM runs") == [(None, None)]
        o.shift_clock("3 seconds")
        await o.work()
        o.shift_clock("100 seconds")
        await o.work()
        assert len(o.model.requests) == 2
        o.shift_clock("124 seconds")
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED


async def test_a_model_that_is_always_busy_fails_the_run_with_a_sentence(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path) as o:
        o.model.faults = [ModelBusy("overloaded", 529)] * 9
        run = await o.start()
        for hours in range(9):
            o.shift_clock(f"{hours} hours")
            await o.work()
        failed = await o.run(run.id)
        assert (failed.status, len(o.model.requests)) == (RunStatus.FAILED, 8)
        assert failed.error == "The model did not answer after 8 tries: overloaded"


async def test_a_turn_that_was_saved_sets_the_count_of_faults_back(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(LOOK), step(say("Done.")))) as o:
        o.model.faults = [ModelBusy("overloaded", 529)] * 7
        run = await o.start()
        for hours in range(8):
            o.shift_clock(f"{hours} hours")
            await o.work()
        assert ((await o.run(run.id)).status, (await o.run(run.id)).faults) == (RunStatus.COMPLETED, 0)


# --- budgets ---

SHORT = """
[agent]
name = "Helper"
max_steps = 2
[defaults]
channel = "C0APPROVALS"
approvers = ["support_lead"]
[roles.support_lead]
users = ["U0MARTA"]
"""


async def test_after_the_last_step_the_model_has_one_answer_without_tools(
    database: Database, tmp_path: Path
) -> None:
    talk = script(
        step(LOOK), step(PAY), step(say("Paid, and my budget is used up."), expect=expect_results(1))
    )
    async with office(database, tmp_path, talk, policy=SHORT) as o:
        asked = await o.propose()
        await o.approve(asked)
        await o.work()
        run = await o.run(asked.run_id)
        assert (run.status, run.answer) == (RunStatus.EXHAUSTED, "Paid, and my budget is used up.")
        assert (run.steps, o.world.paid) == (3, ["b1"])
        assert o.model.requests[-1]["tool_choice"] == {"type": "none"}
        assert all("tool_choice" not in request for request in o.model.requests[:-1])


async def test_the_history_after_a_run_that_was_exhausted(database: Database, tmp_path: Path) -> None:
    talk = script(step(LOOK), step(LOOK), step(say("No more.")), step(say("Fresh again.")))
    async with office(database, tmp_path, talk, policy=SHORT) as o:
        await o.start()
        await o.work()
        second = await o.start("Go on.", key="ev2")
        await o.work()
        assert (await o.run(second.id)).status is RunStatus.COMPLETED


async def test_calls_in_the_closing_answer_are_not_kept(database: Database, tmp_path: Path) -> None:
    orphan = {"type": "tool_use", "id": "toolu_orphan", "name": "pay", "input": {"bills": ["b1"]}}
    talk = script(step(LOOK), step(LOOK), step(say("No more.")), step(say("Hello.")))
    async with office(database, tmp_path, talk, policy=SHORT) as o:
        o.model.changing = lambda answer: replace(
            answer, content=[*answer.content, orphan] if "No more" in str(answer.content) else answer.content
        )
        first = await o.start()
        await o.work()
        assert (await o.run(first.id)).status is RunStatus.EXHAUSTED
        await o.start("Go on.", key="ev2")
        await o.work()
        assert (o.world.attempts, "toolu_orphan" in str(o.model.requests[-1])) == ([], False)


async def test_a_budget_of_tokens_ends_the_run_as_well(database: Database, tmp_path: Path) -> None:
    talk = script(step(LOOK), step(say("No more.")))
    policy = SHORT.replace("max_steps = 2", "max_tokens = 100")
    async with office(database, tmp_path, talk, policy=policy) as o:
        run = await o.start()
        await o.work()
        after = await o.run(run.id)
        assert (after.status, after.input_tokens + after.output_tokens > 100) == (RunStatus.EXHAUSTED, True)


async def test_an_empty_answer_ends_the_run_and_the_next_one_reads_on(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, script(step(say("x")))) as o:
        o.model.changing = lambda answer: replace(answer, content=[])
        first = await o.start()
        await o.work()
        assert ((await o.run(first.id)).status, (await o.run(first.id)).answer) == (RunStatus.COMPLETED, "")
        o.model.changing = lambda answer: answer
        o.model.scripted.used.clear()
        await o.start("Hello?", key="ev2")
        await o.work()
        assert shape(o.model.requests[-1]) == [("user", ["text", "text", "text"])]


async def test_a_refusal_of_the_model_fails_the_run(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(say("I can't.")))) as o:
        o.model.changing = lambda answer: replace(answer, stop_reason="refusal")
        run = await o.start()
        await o.work()
        assert (await o.run(run.id)).error == "The model refused to answer this request."
