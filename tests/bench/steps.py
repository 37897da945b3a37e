"""The statements of one approval, through the store's own functions and with what the agent would hand them.

This is what the floor is compared with: the same work in the database, without the tool's measurements, the
model and the checks between the statements, which `tests.bench.product` adds. The approval that is read
before it is decided is timed by itself: the floor decides without a look.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import uuid4

from agent import results
from agent.facts import Facts
from agent.money import Money
from agent.preview import freeze
from agent.sample import Preview
from agent.schema import validate
from agent.tool import Tool
from store import approvals, calls, runs
from store.engine import Database
from store.records import Actor, ClaimedRun, Measured, Rule, Vote
from store.runs import NewApproval, Outcome
from store.values import new_id
from tests.bench.shop import Shop
from tests.bench.texts import texts

TEAM = "T0SHOP"
LEO = Actor("person", TEAM, "U0LEO", "Leo")
MARTA = Actor("person", TEAM, "U0MARTA", "Marta", "support_lead")
RULE = Rule(("support_lead",), ("admin",), 1, True, 7200.0, 14400.0, 3600.0, "C0APPROVALS")
FIRST, *REST = texts()
LEASE: dict[str, Any] = {"worker": "bench", "lease": 15.0}


@dataclass
class Spent:
    """Seconds of one approval: in its steps, and in what is read before the decision."""

    written: float = 0.0
    read: float = 0.0

    @property
    def both(self) -> float:
        """All of it."""
        return self.written + self.read

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the block as steps."""
        begun = perf_counter()
        yield
        self.written += perf_counter() - begun

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count the block as reading."""
        begun = perf_counter()
        yield
        self.read += perf_counter() - begun


@dataclass(frozen=True)
class Steps:
    """A database, and one frozen call to write into it again and again."""

    db: Database
    shop: Shop
    tool: Tool

    async def one(self) -> Spent:
        """From the turn that asks to the run's last words; the run before it is not counted."""
        claimed = await self._running()
        shown = self._shown()
        spent = Spent()
        with spent.writing():
            approval_id = await self._pause(claimed, shown)
        await self._decide(approval_id, spent)
        with spent.writing():
            await self._act(approval_id)
        return spent

    async def _running(self) -> ClaimedRun:
        """A run whose model is about to ask."""
        key = uuid4().hex
        await runs.start(
            self.db,
            team_id=TEAM,
            channel_id="C0SUPPORT",
            thread_ts=key,
            agent="Refund helper",
            task=FIRST,
            requester=LEO,
            source_key=key,
        )
        run_id = await runs.claim(self.db, token=key, **LEASE)
        assert run_id is not None
        return await runs.load(self.db, run_id, key)

    def _shown(self) -> Measured:
        input = validate(self.tool, {"order": "A-1"})
        facts = Facts(1, Money(12, "EUR"), ["A-1"])
        preview = Preview("Refund 1 order", [], ["Order"], [("A-1",)])
        return freeze(self.tool, input, facts, preview, {"refunded": 0})

    async def _pause(self, claimed: ClaimedRun, shown: Measured) -> str:
        """The turn with its call, then the approval with its revision, card and notice."""
        asks = {"type": "tool_use", "id": "toolu_1", "name": "refund", "input": shown.input}
        said = [*({"type": "text", "text": text} for text in REST), asks]
        call_id, approval_id = new_id("call"), new_id("apr")
        new_call = {"id": call_id, "position": 0, "provider_id": "toolu_1", "tool": "refund"}
        made = await runs.save_turn(
            self.db,
            claimed,
            body=[{"role": "user", "content": FIRST}, {"role": "assistant", "content": said}],
            calls=[{**new_call, "effect": "refund", "input": shown.input, "rationale": "It failed."}],
            input_tokens=300,
            output_tokens=2700,
        )
        assert made
        event = {"actor": LEO.to_json(), "approval": approval_id, "call": call_id}
        assert await runs.propose(
            self.db,
            claimed,
            [Outcome(call_id, "asked", items=shown.items, effect="refund")],
            [NewApproval(approval_id, call_id, "refund", "refund", RULE, shown, TEAM)],
            notices=[
                {"dedupe_key": approval_id, "kind": "call_asked", "data": {"approval_ids": [approval_id]}}
            ],
            events=[{**event, "kind": "approval.requested", "data": {"rule": RULE.to_json()}}],
            pause=True,
        )
        return approval_id

    async def _decide(self, approval_id: str, spent: Spent) -> None:
        with spent.reading():
            read = await approvals.read(self.db, approval_id)
        assert read is not None
        with spent.writing():
            votes = [Vote(MARTA, read.now.isoformat())]
            assert await approvals.approve(self.db, read, MARTA, votes, None)

    async def _act(self, approval_id: str) -> None:
        """Claim, begin the attempt, the effect, record it and keep the run with all it has, complete it."""
        claimed = await calls.claim(self.db, token=approval_id, **LEASE)
        assert claimed is not None
        key = await calls.start_attempt(
            self.db, claimed, key=approval_id, repeatable=True, lease=LEASE["lease"]
        )
        assert key is not None
        self.shop.refund(key)
        output = {"refunded": 1}
        result = results.executed("refund", output, approved_by=[MARTA], executed_input=claimed.call.input)
        ended = await calls.finish_done(
            self.db,
            claimed,
            result=result.to_json(),
            outcome={"kind": "executed", "text": None, "output": output, "done": None},
            output=output,
            run_token=key,
            **LEASE,
        )
        assert ended is not None and ended.run is not None
        told = {"role": "user", "content": [result.content]}
        last = [told, {"role": "assistant", "content": "Refunded."}]
        assert await runs.complete(
            self.db, ended.run, body=last, answer="Refunded.", input_tokens=3000, output_tokens=10
        )
