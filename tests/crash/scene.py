"""One run on a stage of its own: what the people do, and who takes over when the process dies."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agent.scripted import Asked, Expectation, Script, call, say, script, step
from agent.tools.shop.seed import fail_three_overnight
from bot.sandbox import Message
from store import approvals
from store.records import Approval
from store.transitions import ApprovalStatus
from tests import databases
from tests.acceptance.children import environment
from tests.acceptance.crowds import changed_policy
from tests.acceptance.scripts import LOOK, refund
from tests.acceptance.stage import Stage, staged
from tests.crash import children
from tests.crash.kinds import Kind
from tests.crash.points import REFUND, Decision, Point
from tests.crash.provider import Provider
from tests.integration.store.rows import shift_clock

PATIENCE = children.PATIENCE
LEASES_OVER = 21.0
"""Seconds after which nothing is left to a process that is gone, the card it was about to post included."""
DAY = 24 * 3600.0 + 60
FOUND, LEFT, LATER = 38, 2, 41
"""Payments that are proposed, that an edit leaves, and that are proposed once the world has moved."""
LAST_WORDS = "That is all."
T = TypeVar("T")

_LOOKS, _PRESSES = 30, 5
FORM_SECONDS = 20.0
_WORK = """SELECT id FROM runs WHERE status IN ('queued', 'running')
UNION ALL SELECT id FROM approvals WHERE status IN ('approved', 'executing')"""
_UNSHOWN = """SELECT id FROM cards WHERE shown_version < wanted_version
UNION ALL SELECT id::text FROM notices WHERE posted_at IS NULL"""


async def until(look: Callable[[], T | Awaitable[T]], what: str, seconds: float = PATIENCE) -> T:
    """The first true value that `look` gives; AssertionError with `what` was waited for if there is none."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = look()
                value: T = await found if isinstance(found, Awaitable) else found
                if value:
                    return value
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited {seconds:.0f} s in vain: {what}") from None


def script_of(decision: Decision, truth: Expectation) -> Script:
    """What the model does; `truth` is what it must be told before its last words."""
    ask = step(call(REFUND, refund), expect=_told(lambda result: result["ok"]))
    last = step(say(LAST_WORDS), expect=truth)
    if decision is not Decision.MOVED:
        return script(LOOK, ask, last)
    again = step(call("search_payments", {"status": "failed", "limit": 500}), expect=_told(_is_superseded))
    return script(LOOK, ask, again, ask, last)


def _told(met: Callable[[Any], bool]) -> Expectation:
    def told(asked: Asked) -> str | None:
        results = asked.results
        return None if len(results) == 1 and met(results[0]) else "another result"

    return told


def _is_superseded(result: Any) -> bool:
    return bool(result.get("superseded")) and result["executed"] is False


TRUTHS: dict[ApprovalStatus, Callable[[Any], bool]] = {
    ApprovalStatus.EXECUTED: lambda result: result["executed"] is True and result["ok"],
    ApprovalStatus.REJECTED: lambda result: result["executed"] is False and result["approvalDenied"],
    ApprovalStatus.EXPIRED: lambda result: result["executed"] is False and result["expired"],
    ApprovalStatus.UNKNOWN: lambda result: result["executed"] is None and result["unknown"],
}


