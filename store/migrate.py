"""Runs the Alembic migrations from inside the package, one process at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from store.embedded import default_folder
from store.errors import NotMigrated, refuse_encoding, refuse_old_server
from store.session import ENCODING, PLACE

if TYPE_CHECKING:  # loaded when there is something to migrate: it takes as long as starting a server
    from alembic.config import Config

FOLDER = Path(__file__).parent / "migrations"
HEAD = "0003"
OLDEST = "0003"  # that can be brought to HEAD
_ALEMBIC = Lock()  # it keeps what it works on in globals of its own
_LOCK = 7_303_014_001  # an advisory lock: migrations of one database wait for each other


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's settings, without an ini file; `connection` is the one it runs on."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def wrong_version(found: str | None) -> NotMigrated:
    """The error for a database at another version than HEAD; None: it has no tables yet."""
    # versions are four digits, counted up
    if found is not None and found > HEAD:
        way = "install a newer one"
    elif found is not None and found < OLDEST:
        way = (
            "it is from before the first release; use an empty one"
            f" (the embedded one's folder may be removed: {default_folder()})"
        )
    else:
        way = "run `vistobueno migrate`"
    return NotMigrated(
        f"The database is at version {found or 'none'} and this vistobueno needs {HEAD}: {way}."
    )


def upgrade(url: URL, network: Mapping[str, Any]) -> None:
    """Migrate to the newest version; raises NotMigrated for a database that is past it, or too old.

    `network` is for libpq, about connections over one.
    """
    how = {"connect_timeout": 10, "client_encoding": ENCODING, **network}
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args=how)
    with _ALEMBIC, engine.connect() as connection, engine.connect() as holder:
        major = connection.execute(sa.text("SELECT current_setting('server_version_num')::int / 10000"))
        refuse_old_server(int(major.scalar_one()))
        refuse_encoding(connection.execute(sa.text("SHOW server_encoding")).scalar_one())
        connection.execute(sa.text(PLACE))
        connection.commit()
        # held until its connection is closed, whatever became of the migration's
        holder.execute(sa.text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        found = _version(connection)
        if found is not None and not OLDEST <= found <= HEAD:
            raise wrong_version(found)
        connection.commit()
        if found != HEAD:
            _upgrade(connection)


def _version(connection: sa.Connection) -> str | None:
    """What Alembic has noted; None for a database that it has not seen."""
    if connection.execute(sa.text("SELECT to_regclass('alembic_version')")).scalar_one() is None:
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command

    command.upgrade(config(connection), "head")
    connection.commit()
