"""The demo's world as its page shows it: what can be made to happen, what there is, what one does next."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal

from agent.leases import LEASE_SECONDS
from agent.money import Money
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.seed import FAILED_COUNT, OVERNIGHT, fail_three_overnight
from agent.tools.shop.words import counted
from bot.demo.board import Board, State
from bot.demo.contents import delivered, figures, listings
from bot.demo.keeper import Keeper, Phase
from bot.demo.steps import for_marta, next_step, waits_for_marta
from bot.demo.world import World
from bot.sandbox.world import Control, DeedRefusedError, Section, Step, Welcome
from bot.texts.en import ENGLISH
from store.engine import Database
from store.errors import StoreError, translated

FAIL, RESTART, SLOW = "fail-three", "restart", "slow"
HAPPEN, NOW = "Let something happen", "In the database now"
ABOUT = (
    "This is a local imitation of Slack, with an AI agent in it. Where its work cannot be undone, the agent "
    "stops until a person approves."
)
INVITATION = "Ask @vistobueno for something that your tools do"
WHY_FAIL = "The world moves after the card was made: approve it then, and nothing runs, for {moved}."
NOT_YET = "Not yet: first a card for refunds must wait for Marta. Ask as Leo."
AGAIN = "Not now: no card for refunds waits for Marta. Ask as Leo again."
OVER = "Not any more: every failed payment is refunded. A new demo has the story again."
WHY_RESTART = (
    "A power cut (SIGKILL) and a new process: what waits is in the database, so nothing is lost. What was "
    f"under way goes on, or is asked about, when the lease of the dead is over: after {LEASE_SECONDS:g} s."
)
WHY_SLOW = "Every click is delivered twice, as Slack and impatient people do: nothing happens twice."


class Scene:
    """The world of one demo; `changed` is called whenever it shows something else."""

    def __init__(self, world: World, keeper: Keeper, db: Database, changed: Callable[[], None]) -> None:
        self._world = world
        self._keeper = keeper
        self._board = Board(world, db, self._show)
        self._changed = changed
        self._failed_before: int | None = None  # how many payments had failed before three more did
        self._slow_since: tuple[int, int] | None = None  # deliveries and decisions before it
        self._shown: list[Section] = []

    def sections(self) -> Sequence[Section]:
        """The controls, then what there is."""
        failing = [self._failing()] if self._world.has_shop else []
        controls = (*failing, self._restarting(), self._slowness())
        return [Section(HAPPEN, controls=controls), *self._shown]

    def welcome(self) -> Welcome:
        """What this is; a person's own tools are asked for in their own words."""
        return Welcome(ABOUT, "" if self._world.has_shop else INVITATION)

    def next_step(self) -> Step | None:
        """The next step of the shop's story; a person's own tools have none."""
        if not self._world.has_shop:
            return None
        return next_step(self._board.state, failed_more=self._failed_before is not None)

    async def look(self) -> None:
        """Read what there is."""
        await self._board.look()

    def watched(self) -> AbstractContextManager[None]:
        """While open, read what there is about once a second."""
        return self._board.watched()

    async def do(self, deed: str) -> None:
        """Do it; raises DeedRefusedError when the database does not let the payments fail."""
        await self._board.look()
        if deed == RESTART:
            self._keeper.restart()
        elif deed == SLOW:
            self._switch()
        else:
            await self._fail()
            await self._board.look()
        self._changed()

    async def close(self) -> None:
        """Read nothing any more."""
        await self._board.close()

    def _show(self) -> None:
        state, trouble = self._board.state, self._board.trouble
        shown = [Section(NOW, trouble)]
        if state is not None:
            numbers = figures(state, has_shop=self._world.has_shop)
            shown = [Section(NOW, trouble, figures=numbers, listings=listings(state))]
        if shown != self._shown:
            self._shown = shown
            self._changed()

    async def _fail(self) -> None:
        control, state = self._failing(), self._board.state
        if control.spent or state is None:
            raise DeedRefusedError(control.said or NOT_YET)
        try:
            with translated():
                await fail_three_overnight(self._world.urls.owner)
        except StoreError as error:
            raise DeedRefusedError(str(error)) from error
        self._failed_before = state.failed

    def _switch(self) -> None:
        slack = self._world.sandbox.slack
        slack.repeats_clicks = not slack.repeats_clicks
        before = (len(self._world.sandbox.deliveries), self._decisions())
        self._slow_since = before if slack.repeats_clicks else None

    def _decisions(self) -> int:
        return self._board.state.totals.decisions if self._board.state else 0

    def _failing(self) -> Control:
        state, more = self._board.state, len(OVERNIGHT)
        said = ""
        if self._failed_before is not None:
            total = Money(sum(OVERNIGHT.values(), Decimal(0)), "EUR").text(ENGLISH.locale)
            said = f"It has happened: {more} more payments failed, {total} in all. It happens once."
        elif not waits_for_marta(state, refund_payments.name):
            said = self._why_not(state)
        why = WHY_FAIL.format(moved=self._moved(state))
        return Control(FAIL, "Three payments fail overnight", why, said, spent=bool(said))

    def _moved(self, state: State | None) -> str:
        """What became of a card's count; without one where no card waits any more."""
        more, was = len(OVERNIGHT), self._failed_before
        if was is None and (not for_marta(state) or waits_for_marta(state, refund_payments.name)):
            was = (state.failed if state else 0) or FAILED_COUNT
        return f"{was} became {was + more}" if was is not None else f"{more} more have failed"

    @staticmethod
    def _why_not(state: State | None) -> str:
        """Why no payments fail now: nobody has asked yet, or not again, or nothing is left to ask for."""
        if state is None or not for_marta(state):
            return NOT_YET
        return AGAIN if state.failed else OVER

    def _restarting(self) -> Control:
        pid, killed, phase = self._keeper.pid, self._keeper.killed, self._keeper.phase
        said = f"Running as process {pid}."
        if phase is Phase.KILLING:
            said = f"Killing process {pid} …"
        elif phase is Phase.STARTING:
            said = f"Process {killed} was killed. Starting another one …"
        elif killed is not None:
            said = f"Process {killed} was killed. Running again, as process {pid}."
        away = phase is not Phase.RUNNING
        return Control(RESTART, "Restart the app now", WHY_RESTART, said, spent=away)

    def _slowness(self) -> Control:
        said = "" if self._slow_since is None else self._delivered_since(*self._slow_since)
        return Control(SLOW, "Slack is slow", WHY_SLOW, said, on=self._slow_since is not None)

    def _delivered_since(self, deliveries: int, decisions: int) -> str:
        clicks = self._board.count_clicks(deliveries)
        if not clicks.made:
            return "It is: press a button of a card."
        made = self._decisions() - decisions
        number = {0: "no", 1: "one"}.get(made, str(made))
        decided = f"{number} decision{'' if made == 1 else 's'}"
        return f"{counted(clicks.made, 'click')}, {delivered(clicks)}: {decided}."
