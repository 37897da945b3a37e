"""Who dies when: web, worker and database, at random moments, by SIGKILL; and what else goes wrong."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import psycopg

from agent.tools.shop.provider import Fault
from tests.soak.place import Place

CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""


@dataclass
class Chaos:
    """Does harm until it is enough; `done` counts it."""

    place: Place
    chance: random.Random
    pause: tuple[float, float]
    """The shortest and the longest time between two deeds, in seconds."""
    done: Counter[str] = field(default_factory=Counter)
    _frozen: set[asyncio.Task[bool]] = field(default_factory=set)

    async def rage(self, enough: asyncio.Event) -> None:
        """One deed after the other, each to its end: what was killed has been started again by then."""
        deeds: dict[str, Callable[[], Awaitable[bool]]] = {
            "a web process killed": self._kill_web,
            "a worker killed": self._kill_worker,
            "the database killed": self._kill_database,
            "all connections cut": self._cut,
            "a worker asleep beyond its lease": self._freeze,
            "a refund's answer lost": self._lose_answer,
        }
        weights = (5, 6, 4, 2, 1, 2)
        while not await _happens(enough, self.chance.uniform(*self.pause)):
            [name] = self.chance.choices(list(deeds), weights)
            self.done[name] += await deeds[name]()

    async def end(self) -> None:
        """Let what sleeps wake up."""
        for task in self._frozen:
            task.cancel()
        await asyncio.gather(*self._frozen, return_exceptions=True)

    async def _kill_web(self) -> bool:
        return self.chance.choice(self.place.webs).kill()

    async def _kill_worker(self) -> bool:
        return self.chance.choice(self.place.workers).kill()

    async def _kill_database(self) -> bool:
        await self.place.server.kill()
        await asyncio.sleep(self.chance.uniform(0.0, 2.0))
        await self.place.server.start()
        return True

    async def _cut(self) -> bool:
        def cut() -> None:
            with psycopg.connect(self.place.server.admin_url, autocommit=True) as connection:
                connection.execute(CUT)

        await asyncio.to_thread(cut)
        return True

    async def _freeze(self) -> bool:
        worker = self.chance.choice(self.place.workers)
        task = asyncio.create_task(worker.freeze(self.place.lease + self.chance.uniform(0.5, 4.0)))
        self._frozen.add(task)
        task.add_done_callback(self._frozen.discard)
        return True

    async def _lose_answer(self) -> bool:
        self.place.provider.plan(Fault.LOST_ANSWER)
        return True


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether it happens within so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
