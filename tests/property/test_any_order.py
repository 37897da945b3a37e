"""Whatever happens in whatever order, the invariants hold after each step, and all comes to its end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from agent import execute, leases
from agent.settle import Said
from tests.databases import Database
from tests.property.laws import LEASE, laws_of
from tests.property.lines import Interruption
from tests.property.town import WORKERS, Town, quiet

BILLS = ["b1", "b2", "b3", "b4"]
PEOPLE = ["U0MARTA", "U0MIRA", "U0LEO", "U0ANA", "U0ZOE"]
MOST_ROUNDS = 600  # an allowed call waits for an hour at most, a minute at a time, and one after the other

bills = st.lists(st.sampled_from(BILLS), min_size=1, max_size=2, unique=True)
a_call = st.tuples(st.sampled_from(["pay", "wire", "tip", "pay", "look"]), bills)
plans = st.lists(st.lists(a_call, min_size=1, max_size=3), min_size=1, max_size=2)
workers = st.sampled_from(WORKERS)
index = st.integers(0, 5)
at_statement = st.builds(
    Interruption, st.sampled_from(["die", "hold", "hold", "cut"]), st.integers(0, 6), st.booleans()
)
in_tool = st.builds(Interruption, st.sampled_from(["die", "hold"]), st.just(0), st.booleans(), st.just(True))
nothing: st.SearchStrategy[Interruption | None] = st.none()
at_click = st.builds(Interruption, st.sampled_from(["die", "hold", "cut"]), st.integers(0, 1), st.booleans())
mishaps = nothing | nothing | at_click
mishaps_at_work = nothing | nothing | at_statement | in_tool


class AnyOrder(RuleBasedStateMachine):
    """What may happen."""

    town: Town

    def __init__(self) -> None:
        super().__init__()
        self.town.begin()
        self.drafts: list[tuple[str, str]] = []
        self.fine = True
        self.more = 0

    @initialize(first=plans, second=plans)
    def two_runs(self, first: Any, second: Any) -> None:
        for thread, plan in enumerate((first, second)):
            self.town.start(thread, plan)
            self.town.work("w1")

    # --- workers ---

    @rule(name=workers, mishap=mishaps_at_work)
    def work(self, name: str, mishap: Interruption | None) -> None:
        if not self.town.is_held(name):
            self.town.work(name, mishap)

    @rule(name=workers, mishap=mishaps_at_work)
    def work_on(self, name: str, mishap: Interruption | None) -> None:
        if not self.town.is_held(name) and self.town.work(name):
            self.town.work(name, mishap)

    @rule(name=workers, mishap=mishaps_at_work)
    def take_over(self, name: str, mishap: Interruption | None) -> None:
        self.town.pass_time(LEASE + 1)
        self.town.sweep()
        self.work(name, mishap)

    @rule(
        which=index,
        name=workers,
        at=st.sampled_from([1, 1, 1, 2, 2, 2, 3, 4, 5, 6]),
        where=st.sampled_from(["before", "before", "after", "in the tool", "in the tool after"]),
        meanwhile=st.sampled_from(["nothing", "nothing", "taken over", "held up", "held up"]),
    )
    def fall_behind(self, which: int, name: str, at: int, where: str, meanwhile: str) -> None:
        """A worker is held up for longer than its lease, and then goes on as if nothing were.

        Meanwhile another one may have taken its work over, and may be in the middle of it.
        """
        if self.town.is_held(name):
            return
        self.approve(which, None)
        self.town.work(name, Interruption("hold", at, "after" in where, "tool" in where))
        self.town.pass_time(LEASE + 1)
        if meanwhile != "nothing":
            self.town.sweep()
            other = "w2" if name == "w1" else "w1"
            self.work(other, Interruption("hold", min(at, 2)) if meanwhile == "held up" else None)
        for held in [key for key, held in self.town.held.items() if held.line.name == name]:
            self.town.wake(held, kill=False)

    @precondition(lambda self: self.town.held)
    @rule(which=index, kill=st.booleans())
    def wake(self, which: int, kill: bool) -> None:
        names = list(self.town.held)
        self.town.wake(names[which % len(names)], kill=kill)

    @rule(mishap=mishaps, publish=st.booleans())
    def sweep(self, mishap: Interruption | None, publish: bool) -> None:
        if publish:
            self.town.publish(mishap)
        else:
            self.town.sweep(mishap)

    # --- people ---

    def _approval(self, which: int) -> dict[str, Any] | None:
        """One that is pending if there is any, else any; where all are decided, one more is asked for."""
        found = self._approvals()
        if not any(row["pending"] for row in found):
            self._ask_for_more()
            found = self._approvals()
        return found[which % len(found)] if found else None

    def _approvals(self) -> list[dict[str, Any]]:
        return self.town.rows(
            """SELECT a.id, a.run_id, a.revision,
       a.status = 'pending' AND a.expires_at > house_now() AS pending
  FROM approvals a JOIN calls c ON c.id = a.call_id
 ORDER BY pending DESC, a.created_at, c.position LIMIT 3"""
        )

    def _ask_for_more(self) -> None:
        free = [name for name in WORKERS if not self.town.is_held(name)]
        self.more += 1
        self.town.start(10 + self.more, [[("pay" if self.more % 2 else "wire", [f"more{self.more}"])]])
        for name in free[:1]:
            self.town.work(name)

    @rule(
        who=st.sampled_from(PEOPLE),
        which=index,
        verdict=st.sampled_from(["approve", "approve", "approve", "reject"]),
        mishap=mishaps,
        stale=st.sampled_from([0, 0, 0, 1]),
    )
    def click(self, who: str, which: int, verdict: str, mishap: Interruption | None, stale: int) -> None:
        if (on := self._approval(which)) is not None:
            self.town.click(who, on["id"], on["revision"] - stale, verdict, mishap)

    @rule(which=index, mishap=mishaps)
    def approve(self, which: int, mishap: Interruption | None) -> None:
        """As many as it takes approve."""
        if (on := self._approval(which)) is not None:
            self.town.click("U0MARTA", on["id"], on["revision"], "approve", mishap)
            self.town.click("U0MIRA", on["id"], on["revision"], "approve", None)

    @rule(
        who=st.sampled_from(PEOPLE[:2]),
        which=index,
        meanwhile=st.sampled_from(["approve", "approve", "reject", "edit", "cancel", "deadline"]),
    )
    def be_slow(self, who: str, which: int, meanwhile: str) -> None:
        """A click is held up between what it reads and what it writes."""
        if (on := self._approval(which)) is None:
            return
        before = set(self.town.held)
        self.town.click(who, on["id"], on["revision"], "approve", Interruption("hold", 1))
        other = PEOPLE[1 - PEOPLE.index(who)]
        match meanwhile:
            case "approve" | "reject":
                self.town.click(other, on["id"], on["revision"], meanwhile, None)
            case "edit":
                draft = self.town.draft(other, on["id"], on["revision"], ["b4"])
                self.town.confirm(other, draft.id if draft else "", None)
            case "cancel":
                self.town.cancel(on["run_id"], None)
            case _:
                self.pass_time(None)
        for held in set(self.town.held) - before:
            self.town.wake(held, kill=False)

    @rule(which=index, name=workers, mishap=mishaps_at_work)
    def approve_and_work(self, which: int, name: str, mishap: Interruption | None) -> None:
        self.approve(which, None)
        self.work(name, mishap)

    @rule(who=st.sampled_from(PEOPLE[:2]), which=index, instead=bills, mishap=mishaps, confirm=st.booleans())
    def edit(
        self, who: str, which: int, instead: list[str], mishap: Interruption | None, confirm: bool
    ) -> None:
        if (on := self._approval(which)) is None:
            return
        draft = self.town.draft(who, on["id"], on["revision"], instead)
        if draft is not None and confirm:
            self.town.confirm(who, draft.id, mishap)
        elif draft is not None:
            self.drafts.append((who, draft.id))

    @precondition(lambda self: self.drafts)
    @rule(which=index, mishap=mishaps)
    def confirm_edit(self, which: int, mishap: Interruption | None) -> None:
        self.town.confirm(*self.drafts[-1 - which % len(self.drafts)], mishap)

    @rule(thread=st.integers(0, 1), plan=plans)
    def start(self, thread: int, plan: Any) -> None:
        self.town.start(thread, plan)

    @rule(which=index, mishap=mishaps)
    def stop_or_retry(self, which: int, mishap: Interruption | None) -> None:
        failed = self._runs("r.status = 'failed'")
        under_way = self._runs("r.status IN ('queued', 'running', 'awaiting_approval')")
        if failed:
            self.town.retry(failed[which % len(failed)], mishap)
        elif under_way:
            self.town.cancel(under_way[which % len(under_way)], mishap)

    def _runs(self, where: str) -> list[str]:
        found = self.town.rows(f"SELECT r.id FROM runs r WHERE {where} ORDER BY r.created_at")
        return [row["id"] for row in found]

    @rule(again=st.booleans(), mishap=mishaps)
    def settle(self, again: bool, mishap: Interruption | None) -> None:
        found = self.town.rows(
            """SELECT a.id, a.revision, c.attempts, c.key, c.tool, c.input
  FROM calls c JOIN approvals a ON a.call_id = c.id WHERE c.status = 'unknown'
 ORDER BY c.created_at, c.position LIMIT 1"""
        )
        inside = {held.line.inside for held in self.town.held.values()}
        for call in found:
            paid = [bill for effect in self.town.world.of(call["key"]) for bill in effect.bills]
            half = bool(paid) and len(paid) < len(call["input"]["bills"])  # nobody could say yes or no
            if call["key"] in inside or half:
                continue
            again = again and not (paid and call["tool"] == "wire")  # nobody who sees that it was done would
            said: Said = "try_again" if again else "ran" if paid else "did_not_run"
            self.town.settle(call["id"], call["revision"], call["attempts"], said, mishap)

    # --- the world ---

    @rule(seconds=st.sampled_from([3, 3, 3, 16, 16, 70, 310, 3700, 86_500, None]))
    def pass_time(self, seconds: int | None) -> None:
        """So many seconds, or up to the next deadline."""
        if seconds is not None:
            self.town.pass_time(seconds)
            return
        [found] = self.town.rows(
            """SELECT extract(epoch FROM min(expires_at) - house_now())::float AS left FROM approvals
  WHERE status = 'pending'"""
        )
        if found["left"] is not None and found["left"] > 0:
            self.town.pass_time(found["left"] + 0.001)

    @rule(
        what=st.sampled_from(
            ["lost", "lost", "refused", "part", "busy", "due", "price", "gone", "strict", *WORKERS]
        )
    )
    def trouble(self, what: str) -> None:
        """The tool's or the model's next answer is amiss, the world moves, or a worker gets a new release."""
        world = self.town.world
        match what:
            case "busy":
                self.town.model.busy += 1
            case "due":
                world.due += 1
            case "price":
                world.price += 1
            case "gone":
                world.gone ^= {"b3"}
            case "strict":
                world.strict = not world.strict
            case "w1" | "w2":
                if not self.town.is_held(what):
                    self.town.deploy(what)
            case fault:
                world.faults.append(fault)

    # --- what must be so ---

    @invariant()
    def all_laws_hold(self) -> None:
        self.fine, before = False, self.fine
        assert before and self.town.faults() == []
        self.fine = True

    def teardown(self) -> None:
        """Nobody does anything any more, and still everything comes to its end."""
        for name in list(self.town.held):
            self.town.wake(name, kill=False)
        if not self.fine:  # it is told already
            return
        self.town.model.busy = 0
        for _ in range(MOST_ROUNDS):
            self.town.sweep()
            while self.town.work("w1"):
                pass
            if not self._stuck():
                break
            self.town.pass_time(self._left())
        assert self.town.faults() == []
        assert self._stuck() == []
        self.town.pass_time(LEASE + 1)
        while self.town.publish():
            pass
        assert self.town.rows("SELECT id FROM cards WHERE shown_version <> wanted_version") == []

    def _left(self) -> float:
        """Seconds until something may be done again, and one more."""
        [found] = self.town.rows(
            """SELECT extract(epoch FROM min(due) - house_now())::float AS left FROM (
  SELECT lease_until AS due FROM runs WHERE status = 'running' UNION ALL
  SELECT not_before FROM runs WHERE status = 'queued' UNION ALL
  SELECT lease_until FROM calls WHERE status = 'executing' UNION ALL
  SELECT not_before FROM calls WHERE status = 'asked' UNION ALL
  SELECT expires_at FROM approvals WHERE status = 'pending' UNION ALL
  SELECT claim_by FROM approvals WHERE status = 'approved' AND NOT attempted UNION ALL
  SELECT c.first_attempt_at + interval '24 hours' FROM calls c
   WHERE c.result IS NULL AND c.first_attempt_at IS NOT NULL) AS all_due WHERE due > house_now()"""
        )
        return float(found["left"] or 0) + 1

    def _stuck(self) -> list[dict[str, Any]]:
        return self.town.rows(
            """SELECT 'run' AS what, id, status::text FROM runs
  WHERE status NOT IN ('completed', 'exhausted', 'failed', 'cancelled')
UNION ALL SELECT 'call', id, status::text FROM calls WHERE result IS NULL AND status <> 'unknown'
UNION ALL SELECT 'approval', id, status::text FROM approvals
  WHERE status IN ('pending', 'approved', 'executing')"""
        )


@pytest.fixture
def town(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    """A town, in which what is logged is not printed."""
    before = structlog.get_config()
    with laws_of(database) as laws:
        made = Town(database, tmp_path, laws)
        for module in (leases, execute):
            monkeypatch.setattr(module, "clock", made.clock)
        quiet(made.log)
        yield made
        structlog.configure(**before)
        made.close()


def test_the_invariants_hold_in_whatever_order_things_happen(
    town: Town, examples: Iterator[tuple[settings, int]], part: int
) -> None:
    machine = type("AnyOrder", (AnyOrder,), {"town": town})
    for chosen, number in examples:
        run_machine(seed(number)(machine), settings=chosen)
