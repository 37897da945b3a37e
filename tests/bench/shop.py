"""What the tool changes: one row for each key, on a connection that stays open, as a tool's client would."""

from datetime import UTC, datetime

import psycopg

EFFECT = "INSERT INTO bench.effects (key) VALUES (%s) ON CONFLICT DO NOTHING"
BEGUN = "INSERT INTO bench.begun (key, at) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class Shop:
    """`notes_begin`: the moment at which the tool was called is stored as well."""

    def __init__(self, url: str, *, notes_begin: bool = False) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._notes_begin = notes_begin

    def refund(self, key: str) -> None:
        """Refund once for each key; committed on return."""
        if self._notes_begin:
            self.connection.execute(BEGUN, (key, datetime.now(UTC)))
        self.connection.execute(EFFECT, (key,))

    def close(self) -> None:
        """Give the connection back."""
        self.connection.close()
