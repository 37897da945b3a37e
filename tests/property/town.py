"""A small town for the property test: two workers, people who click, the clock's sweeps, one database.

Each of them is a process on a line of its own: it can die or be held at any statement while the others go on.
"""

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from structlog.testing import LogCapture

from agent.decide import Recorded, Refused, confirm_draft, decide
from agent.edit import draft_edit
from agent.house import House
from agent.leases import Leases
from agent.leases import clock as real_clock
from agent.policy import Person, Policy, load_policy
from agent.settle import Said, settle
from agent.start import WrongStatus, cancel_run, retry_run, start_run
from agent.sweep import sweep
from agent.tool import Tool
from agent.toolbox import by_name
from agent.usercode import UserCode
from agent.worker import Worker
from store import approvals, audit, cards
from store.engine import Database
from store.errors import StoreError
from store.records import Actor, Draft
from tests import databases
from tests.integration.agent.office import NoPublisher
from tests.property.bills import Pay, PayLater, World, tools_of
from tests.property.laws import LEASE, Laws
from tests.property.lines import Died, Interruption, Line
from tests.property.planned import Plan, PlannedModel

TEAM = "T0SHOP"
LEO = Actor("person", TEAM, "U0LEO", "Leo")
WORKERS = ("w1", "w2")
RELEASES = (Pay, PayLater)
POLICY = """
[agent]
name = "Helper"
[defaults]
channel = "C0APPROVALS"
approvers = ["lead"]
escalate_to = ["admin"]
escalate_after = "1h"
expires_after = "2h"
[roles.lead]
users = ["U0MARTA", "U0MIRA", "U0LEO"]
[roles.admin]
users = ["U0ANA"]
[tools.pay]
quorum = 2
"""


@dataclass
class Held:
    """A process that is held up, and what it was about."""

    line: Line
    task: "asyncio.Task[Any]"


