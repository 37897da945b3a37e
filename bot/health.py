"""Whether this process can do its work: each check with its reason, for GET /readyz."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from slack_sdk.errors import SlackApiError

from agent.usercode import UserCode
from bot.slack import UNREACHABLE, NotSlack, Slack, error_code
from bot.socket_mode import SocketMode
from bot.tasks import Tasks
from store.ddl import APP_ROLE
from store.engine import Database
from store.errors import DatabaseUnavailable, NotMigrated, StoreError, UnfitServer

TOKEN_SECONDS = 30.0  # how long a good answer of auth.test counts
ANSWER_SECONDS = 2.0  # of the database to one statement
DATABASE_SECONDS = 2.5  # until all is known of it: who asks does not wait for long


@dataclass(frozen=True)
class Check:
    """One part: fine, or why not."""

    ok: bool
    error: str | None = None
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """`{"ok": true}`, with what is to be said about it: "error" or "note"."""
        said = {"error": self.error, "note": self.note}
        return {"ok": self.ok, **{name: text for name, text in said.items() if text is not None}}


GOOD = Check(True)


class Health:
    """Asks the parts of a process how they are."""

    def __init__(
        self,
        db: Database,
        slack: Slack,
        user_code: UserCode,
        tasks: Tasks,
        socket_mode: SocketMode | None = None,
    ) -> None:
        self._db = db.within(ANSWER_SECONDS)
        self._tasks = tasks
        self._slack = slack
        self._user_code = user_code
        self._socket_mode = socket_mode
        self._token_good_until = 0.0

    async def checks(self) -> dict[str, Check]:
        """Every check by name: database, migrations, slack, user_code, and socket_mode where it is used."""
        (database, migrations), slack = await asyncio.gather(self._database(), self._slack_token())
        health = self._user_code.health()
        user_code = GOOD if health.ok else Check(False, health.reason)
        found = {"database": database, "migrations": migrations, "slack": slack, "user_code": user_code}
        return found if self._socket_mode is None else {**found, "socket_mode": _connected(self._socket_mode)}

    async def _database(self) -> tuple[Check, Check]:
        try:
            return await self._tasks.in_time(self._ask_database(), "readiness", DATABASE_SECONDS)
        except TimeoutError:
            why = f"The database did not answer within {DATABASE_SECONDS:g} s."
            return Check(False, why), Check(False, "the database did not answer")

    async def _ask_database(self) -> tuple[Check, Check]:
        try:
            await self._db.check()
            return await self._role(), GOOD
        except (NotMigrated, UnfitServer) as error:
            return GOOD, Check(False, str(error))
        except DatabaseUnavailable as error:
            return Check(False, str(error)), Check(False, "the database cannot be asked")
        except StoreError as error:
            return Check(False, str(error)), Check(False, "the database did not answer")

    async def _role(self) -> Check:
        """The record is safe either way, but from the owner only by its trigger."""
        if await self._db.role() == APP_ROLE:
            return GOOD
        return Check(True, note=f"only the trigger protects the record: connect as {APP_ROLE}")

    async def _slack_token(self) -> Check:
        if time.monotonic() < self._token_good_until:
            return GOOD
        try:
            await self._slack.quick.auth_test()
        except NotSlack as error:
            return Check(False, str(error).rstrip("."))
        except SlackApiError as error:
            return Check(False, f"Slack does not take the token: {error_code(error)}")
        except UNREACHABLE as error:
            return Check(False, f"Slack does not answer ({type(error).__name__})")
        self._token_good_until = time.monotonic() + TOKEN_SECONDS
        return GOOD


def _connected(socket_mode: SocketMode) -> Check:
    problem = socket_mode.problem
    return GOOD if problem is None else Check(False, f"Slack's requests cannot come in: {problem}")
