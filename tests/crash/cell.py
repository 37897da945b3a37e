"""One cell of the matrix: the process dies at the point, another takes over, and the end is looked at."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import psycopg

from agent.scripted import Asked, Expectation
from store.transitions import ApprovalStatus
from tests.crash import children, dying
from tests.crash.kinds import Kind
from tests.crash.points import Decision, Phase, Point, Way
from tests.crash.scene import DAY, FOUND, LATER, LEFT, TRUTHS, Scene, until
from tests.crash.truth import Expected, look


def expected(point: Point, decision: Decision, kind: Kind) -> Expected:
    """What the end must be, whatever died."""
    lost = point.attempted and not kind.repeatable
    match decision:
        case Decision.REJECT:
            return Expected(ApprovalStatus.REJECTED, 0, 0)
        case Decision.EXPIRE:
            return Expected(ApprovalStatus.EXPIRED, 0, 0)
        case Decision.MOVED:
            return Expected(ApprovalStatus.SUPERSEDED, LATER, 1)
        case Decision.APPROVE | Decision.EDIT:
            items = LEFT if decision is Decision.EDIT else FOUND
            done = Expected(ApprovalStatus.EXECUTED, items, 2 if point.attempted else 1)
            if not lost:
                return done
            return Expected(
                ApprovalStatus.UNKNOWN,
                _effects(point, items),
                attempts=1,
                tried_again=done if kind.finds_refunds else None,
            )


def _effects(point: Point, items: int) -> int:
    """How many refunds a process made that nobody heard of."""
    return {"started": 0, "started-asleep": 0, "halfway": 1}.get(point.name, items)


def truth_of(wanted: Expected) -> Expectation:
    """What the model must have been told before it speaks its last words."""
    last = (wanted.tried_again or wanted).status
    status = ApprovalStatus.EXECUTED if last is ApprovalStatus.SUPERSEDED else last

    def told(asked: Asked) -> str | None:
        results = asked.results
        return None if len(results) == 1 and TRUTHS[status](results[0]) else f"the result of {status}"

    return told


async def play(scene: Scene, point: Point, wanted: Expected) -> None:
    """From the question to the end, with a death at the point; AssertionError says what is wrong."""
    await scene.begin(point)
    death = Death(scene, point)
    await death.during(Phase.ASKING, scene.ask)
    await scene.card(FOUND)
    scene.first = await scene.stage.approval()
    await death.during(Phase.ESCALATING, lambda: _escalate(scene, point))
    if scene.decision is Decision.MOVED:
        await scene.move_the_world()
    late = point.way is Way.OVERSLEPT
    await death.during(Phase.DECIDING, scene.press_approve if late else scene.decide)
    await scene.decide_until_it_counts()
    if scene.decision is Decision.MOVED:
        await scene.stage.marta.click(await scene.card(LATER), "Approve")
    await _end(scene, wanted)


async def _escalate(scene: Scene, point: Point) -> None:
    if point.phase is Phase.ESCALATING:
        scene.shift(30 * 60 + 60)


async def _end(scene: Scene, wanted: Expected) -> None:
    """Wait for the end of the run; what nobody knows is tried again by a person, or closed after a day."""
    await until(lambda: _has(scene, wanted.status), f"an approval that is {wanted.status}")
    if wanted.status is ApprovalStatus.UNKNOWN:
        await look(scene, wanted, ended=False)
        if wanted.tried_again is not None:
            await scene.try_again()
            await _end(scene, wanted.tried_again)
            return
        scene.shift(DAY)
    await look(scene, wanted, ended=True)


async def _has(scene: Scene, status: ApprovalStatus) -> bool:
    return (await scene.approval()).status is status


class Death:
    """How the first process ends at its point, and the next one takes over."""

    def __init__(self, scene: Scene, point: Point) -> None:
        self._scene, self._point = scene, point
        self._gone: children.Child | None = None

    @property
    def _first(self) -> children.Child:
        """The process that came to the point."""
        assert self._gone is not None, "it was not reached"
        return self._gone

    async def during(self, phase: Phase, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it; if this is the point's phase, the process dies meanwhile."""
        if phase is not self._point.phase:
            await act()
            return
        (self._scene.folder / dying.ARMED).touch()
        acting = asyncio.create_task(act())
        try:
            await self._reached(acting)
            await self._take_over()
        finally:
            acting.cancel()  # who was not answered by now will not be
            with suppress(asyncio.CancelledError):
                await acting
        assert self._first.code == -signal.SIGKILL, f"not killed, but ended with {self._first.code}"

    async def _reached(self, acting: "asyncio.Task[None]") -> None:
        """Wait until the process says that it is at the point."""
        reached = self._scene.folder / dying.REACHED

        def is_there() -> bool:
            if acting.done() and not acting.cancelled() and acting.exception() is not None:
                acting.result()
            return reached.exists() and reached.read_text() != ""

        await until(is_there, f"the point was not reached: {self._point.words}")
        pid = int(reached.read_text())
        self._gone = next(child for child in self._scene.began if child.pid == pid)

    async def _take_over(self) -> None:
        scene = self._scene
        match self._point.way:
            case Way.KILLED:
                await self._first.ended()
                await scene.take_over(self._first)
            case Way.UNANSWERED:
                await self._kill_unanswered()
                await scene.take_over(self._first)
            case Way.ASLEEP:
                await self._wake_beside_another()
            case Way.LATE:
                await self._wake_late()
            case Way.OVERSLEPT:
                await self._wake_after_the_deadline()
                await scene.take_over(self._first)
        await scene.heal()

    async def _kill_unanswered(self) -> None:
        """Hold the approval's row, so that the statement is with the server when the process dies."""
        row = (await self._scene.stage.approval()).id
        connection = await psycopg.AsyncConnection.connect(self._scene.database.admin_url)
        async with connection:
            await connection.execute("SELECT FROM approvals WHERE id = %s FOR UPDATE", [row])
            self._first.wake()
            await until(lambda: self._waits(connection), "no statement came to the held row")
            await self._first.kill()
            await connection.rollback()
            await until(lambda: self._is_over(connection), "the statement did not end")

    async def _waits(self, connection: psycopg.AsyncConnection[Any]) -> bool:
        return await _count(connection, "wait_event_type = 'Lock'") > 0

    async def _is_over(self, connection: psycopg.AsyncConnection[Any]) -> bool:
        return await _count(connection, "state = 'active'") == 0

    async def _wake_beside_another(self) -> None:
        """It wakes while another process is inside the tool, and must not act."""
        scene = self._scene
        scene.provider.hold()
        await scene.take_over(self._first)
        await until(scene.provider.holding.is_set, "nobody took the work over")
        await self._wake_and_kill()
        scene.provider.release()

    async def _wake_late(self) -> None:
        """It wakes when another process has done the work or called it unknown."""
        scene = self._scene
        await scene.take_over(self._first)
        ended = {ApprovalStatus.EXECUTED, ApprovalStatus.UNKNOWN}
        await until(lambda: _is_one_of(scene, ended), "nobody took the work over")
        await self._wake_and_kill()

    async def _wake_after_the_deadline(self) -> None:
        """It wakes with a click in hand that has come to its deadline."""
        scene = self._scene
        scene.shift(2 * 3600 + 60)
        self._first.wake()
        await until(scene.is_decided, "the expiry")
        await self._first.kill()

    async def _wake_and_kill(self) -> None:
        self._first.wake()
        done = self._scene.folder / dying.DONE
        await until(done.exists, "the sleeper did not come to its end")
        await self._first.kill()


async def _is_one_of(scene: Scene, statuses: set[ApprovalStatus]) -> bool:
    return (await scene.approval()).status in statuses


async def _count(connection: psycopg.AsyncConnection[Any], what: str) -> int:
    """How many of the app's statements are so, by the server's own account."""
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    cursor = await connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        f" AND usename = 'vistobueno_app' AND backend_type = 'client backend' AND {what}"
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else 0
