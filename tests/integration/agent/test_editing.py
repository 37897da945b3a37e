"""A previewed edit: it decides nothing until it is confirmed, and then it is what runs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.decide import Recorded, Refused, confirm_draft, read_draft
from agent.edit import BadInput, CannotPreview, check_edit, draft_edit, open_edit
from agent.scripted import call, say, script, step
from agent.tool import ToolError, always_ask, forbid_when
from agent.why import said
from store.records import Approval, Draft
from store.transitions import ApprovalStatus
from tests.databases import Database
from tests.integration.agent.office import POLICY, Office, office, with_tool, without

PAY = call("pay", {"bills": ["b1", "b2"]})
ASKED, DONE = script(step(PAY)), script(step(PAY), step(say("Done.")))
TWO_OF = POLICY.replace("[roles.support_lead]", "quorum = 2\n[roles.support_lead]")


async def draft(o: Office, asked: Approval, bills: list[str], user: str = "U0MARTA") -> Draft:
    made = await draft_edit(o.house, asked.id, asked.revision, o.person(user), {"bills": bills})
    assert isinstance(made, Draft)
    return made


@pytest.mark.parametrize(
    "raw, field",
    [({"bills": []}, "bills"), ({"bills": "b1"}, "bills"), ({}, "bills"), ({"bills": ["b1"], "x": 1}, "x")],
)
async def test_a_wrong_input_names_its_fields(
    database: Database, tmp_path: Path, raw: dict[str, Any], field: str
) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        wrong = await check_edit(o.house, asked, raw)
        assert isinstance(wrong, BadInput)
        assert [fault.path for fault in wrong.faults] == [field]
        assert await check_edit(o.house, asked, {"bills": ["b1"]}) == {"bills": ["b1"]}


async def test_a_draft_is_measured_and_decides_nothing(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1"])
        assert made.content.preview["title"] == "Pay 1 bills"
        assert made.content.facts["amount"] == {"amount": "10.00", "currency": "EUR"}
        assert (made.base_revision, made.author.user_id) == (1, "U0MARTA")
        assert await read_draft(o.house, made.id) == made
        after = await o.approval(asked.id)
        assert (after.status, after.revision, after.votes) == (ApprovalStatus.PENDING, 1, ())
        await o.work()
        assert o.world.attempts == []


async def test_a_confirmed_draft_is_the_next_revision_and_runs(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1"])
        confirmed = await confirm_draft(o.house, made.id, o.person(), "Only one.")
        assert isinstance(confirmed, Recorded)
        assert (confirmed.verdict, confirmed.missing, confirmed.approval.revision) == ("edit", 0, 2)
        await o.work()
        assert o.world.paid == ["b1"]
        after = await o.approval(asked.id)
        assert (after.shown.input, after.original_input) == ({"bills": ["b1"]}, {"bills": ["b1", "b2"]})
        assert after.author is not None
        assert after.author.user_id == "U0MARTA"
        first = "SELECT input FROM revisions WHERE approval_id = %s AND revision = 1"
        assert o.execute(first, asked.id) == [({"bills": ["b1", "b2"]},)]
        kinds = [kind for kind in await o.events(asked.id) if kind.startswith("approval.")]
        assert kinds[-2:] == ["approval.edited", "approval.approved"]


async def test_an_edit_voids_the_votes_and_counts_as_the_editors(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE, policy=TWO_OF) as o:
        asked = await o.propose()
        await o.approve(asked, "U0M1")
        made = await draft(o, asked, ["b1"])
        confirmed = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(confirmed, Recorded)
        assert confirmed.missing == 1
        edited = await o.approval(asked.id)
        assert [vote.person.user_id for vote in edited.votes] == ["U0MARTA"]
        old = await o.approve(asked, "U0M2")
        assert isinstance(old, Refused)
        assert old.kind == "stale_revision"
        await o.approve(edited, "U0M1")
        await o.work()
        assert o.world.paid == ["b1"]


async def test_a_draft_that_is_confirmed_twice_is_told_that_it_counts_until_another_edit(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, policy=TWO_OF) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1"])
        assert isinstance(await confirm_draft(o.house, made.id, o.person()), Recorded)
        again = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(again, Refused)
        assert (again.kind, again.approval and again.approval.revision) == ("edit_counted", 2)
        other = await draft(o, await o.approval(asked.id), ["b2"], "U0M1")
        assert isinstance(await confirm_draft(o.house, other.id, o.person("U0M1")), Recorded)
        late = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(late, Refused)
        assert late.kind == "stale_revision"


async def test_of_confirmations_of_one_draft_at_once_one_counts_and_all_are_told_that_it_does(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, ASKED, policy=TWO_OF) as o:
        made = await draft(o, await o.propose(), ["b1"])
        told = await asyncio.gather(*(confirm_draft(o.house, made.id, o.person()) for _ in range(4)))
        assert sum(isinstance(one, Recorded) for one in told) == 1
        assert [one.kind for one in told if isinstance(one, Refused)] == ["edit_counted"] * 3


async def test_a_draft_of_an_older_revision_is_refused(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED, policy=TWO_OF) as o:
        asked = await o.propose()
        marta, other = await draft(o, asked, ["b1"]), await draft(o, asked, ["b2"], "U0M1")
        await confirm_draft(o.house, marta.id, o.person())
        late = await confirm_draft(o.house, other.id, o.person("U0M1"))
        assert isinstance(late, Refused)
        assert (late.kind, late.approval and late.approval.revision) == ("draft_outdated", 2)
        again = await confirm_draft(o.house, marta.id, o.person())
        assert isinstance(again, Refused)
        assert (await o.approval(asked.id)).revision == 2


async def test_a_draft_after_the_decision_is_refused(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1"])
        await o.approve(asked, "U0M1")
        late = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(late, Refused)
        assert late.kind == "decided"
        await o.work()
        assert o.world.paid == ["b1", "b2"]


async def test_a_draft_after_the_deadline_is_refused(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        made = await draft(o, await o.propose(), ["b1"])
        o.shift_clock("24 hours")
        late = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(late, Refused)
        assert late.kind == "expired"


async def test_another_persons_draft_cannot_be_confirmed(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1"])
        for draft_id, user in ((made.id, "U0M1"), ("drf_made_up", "U0MARTA")):
            refused = await confirm_draft(o.house, draft_id, o.person(user))
            assert isinstance(refused, Refused)
            assert refused.kind == "draft_unknown"
        assert (await o.approval(asked.id)).revision == 1


async def test_an_edit_that_changes_nothing_is_an_approval(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        made = await draft(o, asked, ["b1", "b2"])
        same = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(same, Recorded)
        assert (same.verdict, same.approval.revision) == ("approve", 1)
        await o.work()
        assert (await o.result(asked))["edited"] is False


async def test_an_edit_that_changes_nothing_counts_for_the_world_that_its_author_saw(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        o.world.due = 41
        made = await draft(o, asked, ["b1", "b2"])
        assert made.content.precondition == {"bills due": 41}
        seen = await confirm_draft(o.house, made.id, o.person())
        assert isinstance(seen, Recorded)
        assert (seen.verdict, seen.approval.revision) == ("edit", 2)
        assert seen.approval.shown == made.content
        await o.work()
        assert o.world.paid == ["b1", "b2"]
        assert (await o.result(asked))["edited"] is False


async def test_an_edit_that_changes_nothing_does_not_run_in_the_world_of_the_card(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        was, o.world.due = o.world.due, 41
        made = await draft(o, asked, ["b1", "b2"])
        await confirm_draft(o.house, made.id, o.person())
        o.world.due = was
        await o.work()
        assert o.world.paid == []
        assert (await o.approval(asked.id)).status is ApprovalStatus.SUPERSEDED


async def test_an_edited_call_is_checked_against_what_its_draft_showed(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, DONE) as o:
        asked = await o.propose()
        o.world.due = 40
        made = await draft(o, asked, ["b1"])
        await confirm_draft(o.house, made.id, o.person())
        await o.work()
        assert o.world.paid == ["b1"]


async def test_an_edit_of_a_replacement_marks_what_was_added_too(database: Database, tmp_path: Path) -> None:
    more = script(step(PAY), step(call("pay", {"bills": ["b1", "b2", "b3", "b4"]})))
    async with office(database, tmp_path, more) as o:
        await o.approve(await o.propose())
        o.world.due = 41
        await o.work()
        made = await draft(o, await o.asked(), ["b1", "b3"])
        assert made.content.preview["change"] == {"added": 1, "left_out": 1}


async def test_an_edit_that_cannot_be_previewed_says_why(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        o.world.unmeasurable = [ToolError("There is no such bill."), RuntimeError("down")]
        for words in ("There is no such bill.", "down"):
            refused = await draft_edit(o.house, asked.id, 1, o.person(), {"bills": ["b9"]})
            assert isinstance(refused, CannotPreview)
            assert words in refused.why.text
        strict = with_tool(
            o.house, "pay", policy=(always_ask, forbid_when(lambda i, f: "b9" in i.bills, "b9 is blocked"))
        )
        forbidden = await draft_edit(strict, asked.id, 1, o.person(), {"bills": ["b9"]})
        assert forbidden == CannotPreview(said("b9 is blocked"))
        assert o.execute("SELECT id FROM drafts") == []


async def test_who_may_not_decide_may_not_edit(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, ASKED) as o:
        asked = await o.propose()
        stranger = await draft_edit(o.house, asked.id, 1, o.person("U0ANA"), {"bills": ["b1"]})
        assert isinstance(stranger, Refused)
        assert stranger.kind == "not_an_approver"
        stale = await open_edit(o.house, asked.id, 2, o.person())
        assert isinstance(stale, Refused)
        assert stale.kind == "stale_revision"
        gone = await open_edit(without(o.house, "pay"), asked.id, 1, o.person())
        assert isinstance(gone, Refused)
        assert gone.kind == "tool_changed"
        assert await open_edit(o.house, "apr_made_up", 1, o.person()) == Refused("unknown", None)
