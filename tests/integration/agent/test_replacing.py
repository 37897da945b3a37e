"""What the model asks anew after the world moved replaces what it asked before: each its own."""

from pathlib import Path

from pydantic import BaseModel, Field

from agent.decide import confirm_draft
from agent.edit import draft_edit
from agent.scripted import Call, Script, call, say, script, step
from agent.tool import Risk, Tool
from store.records import Approval, Draft
from store.transitions import ApprovalStatus
from tests.databases import Database
from tests.integration.agent.office import Office, approved, office, with_tool
from tests.integration.agent.till import World

END = step(say("That is all."), optional=True)


def pay(*bills: str) -> Call:
    """A call that pays these bills."""
    return call("pay", {"bills": list(bills)})


async def both_moved(o: Office) -> list[Approval]:
    """Let two be asked in one turn, approved and found moved; returns those two."""
    await o.start()
    await o.work()
    first = await o.all_asked()
    o.world.due += 1
    for approval in first:
        await o.approve(approval)
        await o.work()
    return first


def link(approval: Approval) -> tuple[str | None, dict[str, int] | None]:
    """What it replaces, and by how much it differs from that."""
    return approval.replaces, approval.shown.preview["change"]


async def test_two_calls_of_a_turn_are_replaced_each_by_its_own_in_whatever_order(
    database: Database, tmp_path: Path
) -> None:
    asks = script(
        step(pay("b1", "b2"), pay("b8", "b9")), step(pay("b7", "b8", "b9"), pay("b1", "b2", "b3")), END
    )
    async with office(database, tmp_path, asks) as o:
        small, large = await both_moved(o)
        assert [link(approval) for approval in await o.all_asked()] == [
            (large.id, {"added": 1, "left_out": 0}),
            (small.id, {"added": 1, "left_out": 0}),
        ]
        for approval in (small, large):
            assert (await o.approval(approval.id)).replaced_by is not None


async def test_of_two_new_calls_for_one_old_one_only_the_first_replaces_it(
    database: Database, tmp_path: Path
) -> None:
    asks = script(step(pay("b1", "b2")), step(pay("b1"), pay("b2")), END)
    async with office(database, tmp_path, asks) as o:
        [old] = await both_moved(o)
        assert [link(approval) for approval in await o.all_asked()] == [
            (old.id, {"added": 0, "left_out": 1}),
            (None, None),
        ]


async def test_a_call_beside_it_that_ran_takes_no_link(database: Database, tmp_path: Path) -> None:
    asks = script(step(pay("b1", "b2"), pay("b9")), step(pay("b1", "b2")), END)
    async with office(database, tmp_path, asks) as o:
        await o.start()
        await o.work()
        moved, ran = await o.all_asked()
        await o.approve(ran)
        await o.work()
        o.world.due += 1
        await o.approve(moved)
        await o.work()
        assert (await o.approval(ran.id)).status is ApprovalStatus.EXECUTED
        assert link(await o.asked()) == (moved.id, {"added": 0, "left_out": 0})


async def test_a_call_of_other_items_takes_no_link_and_leaves_it_to_a_later_one(
    database: Database, tmp_path: Path
) -> None:
    asks = script(step(pay("b1", "b2")), step(pay("b9")), step(pay("b1", "b2", "b3")), END)
    async with office(database, tmp_path, asks) as o:
        [old] = await both_moved(o)
        other = await o.asked()
        assert link(other) == (None, None)
        await o.approve(other)
        await o.work()
        assert link(await o.asked()) == (old.id, {"added": 1, "left_out": 0})


def in_vain(times: int) -> Script:
    """The same again and again, beside another call each time."""
    return script(*(step(pay("b1", "b2"), pay(f"c{number}")) for number in range(times + 1)), END)


class Mail(BaseModel):
    """Send a mail."""

    to: str
    text: str
    urgent: bool = False


def mail(world: World) -> Tool:
    """It has no facts, so no items."""
    return Tool(
        name="mail",
        input=Mail,
        risk=Risk.IRREVERSIBLE,
        precondition=lambda input, ctx: {"due": world.due},
        execute=lambda input, ctx: None,
    )


