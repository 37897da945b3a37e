"""A process's line to the database, on which it can die, be held up or be cut off at any statement."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from store.engine import Database, Params, Row
from store.errors import DatabaseUnavailable, Unconfirmed
from store.pool import Pool

T = TypeVar("T")
What = Literal["die", "hold", "cut"]


class Died(BaseException):
    """The process has ended: nothing of it goes on."""


PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Interruption:
    """What befalls a process, once: before or after its statement number `at`, or inside the tool."""

    what: What
    at: int
    after: bool = False
    in_tool: bool = False


class Line(Database):
    """Passes statements on; `broken` says which of them wrote without the claim they named.

    A held process waits in `held` until it is let go on, or is killed; a dead one sends nothing any more.
    """

    def __init__(self, url: str, pool: Pool, name: str) -> None:
        super().__init__(url, pool, PATIENCE)
        self.name = name
        self.dead = False
        self.interruption: Interruption | None = None
        self.sent = 0
        self.held = asyncio.Event()
        self.inside: str | None = None
        """The key whose tool it is held in."""
        self.broken: list[str] = []
        self.token: str | None = None
        """Of the claim that a statement named last."""
        self._go = asyncio.Event()
        self._gate = threading.Event()
        self._loop = asyncio.get_running_loop()

    def within(self, seconds: float) -> "Line":
        """See Database.within: what befalls a process befalls all of its statements."""
        return self

    def expect(self, interruption: Interruption | None) -> None:
        """Let this happen during what is begun now."""
        self.interruption, self.sent = interruption, 0

    def let_go(self) -> None:
        """Let a held process go on."""
        self.held.clear()
        self.inside = None
        self._go.set()
        self._gate.set()

    def kill(self) -> None:
        """Let it end where it is."""
        self.dead = True
        self.let_go()

    # --- statements ---

    async def query(self, sql: str, params: Params = None) -> list[Row]:
        """See Database.query."""
        return await self._pass(lambda: self._witnessed(sql, params))

    async def together(self, *statements: tuple[str, Params]) -> list[list[Row]]:
        """See Database.together."""
        send = super().together
        return await self._pass(lambda: send(*statements))

    async def _pass(self, send: Callable[[], Awaitable[T]]) -> T:
        if self.dead:
            raise Died
        due = self._due()
        if due is not None and not due.after:
            await self._befall(due, DatabaseUnavailable("cut off"))
        answer = await send()
        if due is not None and due.after:
            await self._befall(due, Unconfirmed("cut off"))
        return answer

    def _due(self) -> Interruption | None:
        due, number = self.interruption, self.sent
        self.sent += 1
        if due is None or due.in_tool or due.at != number:
            return None
        self.interruption = None
        return due

    async def _befall(self, due: Interruption, error: Exception) -> None:
        if due.what == "cut":
            raise error
        if due.what == "hold":
            self._go.clear()
            self.held.set()
            await self._go.wait()
        else:
            self.dead = True
        if self.dead:
            raise Died

    async def _witnessed(self, sql: str, params: Params) -> list[Row]:
        """Whoever names a claim's token must have that claim as the statement comes in."""
        named = params if isinstance(params, dict) and params.get("token") else {}
        table = "calls" if "call" in named else "runs" if "run" in named else None
        if table is None:
            return await super().query(sql, params)
        key = "call" if table == "calls" else "run"
        if table == "calls":
            self.token = named["token"]
        before = await super().query(f"SELECT status, token FROM {table} WHERE id = %s", [named[key]])
        answer = await super().query(sql, params)
        claims = "run_token" in named and "outcome" not in named
        if answer and not claims and before[0]["token"] != named["token"]:
            self.broken.append(f"{self.name} wrote to {named[key]} ({before[0]['status']}) without its claim")
        return answer

    # --- in the tool, whose threads are not this loop's ---

    def pass_in_tool(self, key: str, *, after: bool) -> None:
        """Called by the tool, before and after its effect."""
        due = self.interruption
        if due is None or not due.in_tool or due.after != after:
            return
        self.interruption, self.inside = None, key
        self._gate.clear()
        self._loop.call_soon_threadsafe(self._stop_in_tool, due)
        self._gate.wait()
        if self.dead:
            raise SystemExit

    def _stop_in_tool(self, due: Interruption) -> None:
        if due.what == "hold":
            self.held.set()
        else:
            self.kill()
