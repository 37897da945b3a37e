"""The least an approval that survives a restart can be: four statements by hand, each committed by itself."""

from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.bench.shop import EFFECT
from tests.bench.texts import texts

PAUSE = "INSERT INTO bench.approvals (id, status, state) VALUES (%s, 'pending', %s)"
DECIDE = """UPDATE bench.approvals SET status = 'approved', decided_by = %s
 WHERE id = %s AND status = 'pending' RETURNING id, state"""
END = "UPDATE bench.approvals SET status = 'completed' WHERE id = %s AND status = 'approved'"


class Floor:
    """One connection, one approval after the other."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._texts = texts()

    def one(self) -> None:
        """Pause with the conversation, decide once, do it once, end."""
        key = uuid4().hex
        state = Jsonb({"messages": self._texts, "call": {"tool": "refund", "order": "A-1"}})
        self.connection.execute(PAUSE, (key, state))
        assert self.connection.execute(DECIDE, ("U0MARTA", key)).fetchone() is not None
        self.connection.execute(EFFECT, (key,))
        self.connection.execute(END, (key,))

    def close(self) -> None:
        """Give the connection back."""
        self.connection.close()
