"""A house for tests: a real database, a scripted model, tools whose effects are counted, no Slack."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from agent.decide import Recorded, Refused, decide
from agent.house import House
from agent.model import Answer, Message, ToolSchema
from agent.policy import Person, Policy, load_policy
from agent.scripted import Script, ScriptedModel
from agent.start import Started, start_run
from agent.sweep import sweep
from agent.tool import Tool
from agent.toolbox import by_name
from agent.usercode import UserCode
from agent.worker import Worker
from store import approvals, audit, calls, runs
from store.engine import Database
from store.records import Actor, Approval, AuditEvent, Call, Run
from tests import databases
from tests.integration.agent.till import World, tools_of
from tests.standins.provider_rules import check

TEAM = "T0SHOP"
LEO = Actor("person", TEAM, "U0LEO", "Leo")
POLICY = """
[agent]
name = "Helper"
max_steps = 12
[defaults]
channel = "C0APPROVALS"
approvers = ["support_lead"]
escalate_to = ["admin"]
[roles.support_lead]
users = ["U0MARTA", "U0M1", "U0M2", "U0M3", "U0M4", "U0M5", "U0M6", "U0M7"]
[roles.admin]
users = ["U0ANA"]
"""


class CheckedModel:
    """The scripted model, behind the provider's rules; what it is asked is kept in `requests`.

    `faults` are raised, first things first, before the script is looked at, `fault_after_first` after one
    more answer. `changing` makes another answer of the script's.
    """

    def __init__(self, *scripts: Script) -> None:
        self.name = "scripted"
        self.scripted = ScriptedModel(*scripts)
        self.requests: list[dict[str, Any]] = []
        self.faults: list[Exception] = []
        self.broken_rules: list[str] = []
        self.fault_after_first: Exception | None = None
        self.changing: Callable[[Answer], Answer] = lambda answer: answer

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """See Model.answer."""
        request: dict[str, Any] = {
            "model": "claude-sonnet-5-5",
            "max_tokens": 1000,
            "system": system,
            "messages": list(messages),
            "tools": [vars(tool) for tool in tools],
        }
        if closing:
            request["tool_choice"] = {"type": "none"}
        self.requests.append(request)
        violation = check(request)
        if violation is not None:
            self.broken_rules.append(f"request {len(self.requests)}: {violation.message}")
        if self.faults:
            raise self.faults.pop(0)
        if self.fault_after_first is not None:
            self.faults.append(self.fault_after_first)
            self.fault_after_first = None
        answer = await self.scripted.answer(system=system, messages=messages, tools=tools, closing=closing)
        return self.changing(answer)

    async def close(self) -> None:
        """See Model.close."""

    def assert_done(self) -> None:
        """Nothing unexpected was asked, nothing is left, and the provider would have taken every request."""
        self.scripted.assert_done()
        assert self.broken_rules == []

    @property
    def last_message(self) -> list[dict[str, Any]]:
        """The blocks of the last message of the last request."""
        return list(self.requests[-1]["messages"][-1]["content"])


def shape(request: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The messages of a request, as (role, types of its blocks)."""
    return [(m["role"], [block["type"] for block in m["content"]]) for m in request["messages"]]


