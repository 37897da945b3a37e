"""The product's own way through one approval: no Slack, no publisher, and a model that answers at once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from uuid import uuid4

import psycopg
from pydantic import BaseModel, Field

from agent.decide import Recorded, decide
from agent.house import House
from agent.model import Answer, Message, ToolSchema
from agent.policy import Person, load_policy
from agent.start import start_run
from agent.tool import Context, Facts, Money, Preview, Risk, Tool
from agent.toolbox import by_name
from agent.usercode import UserCode
from agent.worker import Worker
from store.engine import Database
from store.records import Actor, Approval
from tests.bench.shop import Shop
from tests.bench.texts import texts

TEAM = "T0SHOP"
LEO = Actor("person", TEAM, "U0LEO", "Leo")
POLICY = """
[agent]
name = "Refund helper"
[defaults]
channel = "C0APPROVALS"
approvers = ["support_lead"]
escalate_to = ["admin"]
[roles.support_lead]
users = ["U0MARTA"]
[roles.admin]
users = ["U0ANA"]
"""


class Refund(BaseModel):
    """Refund one order."""

    order: str = Field(title="Order")


def refund_in(shop: Shop) -> Tool:
    """A tool that always asks; what it measures and shows is trivial, its effect is one INSERT."""

    def execute(input: Refund, ctx: Context) -> dict[str, int]:
        shop.refund(ctx.idempotency_key)
        return {"refunded": 1}

    return Tool(
        name="refund",
        input=Refund,
        risk=Risk.IRREVERSIBLE,
        facts=lambda input, ctx: Facts(1, Money(12, "EUR"), [input.order]),
        preview=lambda input, facts, ctx: Preview("Refund 1 order", [], ["Order"], [(input.order,)]),
        precondition=lambda input, ctx: {"refunded": 0},
        execute=execute,
        repeatable=True,
    )


class Model:
    """Answers at once: first the rest of the conversation with the call that asks, then the last words.

    `answered_at` is when it last gave the first: from there on there is an approval to make.
    """

    name = "scripted"

    def __init__(self, words: Sequence[str]) -> None:
        self._asks: list[dict[str, Any]] = [
            *({"type": "text", "text": text} for text in words),
            {"type": "tool_use", "id": "toolu_1", "name": "refund", "input": {"order": "A-1"}},
        ]
        self.answered_at = 0.0

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """See Model.answer."""
        if len(messages) > 1:
            return Answer([{"type": "text", "text": "Refunded."}], "end_turn", 3000, 10, self.name)
        self.answered_at = perf_counter()
        return Answer(self._asks, "tool_use", 300, 2700, self.name)

    async def close(self) -> None:
        """See Model.close."""


class NoPublisher:
    """Nobody is told anything: cards and notices are written, and stay."""

    async def publish_cards(self) -> int:
        return 0

    async def publish_notices(self) -> int:
        return 0

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class Parts:
    """Seconds of one approval, part by part."""

    start: float
    """From the person's message to the model's answer: there is no approval yet."""
    ask: float
    decide: float
    act: float

    @property
    def approval(self) -> float:
        """From the model's answer that asks to the run's last words: what the floor does, too."""
        return self.ask + self.decide + self.act

    @property
    def run(self) -> float:
        """The whole run."""
        return self.start + self.approval


@dataclass(frozen=True)
class Product:
    """A house at work, with a worker that works only when it is told to."""

    house: House
    worker: Worker
    model: Model
    shop: Shop
    desk: psycopg.Connection[tuple[object, ...]]
    message: str

    async def one(self) -> Parts:
        """One run with one approval, carried to its end.

        Looking up what to click on is not counted: a click carries the approval's id.
        """
        begun = perf_counter()
        await self.start()
        assert await self.worker.work_one()
        asked = perf_counter()
        approval_id = self.waiting()
        assert approval_id is not None
        clicked = perf_counter()
        await self.approve(approval_id)
        decided = perf_counter()
        assert await self.worker.work_one()
        ended = perf_counter()
        answered = self.model.answered_at
        return Parts(answered - begun, asked - answered, decided - clicked, ended - decided)

    async def start(self) -> None:
        """A person's message, in a thread of its own; committed on return."""
        key = uuid4().hex
        await start_run(
            self.house,
            team_id=TEAM,
            channel_id="C0SUPPORT",
            thread_ts=key,
            requester=LEO,
            text=self.message,
            source_key=key,
        )

    def waiting(self) -> str | None:
        """The approval that waits, if one does; looked up beside the product."""
        row = self.desk.execute("SELECT id FROM approvals WHERE status = 'pending'").fetchone()
        return None if row is None else str(row[0])

    async def approve(self, approval_id: str) -> Approval:
        """Marta's click on the first revision; committed on return."""
        marta = Person(TEAM, "U0MARTA", "Marta", self.house.policy.roles_of(TEAM, "U0MARTA"))
        recorded = await decide(self.house, approval_id, 1, marta, "approve")
        assert isinstance(recorded, Recorded), recorded
        return recorded.approval


@asynccontextmanager
async def product(url: str, owner_url: str, *, notes_begin: bool = False) -> AsyncIterator[Product]:
    """A house on the database of `url`; its one tool works in a shop there, as the owner."""
    message, *rest = texts()
    shop = Shop(owner_url, notes_begin=notes_begin)
    tools = by_name([refund_in(shop)])
    with TemporaryDirectory(prefix="vistobueno-bench-policy-") as folder:
        path = Path(folder) / "policy.toml"
        path.write_text(POLICY)
        policy = load_policy(path, tools, home_team=TEAM)
    db, model = Database.open(url), Model(rest)
    with closing(shop), psycopg.connect(owner_url, autocommit=True) as desk:
        async with UserCode() as user_code:
            house = House(db, tools, policy, user_code, model)
            yield Product(house, Worker(house, NoPublisher()), model, shop, desk, message)
            await db.close()
