"""Keeps the demo's app running: one process at a time, and another one whenever somebody has it killed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum, auto

from bot.demo.child import Child
from bot.demo.errors import DemoFailed
from bot.demo.world import World


class Phase(Enum):
    """How far a restart is."""

    RUNNING = auto()
    KILLING = auto()
    STARTING = auto()


class Keeper:
    """The app and who it was before: `pid` is its process, or the last one, `killed` the one before.

    `changed` is called at every step of a restart.
    """

    def __init__(self, world: World, child: Child, changed: Callable[[], None]) -> None:
        self.phase = Phase.RUNNING
        self.killed: int | None = None
        self._world = world
        self._child = child
        self._changed = changed
        self._restarting: asyncio.Task[None] | None = None
        self._watching = asyncio.create_task(self._watch(), name="watching the app")

    @property
    def pid(self) -> int:
        return self._child.pid

    def let_speak(self) -> None:
        """Pass on what the app has said since it began, and what it says from now on."""
        self._child.let_speak()

    def restart(self) -> None:
        """Begin to kill the process and to start another; nothing if that is under way."""
        if self.phase is Phase.RUNNING:
            self._begin(Phase.KILLING)

    async def ended(self) -> None:
        """Wait until the app runs no more; raises DemoFailed: it ended by itself, or could not be started."""
        await asyncio.shield(self._watching)

    async def stop(self) -> None:
        """End the app, also one that is being started."""
        tasks = [self._watching, *([self._restarting] if self._restarting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await self._child.stop()

    async def _watch(self) -> None:
        while True:
            child = self._child
            from_outside = await child.ended()
            if self.phase is Phase.RUNNING:
                if not from_outside:
                    raise DemoFailed(f"The app {child.epitaph()}")
                print(f"Process {child.pid} was killed. Starting another one …", file=sys.stderr, flush=True)
                self.killed = child.pid
                self._begin(Phase.STARTING)
            assert self._restarting is not None
            await asyncio.shield(self._restarting)

    def _begin(self, phase: Phase) -> None:
        self._go_on(phase)
        self._restarting = asyncio.create_task(self._begin_anew(), name="restart of the app")

    async def _begin_anew(self) -> None:
        await self._child.kill()
        self.killed = self._child.pid
        self._go_on(Phase.STARTING)
        self._child = await Child.start(self._world.environ)
        self._world.sandbox.connect(self._child.url)
        self._go_on(Phase.RUNNING)

    def _go_on(self, phase: Phase) -> None:
        self.phase = phase
        self._changed()


@asynccontextmanager
async def kept_running(world: World, changed: Callable[[], None]) -> AsyncIterator[Keeper]:
    """The app, started and connected to its Slack, and silent until `let_speak`; ended afterwards."""
    child = await Child.start(world.environ, held=True)
    keeper = Keeper(world, child, changed)
    try:
        world.sandbox.connect(child.url)
        yield keeper
    finally:
        await keeper.stop()
