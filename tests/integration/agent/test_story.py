"""A run from the first message to its last words, with a real database and a scripted model."""

from pathlib import Path

from agent.scripted import call, expect_results, expect_text, say, script, step
from store import audit
from store.transitions import ApprovalStatus, CallStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import office

BILLS = ["b1", "b2"]
PAY = call("pay", {"bills": BILLS, "rationale": "They are due."})
ONE_APPROVAL = script(
    step(say("I'll look."), call("look", {"bills": BILLS}), expect=expect_text("Pay the bills.")),
    step(PAY, expect=expect_results(1)),
    step(say("Paid both."), expect=expect_results(lambda results: results[0]["ok"])),
)


async def test_an_approved_call_runs_once_and_the_run_ends(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ONE_APPROVAL) as o:
        run = await o.start()
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.AWAITING_APPROVAL
        assert o.world.paid == []
        asked = await o.asked()
        assert asked.shown.preview["title"] == "Pay 2 bills"
        assert asked.rationale == "They are due."
        await o.approve(asked)
        await o.work()
        done = await o.run(run.id)
        assert (done.status, done.answer) == (RunStatus.COMPLETED, "Paid both.")
        assert o.world.paid == BILLS
        assert o.world.keys == [asked.id]
        after = await o.approval(asked.id)
        assert (after.status, after.outcome["output"]) == (ApprovalStatus.EXECUTED, {"paid": 2})
        assert [c.status for c in await o.calls(run.id)] == [CallStatus.DONE, CallStatus.DONE]
        verified = await audit.verify(o.house.db)
        assert verified.broken == ()
        assert verified.events > 8


async def test_the_world_moved_so_nothing_runs_and_the_next_approval_replaces_the_first(
    database: Database, tmp_path: Path
) -> None:
    again = script(
        step(PAY),
        step(
            call("pay", {"bills": ["b1", "b2", "b3"]}),
            expect=expect_results(lambda results: results[0]["moved"][0]["is"] == 41),
        ),
        step(say("Paid three.")),
    )
    async with office(database, tmp_path, again) as o:
        run = await o.start()
        await o.work()
        first = await o.asked()
        await o.approve(first)
        o.world.due = 41
        await o.work()
        old = await o.approval(first.id)
        assert (old.status, o.world.paid) == (ApprovalStatus.SUPERSEDED, [])
        second = await o.asked()
        assert (second.replaces, second.supersessions, old.replaced_by) == (first.id, 1, second.id)
        assert second.shown.preview["change"] == {"added": 1, "left_out": 0}
        await o.approve(second)
        await o.work()
        assert o.world.paid == ["b1", "b2", "b3"]
        assert (await o.run(run.id)).status is RunStatus.COMPLETED
