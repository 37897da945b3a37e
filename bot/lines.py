"""Keeps the line of each run, the first message of its answer, as its rows are, in Slack."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import structlog
from slack_sdk.errors import SlackApiError

from agent.gaps import Lack, deciders, lack
from agent.house import House
from bot.blocks.bounded import Message
from bot.blocks.line import LineContext, line
from bot.blocks.notices import NoticeKind, notice
from bot.blocks.people import deciding_roles
from bot.following import Busy, Following, Said
from bot.identity import ask_for, why_nobody
from bot.posting import Fault, Held, first_accepted, plainer
from bot.slack import UNREACHABLE, Slack
from bot.texts import Texts
from bot.wake import Wake
from store import directory, lines, runs
from store.errors import StoreError
from store.records import UPDATES, Approval, DirectoryUser, Line
from store.transitions import ApprovalStatus, RunStatus

log = structlog.get_logger(__name__)

LEASE_SECONDS = 5.0  # longer than two calls of Slack, one after the other, that are given up after 2 s
MOST_NAMED = 3


class Lines:
    """What the lines show. `following` brings them up to date by itself while runs are under way here.

    Nobody waits for that, and that the last line is true does not hang on it: the line of a run that waits or
    has ended is behind in the database until a publisher has brought it up to date. One process at a time may
    change a line, and reads the rows when it has it.
    """

    def __init__(
        self, house: House, slack: Slack, texts: Texts, *, name: str, wake: Wake, held: Held
    ) -> None:
        """`house` has the database of background work; `wake` and `held` are the publisher's."""
        self._house, self._slack, self._texts = house, slack, texts
        self._name, self._wake, self._held = name, wake, held
        self.following = Following(self.show)

    async def show(self, run_id: str, counted: Said | None = None) -> bool:
        """Bring the line up to date now; False: it is not posted yet.

        Raises Busy while another does the same, or Slack wants no updates; SlackApiError, UNREACHABLE or
        StoreError.
        """
        if held := self._held.left(UPDATES):
            raise Busy(held)
        token = uuid4().hex
        turn = await lines.take(self._house.db, run_id, token=token, worker=self._name, lease=LEASE_SECONDS)
        if turn is None or not turn.is_ours:
            if turn is None:
                return False
            raise Busy
        shown, unanswered = None, True
        try:
            shown = await self.bring_up_to_date(run_id, turn.shown, counted)
            unanswered = False
        except SlackApiError as error:
            unanswered = Fault.of(error).unanswered
            raise
        except StoreError:
            unanswered = False
            raise
        finally:
            if await lines.let_go(self._house.db, run_id, token, shown=shown, unanswered=unanswered):
                self._wake.call()
        return True

    async def bring_up_to_date(
        self, run_id: str, shown: str | None, counted: Said | None = None
    ) -> str | None:
        """Send what the rows say unless it is what is `shown`; the digest of it, None if there is no line.

        Only for who has the line. Raises SlackApiError, UNREACHABLE or StoreError.
        """
        rows = await lines.read(self._house.db, run_id)
        if rows is None:
            return None
        channel, ts = rows.conversation.channel_id, rows.ts
        said = await self._message(rows, counted or self.following.counted(run_id))

        async def update(message: Message) -> Any:
            with self._held.told(UPDATES):
                return await self._slack.quick.chat_update(channel=channel, ts=ts, **message.arguments())

        digest = _digest(said)
        if digest != shown:
            await first_accepted(update, plainer(said))
        return digest

    async def _message(self, rows: Line, counted: Said | None) -> Message:
        if rows.run.status is RunStatus.QUEUED and rows.run.started_at is None:
            in_the_way = await runs.in_the_way(self._house.db, rows.run.id)
            lacks = self.lacks(in_the_way[1] if in_the_way else ())
            return notice(NoticeKind.RUN_RECEIVED, {}, self._texts, in_the_way=in_the_way, lacks=lacks)
        doing = {name: tool.doing for name, tool in self._house.tools.items() if tool.doing}
        names, lacks = await self._names(rows.approvals), self.lacks(rows.approvals)
        return line(rows, LineContext(self._texts, doing, names, lacks, counted))

    def lacks(self, approvals: Sequence[Approval]) -> Mapping[str, Lack]:
        """By approval, where too few people may decide it."""
        found = ((approval.id, lack(self._house.policy, approval)) for approval in approvals)
        return {approval_id: one for approval_id, one in found if one is not None}

    async def _names(self, approvals: Sequence[Approval]) -> Mapping[str, Sequence[str]]:
        """By approval, who may decide it now, if these are few people whom Slack names."""
        found: dict[str, Sequence[str]] = {}
        for approval in approvals:
            people = self._deciders(approval) if approval.status is ApprovalStatus.PENDING else ()
            if 0 < len(people) <= MOST_NAMED:
                team = approval.conversation.team_id
                names = await self._names_of(team, people)
                if names:
                    found[approval.id] = names
        return found

    async def _names_of(self, team_id: str, people: Sequence[str]) -> list[str]:
        """What Slack last called those of these people who may decide, or calls them now.

        Empty if it does not name them all.
        """
        db = self._house.db
        known = {user: await directory.read_user(db, team_id, user) for user in people}
        unknown = [user for user, row in known.items() if row is None]
        if unknown:
            asked_at = await db.now()
            # at once: the line is not ours for long
            asked = await asyncio.gather(*(self._ask_for(team_id, user) for user in unknown))
            for user in filter(None, asked):
                await directory.save_user(db, user, asked_at=asked_at)
            known |= dict(zip(unknown, asked, strict=True))
        rows = [row for row in known.values() if row is not None]
        everybody = len(rows) == len(people)
        return [row.name for row in rows if why_nobody(row) is None] if everybody else []

    async def _ask_for(self, team_id: str, user_id: str) -> DirectoryUser | None:
        try:
            return await ask_for(self._slack.quick, user_id, team_id)
        except (SlackApiError, *UNREACHABLE) as error:
            log.info("a name could not be looked up", user=user_id, error=Fault.of(error).code)
            return None

    def _deciders(self, approval: Approval) -> Sequence[str]:
        return deciders(self._house.policy, approval, deciding_roles(approval))


def _digest(said: Message) -> str:
    return hashlib.sha256(json.dumps(said.arguments(), sort_keys=True).encode()).hexdigest()
