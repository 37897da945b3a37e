"""The leases of one worker: renewed together while the work goes on."""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from store import runs
from store.engine import Database
from store.errors import StoreError

log = structlog.get_logger(__name__)

LEASE_SECONDS = 15.0


@dataclass
class Leases:
    """What this worker holds. `seconds` is how long a lease lasts; it is renewed three times in that time."""

    db: Database
    worker: str
    seconds: float = LEASE_SECONDS
    _held: set[str] = field(default_factory=set)

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

    async def keep(self) -> None:
        """Renew what is held, until cancelled. A lost lease is found by the next guarded statement."""
        while True:
            await asyncio.sleep(self.seconds / 3)
            await self.renew()

    async def renew(self) -> None:
        """Renew once; a database that does not answer costs leases, never the worker."""
        held = tuple(self._held)
        if not held:
            return
        try:
            kept = await runs.renew(self.db, held, self.seconds)
        except StoreError as error:
            log.warning("leases not renewed", error=str(error))
            return
        for token in self._held & (set(held) - kept):
            log.warning("a lease is no longer held", token=token[:6])
            self._held.discard(token)