@dataclass
class Office:
    """The house at work: begin a run, let a worker go on until nothing is left, decide, look."""

    house: House
    world: World
    model: CheckedModel
    owner_url: str
    worker: Worker

    async def start(self, text: str = "Pay the bills.", **values: Any) -> Run:
        """Begin a run in the usual thread."""
        return (await self.begin(text, **values)).run

    async def begin(
        self,
        text: str = "Pay the bills.",
        *,
        key: str = "ev1",
        thread: str | None = "1.1",
        requester: Actor = LEO,
    ) -> Started:
        """Begin a run, and say whether it is new and waits."""
        return await start_run(
            self.house,
            team_id=TEAM,
            channel_id="C0SUPPORT",
            thread_ts=thread,
            requester=requester,
            text=text,
            source_key=key,
        )

    async def work(self) -> None:
        """Let the worker do what may be done now."""
        await self.worker.work_off()

    async def sweep(self) -> None:
        """One round of the clock's work, then what follows from it."""
        await sweep(self.house)
        await self.work()

    async def propose(self, **values: Any) -> Approval:
        """Begin a run and work until its one approval waits."""
        await self.start(**values)
        await self.work()
        return await self.asked()

    async def asked(self) -> Approval:
        """The one approval that waits."""
        (found,) = await self.all_asked()
        return found

    async def all_asked(self) -> list[Approval]:
        """The approvals that wait, in the order in which they were asked."""
        return await approvals.pending_all(self.house.db, limit=10)

    async def approval(self, approval_id: str) -> Approval:
        """The approval as it is now."""
        found = await approvals.read(self.house.db, approval_id)
        assert found is not None
        return found

    async def run(self, run_id: str) -> Run:
        """The run as it is now."""
        found = await runs.read(self.house.db, run_id)
        assert found is not None
        return found

    async def calls(self, run_id: str) -> list[Call]:
        """The run's calls, in the model's order."""
        return await calls.of_run(self.house.db, run_id)

    async def statuses(self, run_id: str) -> list[str]:
        """The statuses of the run's calls, in the model's order."""
        return [call.status.value for call in await self.calls(run_id)]

    async def result(self, approval: Approval) -> dict[str, Any]:
        """What the model reads of the call."""
        call = await calls.read(self.house.db, approval.call_id)
        assert call is not None
        content: dict[str, Any] = call.result["content"]
        return content

    async def events(self, subject: str) -> list[str]:
        """The kinds of the events of a run or an approval, in order."""
        return [event.kind for event in await self.record(subject)]

    async def record(self, subject: str) -> list[AuditEvent]:
        """The events of a run or an approval, in order."""
        return await audit.of(self.house.db, subject)

    def person(self, user: str = "U0MARTA", name: str = "") -> Person:
        """A person with the roles the policy gives them."""
        name = name or user.removeprefix("U0").capitalize()
        return Person(TEAM, user, name, self.house.policy.roles_of(TEAM, user))

    async def approve(self, approval: Approval, user: str = "U0MARTA") -> Recorded | Refused:
        """Press Approve on what was read."""
        return await decide(self.house, approval.id, approval.revision, self.person(user), "approve")

    async def reject(
        self, approval: Approval, reason: str = "Not today.", user: str = "U0MARTA", **values: Any
    ) -> Recorded | Refused:
        """Press Reject on what was read."""
        person = self.person(user)
        return await decide(self.house, approval.id, approval.revision, person, "reject", reason, **values)

    def another_worker(self, name: str = "w2", house: House | None = None, **values: Any) -> Worker:
        """A second worker on the same database."""
        return Worker(house or self.house, NoPublisher(), name=name, **values)

    def shift_clock(self, interval: str) -> None:
        """Let the house's one clock be ahead by so much."""
        self.execute(
            "CREATE OR REPLACE FUNCTION house_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE"
            f" AS $$SELECT now() + interval '{interval}'$$"
        )

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """As the owner of the database, around everything that protects it but its triggers."""
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []


async def approved(o: Office) -> Approval:
    """An approval that is approved and not claimed yet."""
    asked = await o.propose()
    await o.approve(asked)
    return asked


class NoPublisher:
    """Nobody is told anything."""

    async def publish_cards(self) -> int:
        """See Publisher."""
        return 0

    async def publish_notices(self) -> int:
        """See Publisher."""
        return 0

    async def close(self) -> None:
        """See Publisher."""


def policy_of(text: str, tools: Sequence[Tool], folder: Path) -> Policy:
    """The policy in the text, at home in the shop's workspace."""
    path = folder / "policy.toml"
    path.write_text(text)
    return load_policy(path, by_name(tools), home_team=TEAM)


@asynccontextmanager
async def office(
    database: databases.Database,
    folder: Path,
    *scripts: Script,
    policy: str = POLICY,
    world: World | None = None,
    repeatable: bool = True,
    extra_tools: Sequence[Tool] = (),
) -> AsyncIterator[Office]:
    """Open an office; on leaving, the model's script must have been used up unless the test failed."""
    world = world or World()
    tools = (*tools_of(world, repeatable=repeatable), *extra_tools)
    db = Database.open(database.url)
    model = CheckedModel(*scripts)
    async with UserCode(threads=2) as user_code:
        house = House(db, by_name(tools), policy_of(policy, tools, folder), user_code, model)
        try:
            yield Office(house, world, model, database.owner_url, Worker(house, NoPublisher(), name="w1"))
        finally:
            await db.close()
    model.assert_done()


def without(house: House, name: str) -> House:
    """The house after a tool was taken away."""
    return replace(house, tools={k: v for k, v in house.tools.items() if k != name})


def with_tool(house: House, name: str, **changes: Any) -> House:
    """The house after a tool was changed."""
    return replace(house, tools={**house.tools, name: replace(house.tools[name], **changes)})


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 20.0) -> None:
    """Wait until something holds, or fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline, f"never happened: {what}"
        await asyncio.sleep(0.02)