async def test_where_there_are_no_items_the_input_says_which_one_is_asked_anew(
    database: Database, tmp_path: Path
) -> None:
    bob, carl, dora = (call("mail", {"to": name, "text": "Hello."}) for name in ("bob", "carl", "dora"))
    world = World()
    asks = script(step(bob), step(carl, bob), step(dora), END)
    async with office(database, tmp_path, asks, world=world, extra_tools=[mail(world)]) as o:
        [first] = await both_moved(o)
        other, anew = await o.all_asked()
        assert (link(other)[0], link(anew)[0]) == (None, first.id)
        o.world.due += 1
        await o.approve(other)
        await o.approve(anew)
        await o.work()
        assert link(await o.asked())[0] in {other.id, anew.id}, "one field of two is the same"


async def test_what_is_asked_as_it_was_edited_replaces_its_own(database: Database, tmp_path: Path) -> None:
    bob, carl, other = (
        call("mail", {"to": to, "text": text})
        for to, text in [("bob", "Dear Sir."), ("carl", "Dear Sir."), ("bob", "Hi.")]
    )
    asks = script(step(other), step(carl, bob), END)
    world = World()
    async with office(database, tmp_path, asks, world=world, extra_tools=[mail(world)]) as o:
        await o.start()
        await o.work()
        first = await o.asked()
        edit = {"to": "bob", "text": "Dear Sir.", "urgent": False}
        draft = await draft_edit(o.house, first.id, 1, o.person(), edit)
        assert isinstance(draft, Draft)
        o.world.due += 1
        await confirm_draft(o.house, draft.id, o.person())
        await o.work()
        assert [link(approval)[0] for approval in await o.all_asked()] == [None, first.id]


async def test_so_does_what_is_asked_as_it_was_before_the_edit_and_spelled_in_another_way(
    database: Database, tmp_path: Path
) -> None:
    hello = {"to": "bob", "text": "Hi."}
    asked, other, anew = (
        call("mail", input) for input in (hello, {"to": "bob", "text": "Bye."}, hello | {"urgent": False})
    )
    world = World()
    asks = script(step(asked), step(other, anew), END)
    async with office(database, tmp_path, asks, world=world, extra_tools=[mail(world)]) as o:
        first = await o.propose()
        draft = await draft_edit(o.house, first.id, 1, o.person(), {"to": "bob", "text": "Dear Sir."})
        assert isinstance(draft, Draft)
        await confirm_draft(o.house, draft.id, o.person())
        o.world.due += 1
        await o.work()
        assert [link(approval)[0] for approval in await o.all_asked()] == [None, first.id]


class LongMail(Mail):
    """Mail of some words."""

    text: str = Field(min_length=8)


async def test_the_same_again_takes_no_link_where_it_cannot_be_read_any_more(
    database: Database, tmp_path: Path
) -> None:
    asked, anew = (call("mail", {"to": "bob", "text": text}) for text in ("Hi.", "Hello again."))
    world = World()
    asks = script(step(asked), step(anew, asked))
    async with office(database, tmp_path, asks, world=world, extra_tools=[mail(world)]) as o:
        first = await approved(o)
        await o.another_worker(house=with_tool(o.house, "mail", input=LongMail)).work_off()
        assert link(await o.asked())[0] == first.id
        assert await o.statuses(first.run_id) == ["superseded", "asked", "invalid"]


async def test_a_call_that_cannot_be_read_takes_no_link_from_the_one_before_it(
    database: Database, tmp_path: Path
) -> None:
    asked = call("mail", {"to": "bob", "text": "Hello.", "urgent": True})
    incomplete = call("mail", {"text": "Hello.", "urgent": True})
    anew = call("mail", {"to": "bob", "text": "Hello again.", "urgent": True})
    world = World()
    asks = script(step(asked), step(anew, incomplete))
    async with office(database, tmp_path, asks, world=world, extra_tools=[mail(world)]) as o:
        [first] = await both_moved(o)
        assert link(await o.asked())[0] == first.id
        assert await o.statuses(first.run_id) == ["superseded", "asked", "invalid"]


async def test_the_requester_hears_of_three_in_a_row_also_when_each_turn_had_another_call(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, in_vain(3)) as o:
        await o.start()
        await o.work()
        counted = []
        for _ in range(3):
            again, beside = await o.all_asked()
            counted.append(again.supersessions)
            await o.approve(beside)
            await o.work()
            o.world.due += 1
            await o.approve(again)
            await o.work()
        told = o.execute("SELECT data->>'approval_id' FROM notices WHERE kind = 'superseded_thrice'")
        assert (counted, told) == ([0, 1, 2], [(again.id,)])
