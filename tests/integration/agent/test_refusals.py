"""A refusal holds for its effect until a person speaks again."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.loop import MOST_VETOED, REFUSED_THRICE
from agent.model import ModelBusy
from agent.scripted import call, expect_results, say, script, step
from agent.tool import Facts, Money, Risk, Tool, always_ask, ask_when, forbid_when, never_ask
from store import approvals
from store.transitions import ApprovalStatus, RunStatus
from tests.databases import Database, Server
from tests.integration.agent.office import office
from tests.integration.agent.till import Pay

PAY = call("pay", {"bills": ["b1", "b2"]})
VETOED = expect_results(
    lambda told: all(r["vetoed"] and r["approvalDenied"] and not r["executed"] for r in told)
)


@pytest.mark.parametrize(
    "again",
    [
        PAY,
        call("pay", {"bills": ["b1"]}),
        call("pay", {"bills": ["other"]}),
        call("tip", {"bills": ["b1", "b2"]}),
        call("tip", {"bills": ["b1"]}),
    ],
    ids=["same", "smaller", "other items", "another tool", "an allowed one"],
)
async def test_another_try_is_answered_with_the_refusal_and_asks_nobody(
    database: Database, tmp_path: Path, again: Any
) -> None:
    async with office(
        database, tmp_path, script(step(PAY), step(again), step(say("I stop."), expect=VETOED))
    ) as o:
        asked = await o.propose()
        await o.reject(asked, "Never.")
        await o.work()
        assert await o.statuses(asked.run_id) == ["rejected", "vetoed"]
        assert (await o.calls(asked.run_id))[1].result["content"]["reason"] == "Never."
        assert (o.world.attempts, len(o.execute("SELECT id FROM approvals"))) == ([], 1)


async def test_other_effects_are_not_refused(database: Database, tmp_path: Path) -> None:
    others = script(
        step(PAY), step(call("note", {"bills": ["b1"]}), call("look", {"bills": ["b1"]})), step(say("Noted."))
    )
    async with office(database, tmp_path, others) as o:
        asked = await o.propose()
        await o.reject(asked)
        await o.work()
        assert await o.statuses(asked.run_id) == ["rejected", "done", "done"]


async def test_an_expiry_refuses_too(database: Database, tmp_path: Path) -> None:
    again = script(
        step(PAY),
        step(call("tip", {"bills": ["b1"]})),
        step(
            say("Nobody decided."),
            expect=expect_results(lambda told: told[0]["vetoed"] and told[0]["expired"]),
        ),
    )
    async with office(database, tmp_path, again) as o:
        asked = await o.propose()
        o.shift_clock("25 hours")
        await o.sweep()
        assert await o.statuses(asked.run_id) == ["expired", "vetoed"]
        assert o.world.attempts == []


async def test_the_next_message_of_a_person_lifts_it_and_the_card_shows_it(
    database: Database, tmp_path: Path
) -> None:
    lifted = script(
        step(PAY), step(say("Refused.")), step(call("tip", {"bills": ["b1", "b2"]})), step(say("Done."))
    )
    async with office(database, tmp_path, lifted) as o:
        first = await o.propose()
        await o.reject(first, "Too early.")
        await o.work()
        second = await o.propose(text="It is time now.", key="ev2")
        refusal = await approvals.earlier_refusal(o.house.db, second)
        assert refusal is not None
        assert (refusal.approval_id, refusal.reason) == (first.id, "Too early.")
        await o.approve(second)
        await o.work()
        assert o.world.keys == [second.id]


async def test_a_message_that_only_waits_does_not_lift_it(database: Database, tmp_path: Path) -> None:
    waits = script(
        step(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]})),
        step(say("One was refused.")),
        step(call("pay", {"bills": ["b1"]})),
    )
    async with office(database, tmp_path, waits) as o:
        await o.start()
        await o.work()
        first, second = await o.all_asked()
        await o.reject(first)
        await o.start(text="And?", key="ev2")
        await o.work()
        assert o.execute("SELECT lifted_at FROM vetoes") == [(None,)]
        await o.reject(second)
        await o.work()
        assert o.execute("SELECT lifted_at IS NULL FROM vetoes") == [(False,)]
        assert (await o.asked()).run_id != first.run_id


async def test_it_holds_in_its_own_conversation_only(database: Database, tmp_path: Path) -> None:
    async with office(database, tmp_path, script(step(PAY), step(say("Refused.")))) as o:
        await o.reject(await o.propose())
        await o.work()
        o.model.scripted.used.clear()
        other = await o.propose(key="ev2", thread="9.9")
        assert await approvals.earlier_refusal(o.house.db, other) is None
        await o.reject(other)
        await o.work()


async def test_approvals_already_on_screen_keep_their_own_decision(
    database: Database, tmp_path: Path
) -> None:
    both = script(
        step(call("pay", {"bills": ["b1"]}), call("pay", {"bills": ["b2"]})),
        step(call("pay", {"bills": ["b3"]})),
        step(say("One of three."), expect=VETOED),
    )
    async with office(database, tmp_path, both) as o:
        run = await o.start()
        await o.work()
        first, second = await o.all_asked()
        await o.reject(first)
        assert (await o.approval(second.id)).status is ApprovalStatus.PENDING
        await o.approve(second)
        await o.work()
        assert o.world.paid == ["b2"]
        assert await o.statuses(run.id) == ["rejected", "done", "vetoed"]


async def test_a_rejecter_may_let_the_model_try_again_along_their_words(
    database: Database, tmp_path: Path
) -> None:
    again = script(
        step(PAY),
        step(
            call("pay", {"bills": ["b1"]}),
            expect=expect_results(lambda told: "ask again" in told[0]["instruction"]),
        ),
        step(say("Paid one.")),
    )
    async with office(database, tmp_path, again) as o:
        first = await o.propose()
        await o.reject(first, "Only b1.", may_retry=True)
        await o.work()
        second = await o.asked()
        assert o.execute("SELECT id FROM vetoes") == []
        await o.approve(second)
        await o.work()
        assert o.world.paid == ["b1"]


async def test_the_follow_up_that_a_tool_names_stays_allowed(database: Database, tmp_path: Path) -> None:
    told: list[str] = []
    letters: dict[str, Any] = {
        "input": Pay,
        "risk": Risk.IRREVERSIBLE,
        "effect": "letter",
        "execute": lambda i, c: told.append("x"),
    }
    ask = Tool(name="send_letter", followup="send_apology", **letters)
    apology = Tool(name="send_apology", policy=never_ask, **letters)
    other = Tool(name="send_flyer", policy=never_ask, **letters)
    bills = {"bills": ["b1"]}
    follow = script(
        step(call("send_letter", bills)),
        step(call("send_apology", bills), call("send_flyer", bills)),
        step(say("I told them.")),
    )
    async with office(database, tmp_path, follow, extra_tools=(ask, apology, other)) as o:
        asked = await o.propose()
        await o.reject(asked)
        await o.work()
        assert await o.statuses(asked.run_id) == ["rejected", "done", "vetoed"]
        assert told == ["x"]
        assert "send_apology" in (await o.result(asked))["instruction"]


# --- closed by default ---


def tool_with(**values: Any) -> Tool:
    base: dict[str, Any] = {"input": Pay, "risk": Risk.IRREVERSIBLE, "execute": lambda i, c: "done"}
    return Tool(name="burn", **(base | values))


def broken(input: Any, facts: Any) -> bool:
    raise ZeroDivisionError


def silent(input: Any, facts: Any) -> Any:
    return None


@pytest.mark.parametrize("policy", [None, "broken", "no answer"])
async def test_an_irreversible_tool_asks_without_a_policy_and_with_a_broken_one(
    database: Database, tmp_path: Path, policy: str | None
) -> None:
    rules = {"broken": ask_when(broken), "no answer": ask_when(silent)}
    burn = tool_with(policy=rules.get(policy or ""))
    async with office(
        database, tmp_path, script(step(call("burn", {"bills": ["b"]}))), extra_tools=[burn]
    ) as o:
        asked = await o.propose()
        assert asked.tool == "burn"


async def test_a_forbidden_call_asks_nobody_and_the_model_reads_the_rule(
    database: Database, tmp_path: Path
) -> None:
    burn = tool_with(policy=(always_ask, forbid_when(lambda i, f: f.count > 5, "at most five at a time")))
    burn = replace(burn, facts=lambda i, c: Facts(6))
    expected = expect_results(lambda told: told[0]["forbidden"] and "at most five" in told[0]["rule"])
    steps = script(step(call("burn", {"bills": ["b"]})), step(say("Forbidden."), expect=expected))
    async with office(database, tmp_path, steps, extra_tools=[burn]) as o:
        run = await o.start()
        await o.work()
        assert (await o.run(run.id)).status is RunStatus.COMPLETED
        assert o.execute("SELECT id FROM approvals") == []


async def test_amounts_are_measured_and_never_believed(database: Database, tmp_path: Path) -> None:
    class Claim(BaseModel):
        """Pay it out."""

        ids: list[str]
        total: str

    pay_out = Tool(
        name="pay_out",
        input=Claim,
        risk=Risk.IRREVERSIBLE,
        facts=lambda i, c: Facts(len(i.ids), Money(40 * len(i.ids), "EUR"), i.ids),
        policy=ask_when(lambda i, f: f.amount > Money(50, "EUR")),
        execute=lambda i, c: "paid",
    )
    lie = script(step(call("pay_out", {"ids": ["1", "2"], "total": "1.00"})))
    async with office(database, tmp_path, lie, extra_tools=[pay_out]) as o:
        asked = await o.propose()
        assert asked.shown.facts["amount"] == {"amount": "80.00", "currency": "EUR"}


# --- how often it may be tried ---

STOP = step(say("I stop."), expect=VETOED)


def closing_of(request: dict[str, Any]) -> bool:
    """Whether the model was asked for its last words."""
    return "tool_choice" in request


async def test_after_three_vetoed_tries_the_run_ends_with_its_explanation(
    database: Database, tmp_path: Path
) -> None:
    stubborn = script(step(PAY), *[step(call("tip", {"bills": [f"b{n}"]})) for n in range(3)], STOP)
    async with office(database, tmp_path, stubborn) as o:
        asked = await o.propose()
        await o.reject(asked, "Never.")
        await o.work()
        run = await o.run(asked.run_id)
        assert (run.status, run.answer) == (RunStatus.COMPLETED, "I stop.")
        assert await o.statuses(run.id) == ["rejected", "vetoed", "vetoed", "vetoed"]
        assert [closing_of(request) for request in o.model.requests] == [False] * 4 + [True]
        assert o.model.last_message[-1]["text"] == REFUSED_THRICE


async def test_vetoed_tries_are_counted_over_turns_faults_and_other_workers(
    database: Database, tmp_path: Path
) -> None:
    stubborn = script(
        step(PAY),
        step(call("tip", {"bills": ["b1"]}), call("look", {"bills": ["b1"]})),
        step(call("look", {"bills": ["b1"]})),
        step(call("tip", {"bills": ["b2"]}), call("pay", {"bills": ["b3"]})),
        step(say("I stop.")),
    )
    async with office(database, tmp_path, stubborn) as o:
        asked = await o.propose()
        await o.reject(asked)
        o.model.faults = [ModelBusy("overloaded", 529)]
        await o.work()
        o.shift_clock("10 seconds")
        await o.another_worker().work_off()
        assert (await o.run(asked.run_id)).status is RunStatus.COMPLETED
        assert [closing_of(request) for request in o.model.requests] == [False] * 5 + [True]


async def test_a_closing_that_could_not_be_asked_for_is_still_the_closing_later(
    database: Database, tmp_path: Path
) -> None:
    at_once = script(step(PAY), step(*[call("tip", {"bills": [f"b{n}"]}) for n in range(3)]), STOP)
    async with office(database, tmp_path, at_once) as o:
        asked = await o.propose()
        await o.reject(asked)
        o.model.fault_after_first = ModelBusy("overloaded", 529)
        await o.work()
        assert (await o.run(asked.run_id)).status is RunStatus.QUEUED
        o.shift_clock("10 seconds")
        await o.work()
        assert (await o.run(asked.run_id)).answer == "I stop."
        assert [closing_of(request) for request in o.model.requests][-2:] == [True, True]


async def test_each_run_has_three_tries_of_its_own(database: Database, tmp_path: Path) -> None:
    two = script(
        step(PAY),
        *[step(call("tip", {"bills": ["b1"]}))] * 2,
        step(say("Refused.")),
        step(PAY),
        *[step(call("tip", {"bills": ["b1"]}))] * 2,
        step(say("Refused again.")),
    )
    async with office(database, tmp_path, two) as o:
        for key in ("ev1", "ev2"):
            await o.reject(await o.propose(key=key))
            await o.work()
        assert not any(closing_of(request) for request in o.model.requests)
        assert (await o.run((await o.begin(key="ev2")).run.id)).answer == "Refused again."


# --- in any order ---

BILLS = st.lists(st.sampled_from(["b1", "b2", "b3"]), min_size=1, max_size=3, unique=True)
TRIES = st.lists(
    st.lists(st.tuples(st.sampled_from(["pay", "tip"]), BILLS), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


# an example is a database of its own, so none is made smaller: that would take minutes
SETTINGS = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SETTINGS
@given(tries=TRIES, how=st.sampled_from(["rejected", "expired"]))
async def test_nothing_of_a_refused_effect_runs_or_asks_until_a_person_writes(
    server: Server, template: Database, tmp_path: Path, tries: list[list[tuple[str, list[str]]]], how: str
) -> None:
    turns = [step(*[call(tool, {"bills": bills}) for tool, bills in turn]) for turn in tries]
    before = accumulate((len(turn) for turn in tries), initial=0)
    heard = [turn for turn, vetoed in zip(turns, before, strict=False) if vetoed < MOST_VETOED]
    talk = script(step(PAY), *heard, step(say("I stop.")), step(PAY), step(say("Done.")))
    with server.database(template) as database:
        async with office(database, tmp_path, talk) as o:
            first = await o.propose()
            if how == "rejected":
                await o.reject(first, "Never.")
            else:
                o.shift_clock("25 hours")
            await o.sweep()
            run = await o.run(first.run_id)
            assert (run.status, run.answer) == (RunStatus.COMPLETED, "I stop.")
            vetoed = (await o.statuses(run.id))[1:]
            assert set(vetoed) == {"vetoed"}
            assert closing_of(o.model.requests[-1]) is (len(vetoed) >= MOST_VETOED)
            assert (o.world.attempts, await o.all_asked()) == ([], [])
            second = await o.propose(text="Now, please.", key="ev2")
            refusal = await approvals.earlier_refusal(o.house.db, second)
            assert refusal is not None and (refusal.approval_id, refusal.kind) == (first.id, how)
            await o.approve(second)
            await o.work()
            assert o.world.keys == [second.id]
