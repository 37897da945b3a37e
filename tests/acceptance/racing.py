"""Eight processes of their own, each a racer: at a signal all of them do their part on the same approval."""

import asyncio
import itertools
import multiprocessing
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Literal

import psycopg
import structlog

from agent.cancel import Stopped, cancel_as
from agent.decide import Recorded, Refused, confirm_draft, decide
from agent.edit import draft_edit
from agent.house import House
from agent.policy import Person
from agent.sweep import expire
from agent.toolbox import by_name
from agent.usercode import UserCode
from bot import replies
from bot.texts import texts
from store import approvals
from store.engine import Database
from store.records import Draft
from store.transitions import ApprovalStatus
from tests.databases import Database as OwnDatabase
from tests.integration.agent.office import POLICY, TEAM, policy_of
from tests.integration.agent.till import World, tools_of

USERS = ("U0MARTA", "U0M1", "U0M2", "U0M3", "U0M4", "U0M5", "U0M6", "U0M7")
RACERS = len(USERS)
PATIENCE = 60.0
SPANS = (0.005, 0.005, 0.02, 0.1)  # seconds in which deadline and clicks come, in turn: machines are slow
EN = texts("en")
Kind = Literal["approve/approve", "approve/reject", "approve/expire", "edit/approve", "cancel/approve"]
Part = Callable[[], Awaitable["Said | None"]]


@dataclass(frozen=True)
class Race:
    """What eight processes want something of at once."""

    kind: Kind
    approval_id: str
    run_id: str


@dataclass(frozen=True)
class Said:
    """What a racer is told: whether theirs is the one that counts, what it was, and the sentence."""

    racer: int
    part: str
    won: bool
    words: str


def run_all(database: OwnDatabase, folder: Path, races: Sequence[Race]) -> list[list[Said]]:
    """Run the races, one after the other; gives what was said in each."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.acceptance.racing"])
    signal = forks.Barrier(RACERS)
    heard = []
    for number in range(RACERS):
        ours, theirs = forks.Pipe(duplex=False)
        process = forks.Process(target=_become, args=(number, database, folder, races, signal, theirs))
        process.start()
        theirs.close()
        heard.append((process, ours))
    said = [ours.recv() for _, ours in heard]
    for process, ours in heard:
        process.join(PATIENCE)
        ours.close()
    return [[words for words in all_ if words is not None] for all_ in zip(*said, strict=True)]


def _become(
    number: int,
    database: OwnDatabase,
    folder: Path,
    races: Sequence[Race],
    signal: Barrier,
    result: Connection,
) -> None:
    """In the new process: run all the races as this racer, and tell what came of them."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with result:
        result.send(asyncio.run(_run(number, database, folder, races, signal)))


async def _run(
    number: int, database: OwnDatabase, folder: Path, races: Sequence[Race], signal: Barrier
) -> list[Said | None]:
    own = folder / str(number)
    own.mkdir()
    tools = tools_of(World())
    async with AsyncExitStack() as stack:
        db = Database.open(database.url)
        stack.push_async_callback(db.close)
        user_code = await stack.enter_async_context(UserCode(threads=1))
        owner = stack.enter_context(psycopg.connect(database.owner_url, autocommit=True))
        house = House(db, by_name(tools), policy_of(POLICY, tools, own), user_code)
        racer = Racer(number, house, owner)
        said = []
        for race in races:
            part = await racer.prepare(race)
            await asyncio.to_thread(signal.wait, PATIENCE)
            said.append(await part())
        return said


class Racer:
    """One of the eight; the even ones do the first part of a race, the odd ones the second."""

    def __init__(self, number: int, house: House, owner: psycopg.Connection[tuple[object, ...]]) -> None:
        self.number, self.house, self.owner = number, house, owner
        user = USERS[number]
        name = user.removeprefix("U0").capitalize()
        self.person = Person(TEAM, user, name, house.policy.roles_of(TEAM, user))
        self.dice = random.Random(number)
        self.spans = itertools.cycle(SPANS)

    async def prepare(self, race: Race) -> Part:
        """Everything up to the moment of the race; gives what is done then."""
        first = self.number % 2 == 0
        self.span = next(self.spans)
        match race.kind:
            case "approve/approve":
                return lambda: self._decide(race, "approve")
            case "approve/reject":
                return lambda: self._decide(race, "approve" if first else "reject")
            case "edit/approve":
                return await self._edit(race) if self.number < 2 else lambda: self._decide(race, "approve")
            case "cancel/approve":
                return (lambda: self._cancel(race)) if first else lambda: self._decide(race, "approve")
            case "approve/expire":
                if self.number == 0:
                    self._let_it_expire(race)
                late = self.dice.uniform(0, self.span)
                return (
                    (lambda: self._decide(race, "approve", late)) if first else (lambda: self._expire(race))
                )

    async def _decide(self, race: Race, verdict: Literal["approve", "reject"], late: float = 0) -> Said:
        await asyncio.sleep(late)
        done = await decide(self.house, race.approval_id, 1, self.person, verdict, "No.")
        return self._told(verdict, done)

    def _let_it_expire(self, race: Race) -> None:
        """The deadline is about when the race begins."""
        left = self.dice.uniform(-self.span / 4, self.span)
        self.owner.execute(
            "UPDATE approvals SET expires_at = clock_timestamp() + make_interval(secs => %s) WHERE id = %s",
            [left, race.approval_id],
        )

    async def _expire(self, race: Race) -> None:
        """What the clock's sweep does, until there is nothing left to do; nobody is told."""
        while await self._is_pending(race):
            await expire(self.house)

    async def _is_pending(self, race: Race) -> bool:
        found = await approvals.read(self.house.db, race.approval_id)
        return found is not None and found.status is ApprovalStatus.PENDING

    async def _edit(self, race: Race) -> Part:
        bills = [f"another{self.number}"]
        draft = await draft_edit(self.house, race.approval_id, 1, self.person, {"bills": bills})
        assert isinstance(draft, Draft), draft

        async def confirm() -> Said:
            return self._told("edit", await confirm_draft(self.house, draft.id, self.person))

        return confirm

    async def _cancel(self, race: Race) -> Said:
        done = await cancel_as(self.house, race.run_id, self.person)
        if isinstance(done, Stopped):
            return Said(self.number, "cancel", True, replies.stopped(done, EN).text)
        return Said(self.number, "cancel", False, replies.not_stopped(done, race.run_id, EN).text)

    def _told(self, part: str, done: Recorded | Refused) -> Said:
        if isinstance(done, Recorded):
            return Said(self.number, part, True, replies.recorded(done, EN).text)
        words = replies.refused(done, EN, user_id=self.person.user_id).text
        return Said(self.number, part, False, words)
