"""Whether the database can be used: it answers, is new enough, migrated, on time, and guards the record."""

import time

from bot.databases import NOT_READY, reachable
from bot.doctor.clocks import Asked, compare
from bot.doctor.finding import Finding, failed, ok, skip, warning
from bot.settings import Settings, SettingsError
from store.ddl import APP_ROLE
from store.embedded import EmbeddedError
from store.engine import Database
from store.errors import DatabaseUnavailable, NoRight, NotMigrated, StoreError, UnfitServer

CHECKS = ("database", "server", "migrations", "record", "database clock")
"""https://www.postgresql.org/docs/current/errcodes-appendix.html"""
SET_CLOCK = (
    "Set the clock of this machine, or of the database's server, with NTP for example: "
    "deadlines and leases follow the database's."
)


async def check_database(settings: Settings) -> list[Finding]:
    """The five checks of the database; one that does not run is not started."""
    try:
        async with reachable(settings) as db:
            if db is None:
                return _not_running()
            return await _look(db, named=settings.database_url is not None)
    except (SettingsError, EmbeddedError, StoreError) as error:
        why = "the database cannot be used"
        return [failed(CHECKS[0], why, _advice(error)), *skip(CHECKS[1:], why)]


def _not_running() -> list[Finding]:
    why = "the embedded database is not running"
    do = "Run this again while `vistobueno dev` runs, which starts it."
    return [warning(CHECKS[0], why, do), *skip(CHECKS[1:], why)]


def _advice(error: Exception) -> str:
    if isinstance(error, NoRight):
        return str(error)
    if isinstance(error, StoreError) and not isinstance(error, DatabaseUnavailable):
        return f"{str(error).rstrip('.')}. The server's log may say more."
    return str(error)


async def _look(db: Database, *, named: bool) -> list[Finding]:
    version = await db.server_version()
    found = [
        ok("database", "the one that DATABASE_URL names answers" if named else "the embedded one answers")
    ]
    try:
        await db.check()
    except UnfitServer as error:
        found += [failed("server", f"it is PostgreSQL {version}, which cannot be used as it is", str(error))]
    except NotMigrated as error:
        do = str(error) if named else NOT_READY
        found += [_server(version), failed("migrations", "the tables are not those of this version", do)]
    else:
        found += [_server(version), ok("migrations", "the tables are those of this version")]
        return [*found, await _record(db), await _clock(db)]
    return [*found, *skip(CHECKS[len(found) :], f"the {found[-1].check} check failed")]


def _server(version: str) -> Finding:
    return ok("server", f"PostgreSQL {version}")


async def _record(db: Database) -> Finding:
    role = await db.role()
    if role == APP_ROLE:
        return ok("record", f"protected from the role {role} by its rights, and by its trigger")
    return warning(
        "record",
        f"only its trigger protects it, for the app works as {role}",
        f"Connect as {APP_ROLE}, or as a user that may take that role (GRANT {APP_ROLE} TO …).",
    )


async def _clock(db: Database) -> Finding:
    await db.now()  # the connection is open from here on
    began = time.time()
    told = await db.now()
    ahead = Asked(began, time.time()).ahead_of(told.timestamp())
    return compare("database clock", "the database's", ahead, SET_CLOCK)
