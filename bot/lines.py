"""Keeps the line of each run, the first message of its answer, as its rows are, in Slack."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from agent.house import House
from bot.blocks.bounded import Message
from bot.blocks.line import LineContext, line
from bot.blocks.notices import NoticeKind, notice
from bot.blocks.people import deciding_roles
from bot.following import Following, Said
from bot.slack import Slack
from bot.texts import Texts
from store import directory, lines, runs
from store.records import Approval, Line
from store.transitions import ApprovalStatus, RunStatus

MOST_REMEMBERED = 1_000
MOST_NAMED = 3


class Lines:
    """What the lines show. `following` brings them up to date by itself while runs are under way here.

    Nobody waits for that, and that the last line is true does not hang on it: the publisher calls `show`,
    durably, with each notice that says that a run waits or has ended.
    """

    def __init__(self, house: House, slack: Slack, texts: Texts) -> None:
        """`house` has the database of what is done in the background."""
        self._house, self._slack, self._texts = house, slack, texts
        self._shown: OrderedDict[str, Message] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.following = Following(self.show)

    async def show(self, run_id: str, counted: Said | None = None) -> bool:
        """Bring the line up to date now; False: it is not posted yet.

        Raises SlackApiError, UNREACHABLE or StoreError.
        """
        # one after another, and read inside: what is sent last is what was read last
        async with self._locks.setdefault(run_id, asyncio.Lock()):
            rows = await lines.read(self._house.db, run_id)
            if rows is None:
                return False
            said = await self._message(rows, counted or self.following.counted(run_id))
            if said != self._shown.pop(run_id, None):
                await self._slack.quick.chat_update(
                    channel=rows.conversation.channel_id, ts=rows.ts, **said.arguments()
                )
            self._shown[run_id] = said
            if len(self._shown) > MOST_REMEMBERED:
                self._shown.popitem(last=False)
            return True

    async def _message(self, rows: Line, counted: Said | None) -> Message:
        if rows.run.status is RunStatus.QUEUED and rows.run.started_at is None:
            in_the_way = await runs.in_the_way(self._house.db, rows.run.id)
            return notice(NoticeKind.RUN_RECEIVED, {}, self._texts, in_the_way=in_the_way)
        doing = {name: tool.doing for name, tool in self._house.tools.items() if tool.doing}
        return line(rows, LineContext(self._texts, doing, await self._names(rows.approvals), counted))

    async def _names(self, approvals: Sequence[Approval]) -> Mapping[str, Sequence[str]]:
        """By approval, who may decide it now, if these are few people whom Slack has named before."""
        found: dict[str, Sequence[str]] = {}
        for approval in approvals:
            people = self._deciders(approval) if approval.status is ApprovalStatus.PENDING else ()
            if 0 < len(people) <= MOST_NAMED:
                team = approval.conversation.team_id
                users = [await directory.read_user(self._house.db, team, user) for user in people]
                names = [user.name for user in users if user is not None]
                if len(names) == len(people):
                    found[approval.id] = names
        return found

    def _deciders(self, approval: Approval) -> Sequence[str]:
        said = {vote.person.user_id for vote in approval.votes}
        if approval.rule.four_eyes:
            said.add(approval.requester.user_id)
        return [user for user in self._house.policy.users_of(deciding_roles(approval)) if user not in said]
