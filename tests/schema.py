"""The SQL of today's tables, functions and triggers, to compare a migrated database with."""

import sqlalchemy as sa

from store import ddl
from store.tables import metadata


def statements() -> list[str]:
    """Every statement that makes the schema, in order."""
    made: list[str] = [ddl.CLOCK]
    engine = sa.create_mock_engine(
        "postgresql+psycopg://",
        lambda sql, *_, **__: made.append(str(sql.compile(dialect=engine.dialect)).strip()),
    )
    metadata.create_all(engine, checkfirst=False)
    return [*made, *ddl.FUNCTIONS[1:], *ddl.triggers()]
