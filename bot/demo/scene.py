"""The world as the sandbox's page shows it: three things that can be made to happen, and what there is."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from decimal import Decimal

from agent.money import Money
from agent.tools.shop.seed import OVERNIGHT, fail_three_overnight
from agent.tools.shop.words import counted
from bot.blocks.status import moved_text
from bot.blocks.values import amount_text
from bot.demo.board import Board, Clicks, State
from bot.demo.keeper import Keeper, Phase
from bot.demo.world import World
from bot.sandbox.world import Control, DeedRefusedError, Figure, Item, Listing, Moment, Section, Tone
from bot.texts.en import ENGLISH
from store.errors import StoreError, translated
from store.records import Approval, Run
from store.transitions import ApprovalStatus, RunStatus

FAIL, RESTART, SLOW = "fail-three", "restart", "slow"
HAPPEN, NOW = "Let something happen", "In the database now"
WHY_FAIL = "The world moves after the card was made: approve it then, and nothing runs, for 38 became 41."
WHY_RESTART = "A power cut (SIGKILL) and a new process: what waits is in the database, so nothing is lost."
WHY_SLOW = "Every click is delivered twice, as Slack and impatient people do: nothing happens twice."
TONES: dict[str, Tone] = {
    RunStatus.AWAITING_APPROVAL: "waits",
    RunStatus.COMPLETED: "good",
    RunStatus.FAILED: "bad",
    RunStatus.EXHAUSTED: "bad",
    ApprovalStatus.PENDING: "waits",
    ApprovalStatus.EXECUTED: "good",
    ApprovalStatus.UNKNOWN: "bad",
}


class Scene:
    """The world of one demo, as its page shows it."""

    def __init__(self, world: World, keeper: Keeper, board: Board) -> None:
        self._world = world
        self._keeper = keeper
        self._board = board
        self._has_failed = False
        self._slow: tuple[int, int] | None = None

    def sections(self) -> Sequence[Section]:
        """The controls, then what the database holds."""
        happen = Section(HAPPEN, controls=(self._failing(), self._restarting(), self._slowness()))
        state, trouble = self._board.state, self._board.trouble
        if state is None:
            return [happen, Section(NOW, trouble)]
        return [happen, Section(NOW, trouble, figures=_figures(state), listings=_listings(state))]

    async def look(self) -> None:
        """Read what there is now."""
        await self._board.look()

    def watched(self) -> AbstractContextManager[None]:
        """While open, read what there is about once a second."""
        return self._board.watched()

    async def do(self, deed: str) -> None:
        """Do it; raises DeedRefusedError when the database does not let the payments fail."""
        if deed == RESTART:
            self._keeper.restart()
        elif deed == SLOW:
            self._switch()
        elif not self._has_failed:
            await self._fail()
        await self._board.look()

    async def _fail(self) -> None:
        try:
            with translated():
                await fail_three_overnight(self._world.urls.owner)
        except StoreError as error:
            raise DeedRefusedError(str(error)) from error
        self._has_failed = True
        self._world.sandbox.workspace.changes.announce()

    def _switch(self) -> None:
        slack = self._world.sandbox.slack
        slack.repeats_clicks = not slack.repeats_clicks
        self._slow = (len(slack.deliverer.log), self._decisions()) if slack.repeats_clicks else None
        slack.workspace.changes.announce()

    def _decisions(self) -> int:
        return self._board.state.totals.decisions if self._board.state else 0

    def _failing(self) -> Control:
        said = ""
        if self._has_failed:
            total = Money(sum(OVERNIGHT.values(), Decimal(0)), "EUR").text(ENGLISH.locale)
            said = f"It has happened: {len(OVERNIGHT)} more payments failed, {total} in all. It happens once."
        return Control(FAIL, "Three payments fail overnight", WHY_FAIL, said, spent=self._has_failed)

    def _restarting(self) -> Control:
        pid, killed = self._keeper.pid, self._keeper.killed
        said = f"Running as process {pid}."
        if self._keeper.phase is Phase.KILLING:
            said = f"Killing process {pid} …"
        elif self._keeper.phase is Phase.STARTING:
            said = f"Process {killed} was killed. Starting another one …"
        elif killed is not None:
            said = f"Process {killed} was killed. Running again, as process {pid}."
        away = self._keeper.phase is not Phase.RUNNING
        return Control(RESTART, "Restart the app now", WHY_RESTART, said, spent=away)

    def _slowness(self) -> Control:
        said = ""
        if self._slow is not None:
            since, decisions = self._slow
            said = _said_of(self._board.count_clicks(since), self._decisions() - decisions)
        return Control(SLOW, "Slack is slow", WHY_SLOW, said, on=self._slow is not None)


def _said_of(clicks: Clicks, decisions: int) -> str:
    if not clicks.made:
        return "It is: press a button of a card."
    return f"{counted(clicks.made, 'click')}, {_delivered(clicks)}: {_in_words(decisions)}."


def _delivered(clicks: Clicks) -> str:
    if clicks.delivered == 2 * clicks.made:
        return "delivered twice" if clicks.made == 1 else "each delivered twice"
    return f"delivered {counted(clicks.delivered, 'time')}"


def _in_words(decisions: int) -> str:
    number = {0: "no", 1: "one"}.get(decisions, str(decisions))
    return f"{number} decision{'' if decisions == 1 else 's'}"


def _figures(state: State) -> tuple[Figure, ...]:
    refunds, clicks = state.refunds, state.clicks
    total = sum((refund.amount for refund in refunds), Money(0, "EUR")).text(ENGLISH.locale)
    payments = counted(len({refund.payment_id for refund in refunds}), "payment")
    return (
        Figure(str(state.failed), "Failed payments in the shop"),
        Figure(str(len(refunds)), "Refunds at the provider", f"of {payments}, {total}" if refunds else ""),
        Figure(str(clicks.made), "Clicks", _delivered(clicks) if clicks.made else ""),
        Figure(str(state.totals.decisions), "Decisions"),
    )


def _listings(state: State) -> tuple[Listing, ...]:
    asked, found = state.approvals, state.runs
    return (
        Listing(
            "Approvals",
            tuple(map(_approval, asked)),
            "Nothing was asked yet.",
            _older(state.totals.approvals - len(asked)),
        ),
        Listing(
            "Runs",
            tuple(map(_run, found)),
            "Nobody has asked the agent for anything yet.",
            _older(state.totals.runs - len(found)),
        ),
    )


def _older(count: int) -> str:
    return f"and {count} older" if count else ""


def _run(run: Run) -> Item:
    return Item(run.task, _words(run.status), TONES.get(run.status, ""), (f"asked by {run.requester.name}",))


def _approval(approval: Approval) -> Item:
    title, facts = str(approval.shown.preview["title"]), approval.shown.facts
    details: list[str | Moment] = [f"revision {approval.revision}"]
    if str(facts["count"]) not in title:
        details.append(f"count {facts['count']}")
    if facts["amount"] and (amount := amount_text(facts["amount"], ENGLISH.locale)) not in title:
        details.append(amount)
    if approval.status is ApprovalStatus.PENDING:
        details.append(Moment("until", approval.expires_at.timestamp()))
    elif approval.decided_by is not None:
        details.append(f"decided by {approval.decided_by.name}")
    moved = (approval.outcome or {}).get("moved") or []
    details += [moved_text(one, ENGLISH) for one in moved]
    return Item(title, _words(approval.status), TONES.get(approval.status, ""), tuple(details))


def _words(status: RunStatus | ApprovalStatus) -> str:
    return status.value.replace("_", " ")
