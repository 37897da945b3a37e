"""The leases of one worker: renewed together while the work goes on."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from store import runs
from store.engine import Database
from store.errors import StoreError

log = structlog.get_logger(__name__)

LEASE_SECONDS = 15.0
SHORTEST_WAIT = 1.0  # for the answer to a renewal, however short the lease
# on Linux the one that goes on while the machine sleeps
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds that have passed, whether this process ran in them or not."""
    return time.clock_gettime(_CLOCK)


@dataclass
class Leases:
    """What this worker holds. `seconds` is how long a lease lasts; it is renewed three times in that time."""

    db: Database
    worker: str
    seconds: float = LEASE_SECONDS
    closing: bool = False
    """Its worker has been asked to end: what is under way is let finish, and no call is begun."""
    _held: set[str] = field(default_factory=set)
    _until: dict[str, float] = field(default_factory=dict)
    """By token: until when, by `clock()`, nobody else can have it, whatever this process slept through."""

    @staticmethod
    def new_token() -> str:
        """A token for the next claim."""
        return secrets.token_hex(12)

    @contextlib.contextmanager
    def holding(self, token: str) -> Iterator[None]:
        """Keep the lease of `token` renewed inside the block."""
        self._held.add(token)
        try:
            yield
        finally:
            self._held.discard(token)
            self._until.pop(token, None)

    def extended(self, token: str, since: float) -> None:
        """A statement that was sent at `since`, by `clock()`, has set the lease of `token` anew."""
        self._until[token] = since + self.seconds

    def is_sure(self, token: str) -> bool:
        """Whether nobody else can have the lease yet; may be asked from any thread."""
        return clock() < self._until.get(token, 0.0)

    async def keep(self) -> None:
        """Renew what is held, until cancelled. A lost lease is found by the next guarded statement."""
        pause = self.seconds / 3
        while True:
            await asyncio.sleep(pause)
            pause = self.seconds / (3 if await self.renew() else 15)

    async def renew(self) -> bool:
        """Renew once; a database that does not answer costs leases, never the worker. False: it did not.

        Its answer is waited for so short that there is time for another try, on another connection.
        """
        held = tuple(self._held)
        if not held:
            return True
        since, patience = clock(), max(SHORTEST_WAIT, self.seconds / 3)
        try:
            kept = await runs.renew(self.db.within(patience), held, self.seconds)
        except StoreError as error:
            log.warning("leases not renewed", error=str(error))
            return False
        for token in self._held & kept:
            self.extended(token, since)
        for token in self._held & (set(held) - kept):
            log.warning("a lease is no longer held", token=token[:6])
            self._held.discard(token)
            self._until.pop(token, None)
        return True
