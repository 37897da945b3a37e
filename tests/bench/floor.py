"""The least an approval that survives a restart can be: four statements by hand, each committed by itself."""

from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from tests.bench.shop import EFFECT
from tests.bench.texts import texts

PAUSE = "INSERT INTO bench.approvals (id, status, state) VALUES (%s, 'pending', %s)"
DECIDE = """UPDATE bench.approvals SET status = 'approved', decided_by = %s
 WHERE id = %s AND status = 'pending' RETURNING id, state"""
END = "UPDATE bench.approvals SET status = 'completed' WHERE id = %s AND status = 'approved'"


class Floor:
    """Two connections in psycopg's pool, one approval after the other."""

    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool(url, min_size=2, max_size=2, open=True, kwargs={"autocommit": True})
        self._pool.wait()
        self._texts = texts()

    def one(self) -> None:
        """Pause with the conversation, decide once, do it once, end."""
        key = uuid4().hex
        state = Jsonb({"messages": self._texts, "call": {"tool": "refund", "order": "A-1"}})
        with self._pool.connection() as connection:
            connection.execute(PAUSE, (key, state))
        with self._pool.connection() as connection:
            assert connection.execute(DECIDE, ("U0MARTA", key)).fetchone() is not None
        with self._pool.connection() as connection:
            connection.execute(EFFECT, (key,))
        with self._pool.connection() as connection:
            connection.execute(END, (key,))

    def connections(self) -> list[psycopg.Connection[Any]]:
        """Those of the pool, all at rest."""
        with ExitStack() as taken:
            return [taken.enter_context(self._pool.connection()) for _ in range(self._pool.max_size)]

    def close(self) -> None:
        """Give the connections back."""
        self._pool.close()
