"""Runs the Alembic migrations from inside the package, one process at a time."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import URL

from store.errors import refuse_old_server

FOLDER = Path(__file__).parent / "migrations"
HEAD = "0001"
_LOCK = 7_303_014_001  # an advisory lock: migrations of one database wait for each other


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's settings, without an ini file; `connection` is the one it runs on."""
    settings = Config()
    settings.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def upgrade(url: URL) -> None:
    """Migrate to the newest version."""
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args={"connect_timeout": 10})
    with engine.connect() as connection:
        major = connection.execute(sa.text("SELECT current_setting('server_version_num')::int / 10000"))
        refuse_old_server(int(major.scalar_one()))
        connection.commit()
        connection.execute(sa.text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        connection.commit()
        try:
            command.upgrade(config(connection), "head")
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(sa.text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
            connection.commit()
