"""Runs the Alembic migrations from inside the package, one process at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
HEAD = "0004"
OLDEST = "0004"  # that can be brought to HEAD
NOTED = """to_regclass('alembic_version') IS NOT NULL AS there,
  to_regclass('alembic_version') IS NOT NULL AND to_regclass('audit_heads') IS NULL AS of_others"""
_OURS = re.compile("[0-9]{4}")  # counted up
_ALEMBIC = Lock()  # it keeps what it works on in globals of its own
_LOCK = 7_303_014_001  # an advisory lock: migrations of one database wait for each other


def config(connection: sa.Connection | None = None) -> Config:
    """Alembic's settings, without an ini file; `connection` is the one it runs on."""
    from alembic.config import Config

    settings = Config()
    settings.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def of_another_application() -> NotMigrated:
    """The error for a database in which Alembic notes the migrations of others."""
    return NotMigrated(
        "The database belongs to another application, whose migrations its table alembic_version has: give "
        "vistobueno a database of its own."
    )


def wrong_version(versions: Sequence[str]) -> NotMigrated:
    """The error for a database at other versions than HEAD; none: it has no tables yet."""
    if not all(map(_OURS.fullmatch, versions)):
        return of_another_application()
    found = versions[0] if versions else None
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
    """Migrate to the newest version; `network` is for libpq, about connections over one.

    Raises NotMigrated for a database that is past it, too old, or another application's.
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
        versions = _versions(connection)
        if versions and not (len(versions) == 1 and OLDEST <= versions[0] <= HEAD):
            raise wrong_version(versions)
        connection.commit()
        if versions != [HEAD]:
            _upgrade(connection)


def _versions(connection: sa.Connection) -> list[str]:
    """What Alembic has noted; nothing in a database that it has not seen."""
    there, of_others = connection.execute(sa.text(f"SELECT {NOTED}")).one()
    if of_others:
        raise of_another_application()
    if not there:
        return []
    return list(connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars())


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command

    command.upgrade(config(connection), "head")
    connection.commit()
