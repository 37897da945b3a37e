"""Makes every copy of a card match its row, and posts the notices: claims one, renders it, records it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import structlog
from slack_sdk.errors import SlackApiError

from agent.gaps import deciders, lack
from agent.house import House
from agent.tool import Risk
from bot.blocks.bounded import Message
from bot.blocks.card import CardContext, card, plain_card
from bot.blocks.notices import WAITS_OR_ENDED, NoticeKind, approvals_of, notice
from bot.blocks.people import deciding_roles
from bot.blocks.target import Target
from bot.forms import field_titles
from bot.lines import Lines
from bot.posting import GONE, REFUSED_CONTENT, Fault, Held, Render, first_accepted, made, plainer
from bot.reminding import reminder_of, repeat_of
from bot.slack import UNREACHABLE, Slack, Team, error_code, message_link, told
from bot.texts import Texts
from bot.wake import Wake
from store import approvals, cards, lines, notices, runs
from store.errors import StoreError, WrittenByNewer
from store.records import DMS, UPDATES, Approval, Card, Notice
from store.transitions import OPEN_APPROVALS, ApprovalStatus

log = structlog.get_logger(__name__)

LEASE_SECONDS = 20.0  # longer than two calls of Slack that are given up after 8 s
LANES = 4  # cards on their way at once: one slow channel must not hold up the others
LAST_NOTICE_FAILURE = 15  # about 40 minutes
KEPT_AGAIN_AFTER = (0.0, 0.5, 2.0)  # seconds
# A worker tells of these itself; another process, which knows less, could be the last to speak.
WORKERS_STEPS = frozenset(
    {ApprovalStatus.EXECUTING, ApprovalStatus.EXECUTED, ApprovalStatus.FAILED, ApprovalStatus.SUPERSEDED}
)
T = TypeVar("T")


class SlackPublisher:
    """The Publisher of agent/worker.py; safe to run in many processes at once."""

    def __init__(
        self, house: House, slack: Slack, team: Team, texts: Texts, *, name: str, wake: Wake
    ) -> None:
        """`wake` is called when it is time to try again what failed."""
        self._wake = wake
        self._house = house
        self._slack = slack
        self._team = team
        self._texts = texts
        self._held = Held()
        self.name = name
        self.lines = Lines(house, slack, texts, name=name, wake=wake, held=self._held)

    async def publish_cards(self) -> int:
        """Post or update every copy that is behind its row; returns how many were made to match."""
        first = await self._claim_card()
        if first is None:
            return 0
        return sum(await asyncio.gather(self._lane(first), *(self._lane() for _ in range(LANES - 1))))

    async def publish_notices(self) -> int:
        """Post what waits to be said, in order; returns how many were posted."""
        posted = 0
        while (claimed := await self._claim_notice()) is not None:
            posted += await self._publish_notice(claimed)
        return posted

    async def card_of(self, approval: Approval) -> Message:
        """The card as it would be posted now, for one person's eyes."""
        return next(made(_forms_of(approval, await self._context(approval), mention=False)))

    async def close(self) -> None:
        """Stop showing progress; the Slack clients belong to whoever made them."""
        await self.lines.following.close()

    async def _claim_card(self) -> Card | None:
        return await cards.claim_behind(
            self._house.db,
            token=uuid4().hex,
            worker=self.name,
            lease=LEASE_SECONDS,
            held=self._held.places(),
        )

    async def _claim_notice(self) -> Notice | None:
        return await notices.claim(
            self._house.db,
            token=uuid4().hex,
            worker=self.name,
            lease=LEASE_SECONDS,
            held=self._held.places(),
        )

    async def _lane(self, claimed: Card | None = None) -> int:
        matching = 0
        try:
            claimed = claimed or await self._claim_card()
            while claimed is not None:
                matching += await self._publish_card(claimed)
                claimed = await self._claim_card()
        except StoreError as error:  # the other lanes finish what they hold; the next round tries again
            log.warning("publishing stopped", error=str(error))
        return matching

    async def _publish_card(self, claimed: Card) -> bool:
        """Make one copy match its row; a fault is stored with the time to try again."""
        try:
            return await self._try_card(claimed)
        except WrittenByNewer as error:
            return await self._card_failed(claimed, Fault.of(error))
        except StoreError:
            raise
        except Exception as error:
            # whatever is wrong with one card, in its row or in us, the others and the worker must go on
            log.exception("a fault while a card was published", card=claimed.id)
            return await self._card_failed(claimed, Fault.of(error))

    async def _try_card(self, claimed: Card) -> bool:
        approval = await approvals.read(self._house.db, claimed.approval_id)
        assert approval is not None, "a card belongs to an approval"
        await self._tell_others(claimed, approval)
        context = await self._context(approval)
        try:
            if claimed.ts is None or claimed.channel_id is None:
                await self._post_card(claimed, approval, context)
            else:
                await self._update_card(claimed, approval, context, claimed.channel_id, claimed.ts)
        except (SlackApiError, *UNREACHABLE) as error:
            fault = Fault.of(error)
            if fault.code in GONE and claimed.ts is not None:
                log.warning("a card is gone, posting it again", approval=approval.id, error=fault.code)
                await cards.lost(self._house.db, claimed.id, _token(claimed))
                return False
            return await self._card_failed(claimed, fault)
        return True

    async def _tell_others(self, claimed: Card, approval: Approval) -> None:
        """See that cards with the same items warn of it, and no longer than it is open."""
        now = approval.revision if approval.status in OPEN_APPROVALS else 0
        if claimed.user_id is not None or claimed.told_revision == now:  # a copy has nothing to add
            return
        if await _kept(lambda: cards.tell_others(self._house.db, claimed, now)):
            self._wake.call()

    async def _post_card(self, claimed: Card, approval: Approval, context: CardContext) -> None:
        channel = claimed.channel_id or await self._open_dm(claimed.user_id or "")

        forms = _forms_of(approval, context, mention=True)
        place = channel if claimed.user_id is None else DMS
        answer = await first_accepted(lambda form: self._post(channel, None, form, place=place), forms)
        await self._card_shown(claimed, approval, told(answer, "channel"), told(answer, "ts"))

    async def _update_card(
        self, claimed: Card, approval: Approval, context: CardContext, channel: str, ts: str
    ) -> None:
        async def update(message: Message) -> Any:
            with self._held.told(UPDATES):
                return await self._slack.once.chat_update(channel=channel, ts=ts, **message.arguments())

        await first_accepted(update, _forms_of(approval, context, mention=False))
        await self._card_shown(claimed, approval, channel, ts)

    async def _card_shown(self, claimed: Card, approval: Approval, channel: str, ts: str) -> None:
        version, token = approval.version, _token(claimed)
        recorded = await _kept(
            lambda: cards.posted(self._house.db, claimed, token, channel_id=channel, ts=ts, version=version)
        )
        if approval.status not in WORKERS_STEPS:
            self.lines.following.moved(approval.run_id)
        if not recorded:  # another publisher has the copy by now: this one may be too many, or come last
            await self.adopt(approval.id, channel, ts, claimed.user_id)
            await self.doubt(channel, ts)

    async def adopt(self, approval_id: str, channel: str, ts: str, user_id: str | None) -> None:
        """Keep a message that is there up to date, if no copy is known to be it."""
        adopted = await cards.adopt(
            self._house.db,
            approval_id=approval_id,
            team_id=self._team.team_id,
            channel_id=channel,
            ts=ts,
            user_id=user_id,
        )
        if adopted:
            log.info("a message is a copy of a card from now on", approval=approval_id)
            self._wake.call()

    async def doubt(self, channel: str, ts: str, pressed: Target | None = None) -> None:
        """See cards.doubt: show a copy anew a little later."""
        doubted = await cards.doubt(
            self._house.db,
            team_id=self._team.team_id,
            channel_id=channel,
            ts=ts,
            revision=None if pressed is None else pressed.revision,
            attempts=None if pressed is None else pressed.attempts,
        )
        if doubted:
            self._wake.call_in(cards.DOUBT_SECONDS)

    async def _card_failed(self, claimed: Card, fault: Fault) -> bool:
        retry_in = fault.retry_in(claimed.failures)
        fault.log("a card cannot be published", retry_in, approval=claimed.approval_id, card=claimed.id)
        await cards.failed(
            self._house.db,
            claimed.id,
            _token(claimed),
            error=fault.code,
            retry_in=retry_in,
            unanswered=fault.unanswered,
            counts=fault.counts(claimed.failures),
        )
        if claimed.failures == 0:
            self._wake.call()  # a notice may have waited for it
        self._wake.call_in(retry_in)
        return False

    async def _context(self, approval: Approval) -> CardContext:
        db = self._house.db
        tool = self._house.tools.get(approval.tool)
        replaced = await approvals.read(db, approval.replaces) if approval.replaces else None
        links = await self.links([i for i in (approval.replaces, approval.replaced_by) if i is not None])
        conversation = approval.conversation
        return CardContext(
            texts=self._texts,
            irreversible=tool is None or tool.risk is Risk.IRREVERSIBLE,
            deciders=deciders(self._house.policy, approval, deciding_roles(approval)),
            lack=lack(self._house.policy, approval),
            overlaps=tuple(await approvals.overlaps(db, approval)),
            earlier_refusal=await approvals.earlier_refusal(db, approval),
            replaced=replaced,
            replaced_link=links.get(approval.replaces or ""),
            replaced_by_link=links.get(approval.replaced_by or ""),
            thread_link=conversation.thread_ts
            and message_link(self._team, conversation.channel_id, conversation.thread_ts),
            field_titles=field_titles(tool.input) if tool is not None else {},
            repeat=await repeat_of(self._house, approval),
        )

    async def links(self, approval_ids: Iterable[str]) -> Mapping[str, str]:
        """Permalinks of the approvals' cards in channels, of those that are posted."""
        asked = list(approval_ids)
        if not asked:
            return {}
        found: dict[str, str] = {}
        for copy in await cards.of_approvals(self._house.db, asked):
            if copy.user_id is None and copy.channel_id is not None and copy.ts is not None:
                found.setdefault(copy.approval_id, message_link(self._team, copy.channel_id, copy.ts))
        return found

    async def _publish_notice(self, claimed: Notice) -> bool:
        """Post one notice; a fault is stored with the time to try again."""
        try:
            return await self._try_notice(claimed)
        except WrittenByNewer as error:
            return await self._notice_failed(claimed, Fault.of(error))
        except StoreError:
            raise
        except Exception as error:
            # whatever is wrong with one notice, in its row or in us, the others and the worker must go on
            log.exception("a fault while a notice was posted", notice=claimed.id)
            return await self._notice_failed(claimed, Fault.of(error))

    async def _try_notice(self, claimed: Notice) -> bool:
        try:
            if claimed.ts is not None:
                return await self._update_line(claimed, claimed.ts)
            if claimed.kind == NoticeKind.OUTCOME_REMINDER:
                return await self._remind(claimed)
            message = await self._render_notice(claimed)
            channel, thread_ts = await self._place_of(claimed)
            place = channel if claimed.conversation is not None else DMS
            posted = told(await self._post_notice(channel, thread_ts, message, place=place), "ts")
        except (SlackApiError, *UNREACHABLE) as error:
            return await self._notice_failed(claimed, Fault.of(error))
        moved = await self._run_of(claimed)
        await self._notice_shown(claimed, posted, moved=moved)
        if claimed.kind == NoticeKind.RUN_RECEIVED:
            self.lines.following.moved(claimed.data["run_id"])
        return True

    async def _remind(self, claimed: Notice) -> bool:
        """Post a reminder below its card, unless it is known by now what became of the call."""
        found = await reminder_of(self._house, self._texts, claimed)
        if found is None:
            await notices.withdraw(self._house.db, claimed, claimed.token)
            return True
        message, channel, ts = found
        answer = await self._post_notice(channel, ts, message, place=channel)
        await self._notice_shown(claimed, told(answer, "ts"), elsewhere=True)
        return True

    async def _notice_shown(self, claimed: Notice, ts: str, **how: Any) -> bool:
        """See notices.posted."""
        return await _kept(lambda: notices.posted(self._house.db, claimed, claimed.token, ts=ts, **how))

    async def _post_notice(self, channel: str, thread_ts: str | None, message: Message, *, place: str) -> Any:
        forms = plainer(message)
        return await first_accepted(lambda form: self._post(channel, thread_ts, form, place=place), forms)

    async def _post(self, channel: str, thread_ts: str | None, message: Message, *, place: str) -> Any:
        """`place` is what is held if Slack asks to wait: the channel, or all DMs."""
        shown = {name: value for name, value in message.arguments().items() if value}  # perhaps no blocks
        with self._held.told(place):
            return await self._slack.once.chat_postMessage(
                channel=channel,
                thread_ts=thread_ts,
                unfurl_links=False,
                unfurl_media=False,
                **shown,
            )

    async def _update_line(self, claimed: Notice, ts: str) -> bool:
        """Bring the first message of a run's answer up to date; one that is gone is not missed."""
        run_id, shown = claimed.data["run_id"], None
        try:
            shown = await self.lines.bring_up_to_date(run_id, claimed.shown)
        except SlackApiError as error:
            if error_code(error) not in GONE:
                raise
        if not await self._notice_shown(claimed, ts, shown=shown):
            await lines.let_go(self._house.db, run_id, claimed.token, shown=None)  # it may have come last
            self._wake.call()
        return True

    async def _run_of(self, claimed: Notice) -> str | None:
        """The run that waits or has ended by what a notice in its thread says."""
        if claimed.kind not in WAITS_OR_ENDED or claimed.conversation is None:
            return None
        for approval_id in approvals_of(claimed.kind, claimed.data):
            approval = await approvals.read(self._house.db, approval_id)
            return None if approval is None else approval.run_id
        run_id: str | None = claimed.data.get("run_id")
        return run_id

    async def _render_notice(self, claimed: Notice) -> Message:
        rows = [await approvals.read(self._house.db, i) for i in approvals_of(claimed.kind, claimed.data)]
        replaced = [row.replaces for row in rows if row is not None and row.replaces is not None]
        rows += [await approvals.read(self._house.db, i) for i in replaced]
        known: dict[str, Approval] = {row.id: row for row in rows if row is not None}
        waits = claimed.kind == NoticeKind.RUN_RECEIVED
        in_the_way = await runs.in_the_way(self._house.db, claimed.data["run_id"]) if waits else None
        return notice(
            claimed.kind,
            claimed.data,
            self._texts,
            approvals=known,
            in_the_way=in_the_way,
            lacks=self.lines.lacks(in_the_way[1] if in_the_way else ()),
            links=await self.links(known),
        )

    async def _place_of(self, claimed: Notice) -> tuple[str, str | None]:
        if claimed.conversation is not None:
            return claimed.conversation.channel_id, claimed.conversation.thread_ts
        return await self._open_dm(claimed.user_id or ""), None

    async def _notice_failed(self, claimed: Notice, fault: Fault) -> bool:
        """Try it again later, but what may never go not for ever: what comes after it in its thread waits."""
        counts = fault.counts(claimed.failures)
        given_up = fault.code in REFUSED_CONTENT or (counts and claimed.failures >= LAST_NOTICE_FAILURE)
        retry_in = None if given_up else fault.retry_in(claimed.failures)
        fault.log("a notice cannot be posted", retry_in, kind=claimed.kind, notice=claimed.id)
        await notices.failed(
            self._house.db,
            claimed,
            claimed.token,
            error=fault.code,
            retry_in=retry_in,
            unanswered=fault.unanswered,
            counts=counts,
        )
        self._wake.call_in(retry_in or 0.0)
        return False

    async def _open_dm(self, user_id: str) -> str:
        with self._held.told(DMS):
            answer = await self._slack.once.conversations_open(users=user_id)
        return told(answer, "channel", "id")


def _forms_of(approval: Approval, context: CardContext, *, mention: bool) -> tuple[Render, ...]:
    return (
        lambda: card(approval, context, mention=mention),
        lambda: card(approval, context, mention=mention, table=False),
        lambda: plain_card(approval, context, mention=mention),
    )


async def _kept(keep: Callable[[], Awaitable[T]]) -> T:
    """What `keep` returns, done again when the database fails it: what Slack has would be posted once more.

    For what does no harm if it was recorded the first time.
    """
    for pause in KEPT_AGAIN_AFTER:
        try:
            return await keep()
        except StoreError as error:
            log.warning("what was posted is not kept yet", error=str(error))
            await asyncio.sleep(pause)
    return await keep()


def _token(claimed: Card) -> str:
    assert claimed.token is not None, "a claimed card has a token"
    return claimed.token
