"""The house changes while an approval sleeps: its tools, its policy, its code."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, model_validator

from agent import drift
from agent.decide import Refused, confirm_draft
from agent.drift import is_stricter, withdraw_outdated
from agent.edit import draft_edit
from agent.house import House
from agent.scripted import call, expect_results, say, script, step
from agent.sweep import sweep
from agent.tool import Context, Facts, Risk, always_ask, forbid_when
from agent.usercode import UserCode
from store import approvals
from store.records import Draft
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database
from tests.integration.agent.office import POLICY as OLD
from tests.integration.agent.office import office, policy_of, until, with_tool, without
from tests.integration.agent.test_worker import at_work
from tests.integration.agent.till import World, tools_of

PAY = call("pay", {"bills": ["b1", "b2"]})
TOLD = expect_results(lambda told: all(r["superseded"] and r["reason"] and not r["executed"] for r in told))
WITHDRAWN = script(step(PAY), step(say("I can't any more."), expect=TOLD))
STILL_ASKED = script(step(PAY))


class PayMore(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)
    fast: bool = False


def with_policy(house: House, folder: Path, *changes: tuple[str, str]) -> House:
    """The house after its policy.toml was changed."""
    text = OLD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return replace(house, policy=policy_of(text, list(house.tools.values()), folder))


Change = Callable[[House, Path], House]
ONE_AT_A_TIME = (always_ask, forbid_when(lambda i, f: f.count > 1, "one at a time"))
TOOLS: dict[str, tuple[Change, str]] = {
    "the tool is gone": (lambda h, p: without(h, "pay"), "There is no tool pay any more."),
    "its schema": (lambda h, p: with_tool(h, "pay", input=PayMore), "pay has changed since this was asked."),
    "its effect": (
        lambda h, p: with_tool(h, "pay", effect="paying"),
        "pay has changed since this was asked.",
    ),
    "its version": (lambda h, p: with_tool(h, "pay", version="2"), "pay has changed since this was asked."),
    "it only reads": (
        lambda h, p: with_tool(
            h, "pay", risk=Risk.READ_ONLY, facts=None, policy=None, preview=None, precondition=None
        ),
        "pay has changed since this was asked.",
    ),
    "its policy": (lambda h, p: with_tool(h, "pay", policy=ONE_AT_A_TIME), "one at a time"),
}
APPROVERS = 'approvers = ["support_lead"]'
TWO_MUST_APPROVE = OLD.replace(APPROVERS, f"{APPROVERS}\nquorum = 2")
POLICIES: dict[str, tuple[tuple[str, str], ...]] = {
    "two must approve": ((APPROVERS, f"{APPROVERS}\nquorum = 2"),),
    "others decide": ((APPROVERS, 'approvers = ["admin"]'),),
    "nobody is escalated to": (('escalate_to = ["admin"]', "escalate_to = []"),),
}
STRICTER: dict[str, tuple[Change, str]] = {
    name: (
        lambda h, p, changes=changes: with_policy(h, p, *changes),
        "The policy for pay is stricter now than when this was asked.",
    )
    for name, changes in POLICIES.items()
}
CHANGES = TOOLS | STRICTER


@pytest.mark.parametrize("change", CHANGES)
async def test_what_people_are_asked_is_taken_back_when_a_worker_starts_and_it_can_no_longer_run(
    database: Database, tmp_path: Path, change: str
) -> None:
    change_house, why = CHANGES[change]
    async with office(database, tmp_path, WITHDRAWN) as o:
        asked = await o.propose()
        house = change_house(o.house, tmp_path)
        assert await withdraw_outdated(house) == 1
        after = await o.approval(asked.id)
        assert (after.status, after.attempted) == (ApprovalStatus.SUPERSEDED, False)
        assert (after.outcome["text"], after.outcome["moved"]) == (why, [])
        assert o.execute("SELECT bool_and(wanted_version = version) FROM cards, approvals") == [(True,)]
        clicked = await o.approve(asked)
        assert isinstance(clicked, Refused) and clicked.kind == "superseded"
        await o.another_worker(house=house).work_off()
        assert ((await o.result(asked))["reason"], o.world.attempts) == (why, [])
        assert (await o.run(asked.run_id)).answer == "I can't any more."
        assert o.execute("SELECT id FROM vetoes") == []
        assert (await o.events(asked.id))[-2:] == ["call.superseded", "click.refused"]


@pytest.mark.parametrize("change", CHANGES)
async def test_what_was_approved_before_the_house_changed_does_not_run_afterwards(
    database: Database, tmp_path: Path, change: str
) -> None:
    change_house, why = CHANGES[change]
    async with office(database, tmp_path, WITHDRAWN) as o:
        asked = await o.propose()
        await o.approve(asked)
        house = change_house(o.house, tmp_path)
        assert await withdraw_outdated(house) == 0
        await o.another_worker(house=house).work_off()
        after = await o.approval(asked.id)
        assert (after.status, after.outcome["text"]) == (ApprovalStatus.SUPERSEDED, why)
        assert (o.world.attempts, (await o.run(asked.run_id)).status) == ([], RunStatus.COMPLETED)


UNCHANGED: dict[str, Change] = {
    "nothing": lambda h, p: h,
    "another tool is gone": lambda h, p: without(h, "note"),
    "the rule forbids others": lambda h, p: with_tool(
        h, "pay", policy=(always_ask, forbid_when(lambda i, f: f.count > 2))
    ),
    "more may decide": lambda h, p: with_policy(h, p, (APPROVERS, 'approvers = ["support_lead", "admin"]')),
    "it waits longer": lambda h, p: with_policy(h, p, (APPROVERS, f'{APPROVERS}\nexpires_after = "48h"')),
    "another channel": lambda h, p: with_policy(h, p, ("C0APPROVALS", "C0ELSEWHERE")),
}


@pytest.mark.parametrize("change", UNCHANGED)
async def test_what_can_still_run_stays_where_it_is(database: Database, tmp_path: Path, change: str) -> None:
    async with office(database, tmp_path, script(step(PAY), step(say("Paid.")))) as o:
        asked = await o.propose()
        house = UNCHANGED[change](o.house, tmp_path)
        assert await withdraw_outdated(house) == 0
        assert (await o.approval(asked.id)).version == asked.version
        await o.approve(asked)
        await o.another_worker(house=house).work_off()
        assert o.world.keys == [asked.id]


async def test_a_fact_that_cannot_be_measured_now_takes_nothing_back(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, STILL_ASKED) as o:
        await o.propose()
        o.world.unmeasurable = [RuntimeError("database down")]
        assert await withdraw_outdated(with_tool(o.house, "pay", policy=ONE_AT_A_TIME)) == 0
        await o.asked()


async def test_what_a_worker_got_stuck_at_is_left_alone_by_the_next_for_an_hour(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, looked, release = list[int](), list[str](), threading.Event()
    monkeypatch.setattr("agent.worker.os._exit", left.append)

    async def block(input: BaseModel, ctx: Context) -> Facts:
        looked.append("blocked")
        release.wait(30)
        raise RuntimeError("too late")

    async with (
        office(database, tmp_path, STILL_ASKED) as o,
        UserCode(threads=2, silent_after=0.2, exit_after=0.2, heartbeat=0.05) as user_code,
    ):
        asked = await o.propose()
        strict = with_tool(o.house, "pay", policy=ONE_AT_A_TIME)
        house = replace(with_tool(strict, "pay", facts=block), user_code=user_code)
        async with at_work(o.another_worker(house=house, sweep_every=0.1)):
            await until(lambda: is_in(left, 1), "the worker leaves")
            assert (await o.events(asked.id))[-1] == "approval.look_stuck"
            assert await withdraw_outdated(house) == 0
            release.set()
        assert looked == ["blocked"]
        o.shift_clock("59 minutes")
        assert await withdraw_outdated(strict) == 0
        o.shift_clock("61 minutes")
        assert await withdraw_outdated(strict) == 1


async def is_in(found: list[int], code: int) -> bool:
    """Whether the process would have ended with this code."""
    return code in found


class Strict(BaseModel):
    """Pay these bills."""

    bills: list[str] = Field(title="Bills", min_length=1)

    @model_validator(mode="after")
    def one(self) -> "Strict":
        if len(self.bills) > 1:
            raise ValueError("one at a time")
        return self


async def test_an_input_that_a_new_validator_refuses_is_taken_back(
    database: Database, tmp_path: Path
) -> None:
    async with office(database, tmp_path, WITHDRAWN) as o:
        asked = await o.propose()
        Strict.__name__ = "Pay"  # the same schema, word for word: only the code is another
        changed = with_tool(o.house, "pay", input=Strict)
        assert changed.tools["pay"].schema_hash == o.house.tools["pay"].schema_hash
        assert await withdraw_outdated(changed) == 1
        await o.another_worker(house=changed).work_off()
        assert (await o.approval(asked.id)).outcome["text"] == "The input of pay is no longer valid."


async def test_a_worker_takes_it_back_as_it_starts(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, WITHDRAWN) as o:
        asked = await o.propose()
        stop = asyncio.Event()
        worker = o.another_worker(house=without(o.house, "pay"), poll=0.05, sweep_every=0.05)
        working = asyncio.create_task(worker.run(stop))

        async def ended() -> bool:
            return (await o.run(asked.run_id)).status is RunStatus.COMPLETED

        await until(ended, "the run ends")
        stop.set()
        await working
        assert (await o.approval(asked.id)).status is ApprovalStatus.SUPERSEDED


async def test_a_slow_tool_that_is_looked_at_keeps_no_work_from_a_worker(
    database: Database, tmp_path: Path
) -> None:
    talk = script(step(PAY), step(say("Hello.")))
    async with office(database, tmp_path, talk) as o:
        await o.propose()
        go_on, stop = threading.Event(), asyncio.Event()
        slow = with_tool(
            o.house, "pay", policy=ONE_AT_A_TIME, precondition=lambda i, c: {"x": go_on.wait(20)}
        )
        o.model.scripted.used.clear()
        other = await o.start(key="ev2", thread="9.9")
        worker = o.another_worker(house=slow, concurrency=1, poll=0.05, sweep_every=0.05)
        working = asyncio.create_task(worker.run(stop))

        async def asked() -> bool:
            return (await o.run(other.id)).turn > 0

        async def ended() -> bool:
            return (await o.run(other.id)).status is RunStatus.COMPLETED

        await until(asked, "the other run is taken up")
        go_on.set()
        await until(ended, "the other run hears that one at a time is enough")
        stop.set()
        await working


async def test_an_edit_of_what_is_taken_back_is_told(database: Database, tmp_path: Path) -> None:
    told = expect_results(lambda told: told[0]["edited"] and told[0]["editedInput"] == {"bills": ["b1"]})
    script_ = script(step(PAY), step(say("I can't any more."), expect=told))
    async with office(database, tmp_path, script_, policy=TWO_MUST_APPROVE) as o:
        asked = await o.propose()
        draft = await draft_edit(o.house, asked.id, 1, o.person(), {"bills": ["b1"]})
        assert isinstance(draft, Draft)
        assert await confirm_draft(o.house, draft.id, o.person())
        await withdraw_outdated(with_tool(o.house, "pay", version="2"))
        await o.work()
        assert (await o.approval(asked.id)).status is ApprovalStatus.SUPERSEDED


async def test_a_vote_at_that_moment_does_not_save_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = OLD.replace(APPROVERS, f"{APPROVERS}\nquorum = 2")
    async with office(database, tmp_path, STILL_ASKED, policy=two) as o:
        asked = await o.propose()
        withdraw, votes = approvals.withdraw, ["U0MARTA"]

        async def late(*args: Any, **values: Any) -> bool:
            while votes:
                await o.approve(asked, votes.pop())
            return await withdraw(*args, **values)

        monkeypatch.setattr(approvals, "withdraw", late)
        assert await withdraw_outdated(without(o.house, "pay")) == 1
        after = await o.approval(asked.id)
        assert (after.status, len(after.votes)) == (ApprovalStatus.SUPERSEDED, 1)


async def test_what_is_past_its_deadline_expires_and_is_a_refusal(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, STILL_ASKED) as o:
        asked = await o.propose()
        o.shift_clock("25 hours")
        gone = without(o.house, "pay")
        assert await withdraw_outdated(gone) == 0
        await sweep(gone)
        assert (await o.approval(asked.id)).status is ApprovalStatus.EXPIRED


async def test_one_that_cannot_be_looked_at_keeps_no_other_from_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = script(step(*[call("pay", {"bills": [f"b{n}"]}) for n in range(5)]))
    async with office(database, tmp_path, many) as o:
        await o.start()
        await o.work()
        asked = sorted(one.id for one in await o.all_asked())
        verify = drift.verify
        seen: list[int] = []

        def broken(shown: Any) -> bool:
            seen.append(1)
            if len(seen) == 2:
                raise KeyError("a bug")
            return verify(shown)

        monkeypatch.setattr(drift, "verify", broken)
        monkeypatch.setattr(drift, "PAGE", 2)
        assert await withdraw_outdated(with_tool(o.house, "pay", version="2")) == 4
        assert [one.id for one in await o.all_asked()] == [asked[1]]


async def test_a_conversation_goes_on_when_its_tools_are_gone(database: Database, tmp_path: Path) -> None:
    talk = script(
        step(call("tip", {"bills": ["b1"]}), call("look", {"bills": ["b1"]}), PAY),
        step(call("tip", {"bills": ["b2"]}), expect=expect_results(3)),
        step(say("It is gone."), expect=expect_results(lambda told: told[0]["invalid"])),
    )
    async with office(database, tmp_path, talk) as o:
        asked = await o.propose()
        gone = without(without(o.house, "pay"), "tip")
        await withdraw_outdated(gone)
        await o.another_worker(house=gone).work_off()
        assert (await o.run(asked.run_id)).answer == "It is gone."
        assert o.world.paid == ["b1"]


def test_four_eyes_that_were_turned_on_are_stricter_and_off_are_not(tmp_path: Path) -> None:
    tools = tools_of(World())
    eyes = policy_of(OLD, tools, tmp_path).rule_for("pay")
    none = policy_of(OLD.replace(APPROVERS, f"{APPROVERS}\nfour_eyes = false"), tools, tmp_path).rule_for(
        "pay"
    )
    assert (is_stricter(eyes, none), is_stricter(none, eyes)) == (True, False)