class Town:
    """Everything of one test; `begin` makes it new for the next example."""

    def __init__(self, database: databases.Database, folder: Path, laws: Laws) -> None:
        self.database, self.laws = database, laws
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.log = LogCapture()
        (folder / "policy.toml").write_text(POLICY)
        self.policy = folder / "policy.toml"
        self.runner.run(self._open())

    async def _open(self) -> None:
        self.db = Database.open(self.database.url, pool_size=8)
        self.user_code = {name: UserCode(threads=2) for name in (*WORKERS, "web")}
        for place in self.user_code.values():
            await place.__aenter__()

    def close(self) -> None:
        """Stop everything."""
        self.runner.run(self._close())
        self.runner.close()

    async def _close(self) -> None:
        for place in self.user_code.values():
            await place.__aexit__(None, None, None)
        await self.db.close()

    def begin(self) -> None:
        """An empty town at noon."""
        self.laws.empty()
        self.ahead = 0.0
        self.laws.shift_clock(0)
        self.world, self.model = World(is_claimed=self.laws.is_claimed), PlannedModel()
        self.releases = [self._release(input) for input in RELEASES]
        self.release = dict.fromkeys((*WORKERS, "web"), 0)
        self.workers: dict[str, Worker] = {}
        self.held: dict[str, Held] = {}
        self.lines: list[Line] = []
        self.log.entries.clear()
        self.begun = 0

    def _release(self, input: type[Pay]) -> tuple[dict[str, Tool], Policy]:
        tools = by_name(tools_of(self.world, input))
        return dict(tools), load_policy(self.policy, tools, home_team=TEAM)

    # --- processes ---

    def house(self, name: str, line: Database) -> House:
        """The house as the process of this name has it."""
        tools, policy = self.releases[self.release[name]]
        return House(line, tools, policy, self.user_code[name], self.model)

    def line(self, name: str) -> Line:
        """A line for a new process."""
        made = Line(self.db.url, self.db.pool, name)
        self.lines.append(made)
        return made

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something on the town's loop."""
        return self.runner.run(work)

    async def carry(
        self, line: Line, work: Coroutine[Any, Any, Any], interruption: Interruption | None
    ) -> Any:
        """Let a process work until it is done, dead or held; gives what came of it, None if nothing."""
        line.expect(interruption)
        return await self._wait(Held(line, asyncio.ensure_future(work)))

    async def _wait(self, at_work: Held) -> Any:
        line, task = at_work.line, at_work.task
        self.world.line = line
        held = asyncio.ensure_future(line.held.wait())
        await asyncio.wait({task, held}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            assert held.done(), f"{line.name} hangs"
            self.held[f"{line.name} {id(task)}"] = at_work
            return None
        held.cancel()
        try:
            return task.result()
        except (Died, StoreError, WrongStatus) as ended:
            return ended

    def wake(self, name: str, *, kill: bool) -> None:
        """Let one who is held go on, or end it where it is."""
        found = self.held.pop(name)
        if kill:
            found.line.kill()
        else:
            found.line.let_go()
        self.run(self._wait(found))

    def is_held(self, name: str) -> bool:
        """Whether this process cannot begin anything now."""
        return any(held.line.name == name for held in self.held.values())

    # --- what they do ---

    def work(self, name: str, interruption: Interruption | None = None) -> bool:
        """One piece of work, by a worker that is begun anew if it has died; False: there was none."""

        async def one() -> Any:
            worker = self.workers.get(name)
            if worker is None or getattr(worker.house.db, "dead", True):
                worker = Worker(self.house(name, self.line(name)), NoPublisher(), name=name, lease=LEASE)
                self.workers[name] = worker
            assert isinstance(worker.house.db, Line)
            return await self.carry(worker.house.db, worker.work_one(), interruption)

        return self.run(one()) is True

    def deploy(self, name: str) -> None:
        """A process ends, and begins again with the other release."""
        self.release[name] = 1 - self.release[name]
        self.workers.pop(name, None)

    def from_web(self, work: Any, interruption: Interruption | None = None) -> Any:
        """Something that begins at the web process; `work` makes it of the house."""

        async def one() -> Any:
            line = self.line("web")
            return await self.carry(line, work(self.house("web", line)), interruption)

        return self.run(one())

    def start(self, thread: int, plan: Plan) -> None:
        """Leo writes in a thread."""
        self.begun += 1
        self.from_web(
            lambda house: start_run(
                house,
                team_id=TEAM,
                channel_id="C0SUPPORT",
                thread_ts=f"1.{thread}",
                requester=LEO,
                text=json.dumps({"number": self.begun, "plan": plan}),
                source_key=f"ev{self.begun}",
            )
        )

    def person(self, user: str) -> Person:
        """A person with the roles that the policy gives them."""
        return Person(
            TEAM, user, user.removeprefix("U0").capitalize(), self.releases[0][1].roles_of(TEAM, user)
        )

    def click(
        self, user: str, approval: str, revision: int, verdict: Any, interruption: Interruption | None
    ) -> Recorded | Refused | None:
        """A person presses Approve or Reject on what they see."""
        person = self.person(user)
        told = self.from_web(
            lambda house: decide(house, approval, revision, person, verdict, "So."), interruption
        )
        return told if isinstance(told, Recorded | Refused) else None

    def draft(self, user: str, approval: str, revision: int, bills: list[str]) -> Draft | None:
        """A person previews an edit."""
        person = self.person(user)
        made = self.from_web(lambda house: draft_edit(house, approval, revision, person, {"bills": bills}))
        return made if isinstance(made, Draft) else None

    def confirm(self, user: str, draft: str, interruption: Interruption | None) -> None:
        """A person confirms the edit that they previewed."""
        self.from_web(lambda house: confirm_draft(house, draft, self.person(user)), interruption)

    def sweep(self, interruption: Interruption | None = None) -> int:
        """One round of what the clock does."""
        moved = self.from_web(sweep, interruption)
        return moved if isinstance(moved, int) else 0

    def cancel(self, run: str, interruption: Interruption | None) -> None:
        """Leo stops a run."""
        self.from_web(lambda house: cancel_run(house, run, LEO), interruption)

    def retry(self, run: str, interruption: Interruption | None) -> None:
        """Leo lets a failed run go on."""
        self.from_web(lambda house: retry_run(house, run, LEO), interruption)

    def settle(self, approval: str, revision: int, attempts: int, said: Said, mishap: Any) -> None:
        """Marta says what she saw at the provider, or lets it be tried again."""
        marta = self.person("U0MARTA")
        self.from_web(lambda house: settle(house, approval, revision, attempts, marta, said), mishap)

    def publish(self, interruption: Interruption | None = None) -> bool:
        """Bring one card up to date, as the publisher does; False: there is none."""

        async def publish(house: House) -> bool:
            card = await cards.claim_behind(house.db, token=Leases.new_token(), worker="web", lease=LEASE)
            if card is None or card.token is None:
                return False
            approval = await approvals.read(house.db, card.approval_id)
            assert approval is not None
            where = {"channel_id": card.channel_id or "D0", "ts": card.ts or card.id}
            return await cards.posted(house.db, card, card.token, version=approval.version, **where)

        return self.from_web(publish, interruption) is True

    def clock(self) -> float:
        """What a process sees on its own clock; one that is held up finds the time gone."""
        return real_clock() + self.ahead

    def pass_time(self, seconds: float) -> None:
        """The clocks go on, the house's and those of the processes."""
        self.ahead += seconds
        self.laws.shift_clock(self.ahead)

    # --- what is looked at ---

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query finds."""
        found: list[dict[str, Any]] = self.run(self.db.query(query))
        return found

    def faults(self) -> list[str]:
        """Everything that is not as it must be."""
        errors = [str(entry) for entry in self.log.entries if entry["log_level"] in ("error", "critical")]
        unclaimed = [fault for line in self.lines for fault in line.broken] + self.world.begun_without_claim
        broken = self.run(audit.verify(self.db)).broken
        return [*self.laws.broken(), *broken, *unclaimed, *self.model.broken, *errors, *self._effects()]

    def _effects(self) -> list[str]:
        """What the provider did, against what people saw and what the rows say."""
        found = self.rows(
            """SELECT c.id, c.key, c.tool, c.status, c.done_items, a.status AS asked,
       coalesce(v.input, c.measured->'input') AS input
  FROM calls c LEFT JOIN approvals a ON a.call_id = c.id
       LEFT JOIN revisions v ON v.approval_id = a.id AND v.revision = a.revision
 WHERE c.tool <> 'look' AND (c.key IS NOT NULL OR c.ended_at IS NOT NULL)"""
        )
        by_key = {row["key"]: row for row in found if row["key"]}
        faults = [f"paid twice: {bill}" for bill, times in self.world.paid.items() if times > 1]
        for effect in self.world.effects:
            row = by_key.get(effect.key)
            whole = tuple(row["input"]["bills"]) if row else ()
            if row is None or row["tool"] != effect.tool or effect.bills not in (whole, whole[:1]):
                faults.append(f"nobody saw {effect}")
        return faults + [fault for row in found if (fault := self._untrue(row))]

    def _untrue(self, row: dict[str, Any]) -> str | None:
        done = [bill for effect in self.world.of(row["key"]) for bill in effect.bills]
        match row["status"]:
            case "done":
                true = done == row["input"]["bills"] and row["asked"] in (None, "executed")
            case "failed":
                true = done == (row["done_items"] or []) and row["asked"] in (None, "failed")
            case "executing" | "unknown" | "asked" | "allowed":
                true = True
            case _:
                true = not done
        return None if true else f"{row['id']} is {row['status']}, and the provider did {done}"


def quiet(log: LogCapture) -> None:
    """Keep what is logged instead of printing it."""
    structlog.configure(processors=[log])
