"""Which database a command works on: the one DATABASE_URL names, or the embedded one where it may."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.settings import Settings, SettingsError
from store import embedded
from store.engine import Database, migrate
from store.errors import DatabaseUnavailable, NoRight, NotMigrated, Unconfirmed

NONE_YET = (
    "There is no database yet: set DATABASE_URL (a running `vistobueno demo` prints its own), or run "
    "`vistobueno dev` once to make the embedded one."
)
NOT_READY = (
    "The embedded database was not made yet, or by another version: run `vistobueno dev` once, which brings "
    "it to this one, or set DATABASE_URL (a running `vistobueno demo` prints its own)."
)

ANOTHER_DATABASE = (
    "DATABASE_OWNER_URL and DATABASE_URL name different databases: the first is ready now, the second was "
    "left as it is; let both name the same one."
)
UNSEEN = (
    "DATABASE_OWNER_URL's database is migrated; whether DATABASE_URL names the same one could not be seen "
    "({error}): `vistobueno doctor` says when it can be used."
)


@dataclass(frozen=True)
class Urls:
    """A database for the app, and for its owner, who may migrate it."""

    app: str = field(repr=False)
    owner: str = field(repr=False)


@asynccontextmanager
async def own_or_named(settings: Settings) -> AsyncIterator[Urls]:
    """The named database, else the embedded one, started (and made) if need be; migrated."""
    async with _named(settings) if settings.database_url else _embedded() as urls:
        await (migrate_named(settings) if settings.database_url else migrate(urls.owner))
        yield urls


async def migrate_named(settings: Settings) -> str | None:
    """Migrate the named database, as its owner if that is named too; returns what could not be checked.

    Raises what `migrate` does, and SettingsError if the owner's is another database than the app's.
    """
    if settings.database_owner_url is None:
        await migrate(settings.require_database("vistobueno migrate"))
        return None
    await migrate(settings.database_owner_url, named_by="DATABASE_OWNER_URL")
    if settings.database_url is None:
        return None
    return await _check_same(settings.database_url, settings.database_owner_url)


async def _check_same(url: str, owner_url: str) -> str | None:
    """Raise SettingsError if these are two databases; returns a sentence where that cannot be seen.

    That the app's user may use it is not for here: often it gets its rights after the first migration.
    """
    found = []
    for each in (url, owner_url):
        db = Database.open(each)
        try:
            found.append(await db.identity())
        except (DatabaseUnavailable, NoRight, Unconfirmed) as error:
            return UNSEEN.format(error=str(error).rstrip("."))
        finally:
            await db.close()
    if found[0] != found[1]:
        raise SettingsError("DATABASE_URL", ANOTHER_DATABASE)
    return None


@asynccontextmanager
async def existing(settings: Settings) -> AsyncIterator[Database]:
    """The named database, or the embedded one if it was made before; its tables are those of this version.

    Raises SettingsError when there is neither.
    """
    if settings.database_url is None and not embedded.exists():
        raise SettingsError("DATABASE_URL", NONE_YET)
    async with _named(settings) if settings.database_url else _embedded() as urls:
        db = Database.open(urls.app)
        try:
            await _check(db, settings)
            yield db
        finally:
            await db.close()


@asynccontextmanager
async def reachable(settings: Settings) -> AsyncIterator[Database | None]:
    """The named database, or the embedded one if it runs (else None); nothing is started, or asked yet.

    Raises SettingsError when there is neither.
    """
    if settings.database_url is None and not embedded.exists():
        raise SettingsError("DATABASE_URL", NONE_YET)
    async with _named(settings) if settings.database_url else _joined() as urls:
        db = None if urls is None else Database.open(urls.app)
        try:
            yield db
        finally:
            if db is not None:
                await db.close()


async def _check(db: Database, settings: Settings) -> None:
    try:
        await db.check()
    except NotMigrated as error:
        if settings.database_url is not None:
            raise
        # `migrate` is for a named database; these two bring the embedded one to their version
        raise SettingsError("DATABASE_URL", NOT_READY) from error


def say_waiting() -> None:
    """Tell on the terminal why nothing happens for a while."""
    print(
        "Waiting for another vistobueno of yours, which is starting or stopping the database …",
        file=sys.stderr,
        flush=True,
    )


@asynccontextmanager
async def _named(settings: Settings) -> AsyncIterator[Urls]:
    url = settings.database_url or ""
    yield Urls(app=url, owner=settings.database_owner_url or url)


@asynccontextmanager
async def _embedded() -> AsyncIterator[Urls]:
    server = await embedded.start(waits=say_waiting)
    try:
        yield Urls(app=server.url, owner=server.owner_url)
    finally:
        await embedded.stop(server)


@asynccontextmanager
async def _joined() -> AsyncIterator[Urls | None]:
    server = await embedded.join()
    try:
        yield None if server is None else Urls(app=server.url, owner=server.owner_url)
    finally:
        if server is not None:
            await embedded.stop(server)