@dataclass
class Scene:
    """A stage, the processes that work on it, and the people."""

    stage: Stage
    provider: Provider
    database: databases.Database
    forks: ForkServerContext
    folder: Path
    decision: Decision
    kind: Kind
    began: list[children.Child] = field(default_factory=list)
    ahead: float = 0.0
    tries: int = 0
    """How often somebody let be tried again what nobody knew."""
    first: Approval | None = None
    asked: Message | None = None
    replaced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when another process has taken over; then it is another event."""

    async def begin(self, point: Point | None = None) -> None:
        """Start every process; the first one that comes to `point` dies there."""
        for command in self.kind.commands:
            await self.start(command, point)

    async def start(self, command: str, point: Point | None = None) -> None:
        """Another process, with another name."""
        said = self.folder / f"said-{len(self.began)}"
        variables = {
            **environment(self.stage),
            **self.provider.environ,
            "DATABASE_OWNER_URL": self.database.owner_url,
        }
        dies = (point, self.folder) if point else ()
        options = ("--host", "127.0.0.1") if command == "web" else ("--lease", "1")
        made = children.start(self.forks, (command, *options), variables, said, *dies)
        self.began.append(made)
        if command != "worker":
            await made.listens()
            self.stage.sandbox.connect(made.url)

    async def take_over(self, gone: children.Child) -> None:
        """Another process begins in the place of one that is gone, or asleep.

        A lease of the agent's work is over in a second. Where nobody else is at work, that of a card is, too.
        """
        if len(self.kind.commands) == 1:
            self.shift(LEASES_OVER)
        await self.start(gone.command)
        self.replaced.set()
        self.replaced = asyncio.Event()

    async def heal(self) -> None:
        """Where others went on working, wait until they are done; then the leases of cards are over, too."""
        if len(self.kind.commands) == 1:
            return
        await until(self._is_idle, "the work did not come to rest")
        for _ in range(_LOOKS):
            if await self._is_shown():
                return
            await asyncio.sleep(0.1)
        self.shift(LEASES_OVER)

    async def _is_idle(self) -> bool:
        return not await self.stage.db.query(_WORK)

    async def _is_shown(self) -> bool:
        return not await self.stage.db.query(_UNSHOWN)

    def shift(self, seconds: float) -> None:
        """Let the database's clock go on by so much."""
        self.ahead += seconds
        shift_clock(self.database, f"{self.ahead} seconds")

    # --- what people do ---

    async def ask(self) -> None:
        """Leo asks for the refunds."""
        self.asked = await self.stage.ask()

    async def card(self, payments: int) -> Message:
        """The card that asks for so many, once it can be pressed."""
        words = f"Refund {payments} payments"

        def find() -> Message | None:
            marta = self.stage.marta
            shown = (m for m in self.stage.cards if "Approve" in marta.buttons(m))
            return next((m for m in shown if words in marta.read(m)), None)

        return await until(find, f"a card with {words!r}")

    async def approval(self) -> Approval:
        """The one that was asked for first, as it is now."""
        assert self.first is not None
        found = await approvals.read(self.stage.db, self.first.id)
        assert found is not None
        return found

    async def is_decided(self) -> bool:
        """Whether somebody's or nobody's say counts."""
        return (await self.approval()).status is not ApprovalStatus.PENDING

    async def decide(self) -> None:
        """Do it once, as a person who is answered at once."""
        marta = self.stage.marta
        match self.decision:
            case Decision.EXPIRE:
                self.shift(2 * 3600 + 60)
            case Decision.EDIT:
                await self._edit()
            case Decision.REJECT:
                await self._open("Reject")
                await marta.fill({"Reason": "Not this month"}).submit()
            case Decision.APPROVE | Decision.MOVED:
                await self.press_approve()

    async def press_approve(self) -> None:
        """Marta approves what was found first."""
        await self.stage.marta.click(await self.card(FOUND), "Approve")

    async def _edit(self) -> None:
        marta, approval = self.stage.marta, await self.approval()
        await self._open("Edit")
        some = approval.shown.input["payment_ids"][:LEFT]
        await marta.fill({"Payments": "\n".join(some)}).submit()
        await until(lambda: self._reads(f"Refund {LEFT} payments"), "the preview of the edit")
        await marta.submit()

    async def _open(self, button: str) -> None:
        """Marta opens a form; on a slow machine Slack may have given up hers, and she presses again."""
        for _ in range(_PRESSES):
            await self.leave()
            await self.stage.marta.click(await self.card(FOUND), button)
            with suppress(AssertionError):
                await until(lambda: self._reads("38 payments"), f"the form of {button}", FORM_SECONDS)
                return
        raise AssertionError(f"pressed {button} {_PRESSES} times, and no form came")

    async def decide_until_it_counts(self) -> None:
        """Whoever was not answered looks, and does it again."""
        while not await self.is_decided():
            await self.leave()
            with suppress(LookupError):  # the card was decided meanwhile
                await self.decide()
            if self.decision is Decision.EXPIRE:
                await until(self.is_decided, "the expiry")
        await self.leave()

    async def leave(self) -> None:
        """Close what is open."""
        if self.stage.marta.views:
            await self.stage.marta.close(all=True)

    def _reads(self, words: str) -> bool:
        marta = self.stage.marta
        return bool(marta.views) and words in marta.read(marta.view)

    async def move_the_world(self) -> None:
        """Three more payments fail."""
        await fail_three_overnight(self.database.owner_url)
        await self.provider.charge(self.database.owner_url)

    async def try_again(self) -> None:
        """Marta lets be tried again what nobody knows."""
        marta = self.stage.marta

        def find() -> Message | None:
            return next((m for m in self.stage.cards if "Try again" in marta.buttons(m)), None)

        await marta.click(await until(find, "a card with 'Try again'"), "Try again")
        self.tries += 1


@asynccontextmanager
async def scene(
    database: databases.Database,
    forks: ForkServerContext,
    folder: Path,
    decision: Decision,
    kind: Kind,
    truth: Expectation,
    *,
    escalates: bool = False,
) -> AsyncIterator[Scene]:
    """Everything but the process; all that was begun is killed at the end."""
    policy = {'expires_after = "2h"': 'expires_after = "2h"\nescalate_after = "30m"'} if escalates else {}
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        stage = await stack.enter_async_context(
            staged(
                database,
                patch,
                script_of(decision, truth),
                tools=kind.tools,
                processes=0,
                policy=changed_policy(folder, policy),
                refunds=kind.refunds,
            )
        )
        provider = await stack.enter_async_context(kind.provider(stage))
        await provider.charge(database.owner_url)
        made = Scene(stage, provider, database, forks, folder, decision, kind)
        try:
            yield made
        finally:
            for child in made.began:
                await child.kill()
