"""What can go wrong in the store, and where a driver's error becomes one of these.

StoreError
├── DatabaseUnavailable   nothing was sent: no connection could be had
├── StatementRefused      the server said no (a timeout of the statement included): nothing is recorded
│   ├── NoRight           the role that the app works as may not do this
│   ├── ForbiddenMove     a status change that `store.transitions` does not have
│   └── ItemsHeld         another call holds one of the items
├── Unconfirmed           sent and not answered: nobody knows whether it is recorded
├── NotMigrated           the tables are not those of this version
│   └── WrittenByNewer    a row of them is not
└── UnfitServer           PostgreSQL before 14, or a database that does not hold all characters
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg

from store.session import ENCODING


class StoreError(Exception):
    """Base of all: `str(error)` is one sentence without secrets."""


class DatabaseUnavailable(StoreError):
    """Nothing was sent: no connection could be had."""


class StatementRefused(StoreError):
    """The server refused the statement: nothing of it is recorded. `sqlstate` says why."""

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        self.sqlstate = sqlstate
        super().__init__(message)


class NoRight(StatementRefused):
    """The role that the app works as may not do this."""


class ForbiddenMove(StatementRefused):
    """A status change that `store.transitions` does not have."""


class ItemsHeld(StatementRefused):
    """Another call holds one of the items that this one would act on."""


class Unconfirmed(StoreError):
    """The statement was sent and not answered: nobody knows whether it is recorded."""


@contextmanager
def after_commit() -> Iterator[None]:
    """Around what is read once something is recorded: if that fails, nobody may hear that nothing was.

    Raises Unconfirmed in the place of every other StoreError.
    """
    try:
        yield
    except StoreError as error:
        raise Unconfirmed(str(error)) from error


class NotMigrated(StoreError):
    """The tables are not those of this version."""


class WrittenByNewer(NotMigrated):
    """A row holds what only another version can read; there may be others that this one can."""


class UnfitServer(StoreError):
    """PostgreSQL before 14, or a database that does not hold all characters."""


ANOTHER_USER = "connect as vistobueno_app, as a user that may take that role, or as the owner of the tables."
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]*@")


def without_secrets(text: str) -> str:
    """The first line of a driver's message, with any password in a URL taken out."""
    line = text.strip().splitlines()[0] if text.strip() else "no reason given"
    return _PASSWORD.sub(r"\1:***@", line)


def refused(error: psycopg.Error) -> StoreError:
    """The store's error for a driver's error on a statement that was sent."""
    state = error.sqlstate
    text = without_secrets(str(error))
    if isinstance(error, pg.InsufficientPrivilege):
        return NoRight(f"The database's user may not do this ({text}): {ANOTHER_USER}", state)
    if state == "VB001":
        return ForbiddenMove(text, state)
    if isinstance(error, pg.UniqueViolation) and error.diag.table_name == "held_items":
        return ItemsHeld(text, state)
    if isinstance(error, pg.UndefinedTable | pg.UndefinedFunction | pg.UndefinedColumn | pg.UndefinedObject):
        return NotMigrated(f"The database lacks what this version needs ({text}): run `vistobueno migrate`.")
    if isinstance(error, pg.DiskFull):
        return StatementRefused(f"The database has no space left ({text}): free some on its disk.", state)
    # 08 connection, 57P shutdown, crash, idle for too long: the answer may have been lost on the way
    lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and state is None
    if lost or (state or "").startswith(("08", "57P")):
        return Unconfirmed(f"The database did not answer: {text}")
    return StatementRefused(f"The database refused a statement ({state}): {text}", state)


@contextmanager
def translated() -> Iterator[None]:
    """Turn a driver's error in the block into the store's."""
    try:
        yield
    except psycopg.Error as error:
        raise refused(error) from error


OLDEST_SERVER = 14


def refuse_old_server(major: int) -> None:
    """Raise UnfitServer for a PostgreSQL that this version does not support."""
    if major < OLDEST_SERVER:
        raise UnfitServer(
            f"The server is PostgreSQL {major}, and vistobueno needs {OLDEST_SERVER} or newer: upgrade it."
        )


def refuse_encoding(encoding: str) -> None:
    """Raise UnfitServer for a database that does not hold all characters."""
    if encoding != ENCODING:
        raise UnfitServer(
            f"The database's encoding is {encoding}, and vistobueno needs {ENCODING}: create another with "
            f"`createdb --encoding {ENCODING} --template template0 NAME`."
        )
