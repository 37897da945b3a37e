"""Executes a claimed call: validate again, check the world again, attempt once, record what happened."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from pydantic import BaseModel

from agent import results
from agent.drift import Stale, is_as_shown
from agent.edited import edit_of, with_edit
from agent.house import House
from agent.leases import Leases, clock
from agent.measure import CannotMeasure, as_shown, context
from agent.progress import Count
from agent.recheck import recheck, recheck_in, shown_of
from agent.result_form import is_json, is_lazy, kept_output, unreadable
from agent.results import Result
from agent.tool import Tool, ToolError
from agent.usercode import NotBegun, UserCodeFailed, UserCodeTimeout
from agent.why import Code, Why, because, said
from store import calls, runs
from store.records import Actor, ClaimedCall, Edited, Ended, Json
from store.runs import NewApproval
from store.values import new_id

log = structlog.get_logger(__name__)

MOST_ATTEMPTS = 5
SUPERSESSIONS_TO_TELL = 3


async def execute(house: House, leases: Leases, claimed: ClaimedCall, run_token: str) -> Ended | None:
    """Carry a claimed call to its end.

    Returns how it ended, or None if it did not: given back for another try, unknown, or the claim was lost.
    If this was the last open call of its turn, the run is then held by this worker under `run_token`.
    """
    execution = Execution(house, leases, claimed, run_token)
    if claimed.call.attempts == 0:
        try:
            stale = await recheck(house, claimed)
        except CannotMeasure as error:
            await execution.release(recheck_in(claimed), error.why)
            return None
        if stale is not None:
            return await execution.supersede(stale)
    return await execution.attempt()


class Execution:
    """One claimed call on its way; the statements guard every step with the claim's token."""

    def __init__(self, house: House, leases: Leases, claimed: ClaimedCall, run_token: str) -> None:
        self.house, self.leases, self.claimed, self.run_token = house, leases, claimed, run_token
        self.call, self.approval = claimed.call, claimed.approval
        self.shown = shown_of(claimed)
        self.tool = house.tools.get(self.call.tool)
        self.attempts = claimed.call.attempts
        self.edited: Edited | None = None
        self.started = time.monotonic()

    async def supersede(self, stale: Stale) -> Ended | None:
        """Record that it never ran; after several in a row the requester hears of it."""
        notices: list[dict[str, Any]] = []
        approval = self.approval
        if approval is not None and approval.supersessions + 1 >= SUPERSESSIONS_TO_TELL:
            notices.append(
                {
                    "dedupe_key": f"superseded:{approval.id}",
                    "kind": "superseded_thrice",
                    "data": {"approval_id": approval.id},
                }
            )
        told = await with_edit(self.house, approval, stale.result)
        return await calls.supersede(
            self.house.db, self.claimed, **self._ending(told, stale.outcome, notices=notices)
        )

    # --- the attempt ---

    async def attempt(self) -> Ended | None:
        """Commit that it begins, call the tool, record what became of it."""
        tool, key = self.tool, self.call.key or (self.approval.id if self.approval else self.call.id)
        input = await self._input_to_run()
        if tool is None or input is None or not self._may_begin():
            changed = because(Code.CHANGED_AFTER_ATTEMPT, tool=self.call.tool)
            return await self._given_up(changed)
        if self.house.user_code.holds(key):
            inside = because(Code.STILL_INSIDE, tool=tool.name)
            return await self.lost(inside, wait=tool.timeout_seconds)
        if self.leases.closing and await self.release(0, because(Code.WORKER_ENDS)):
            return None
        # read before it begins: between what happens and its record there is nothing to wait for
        self.edited = await edit_of(self.house, self.approval)
        since = clock()
        started = await calls.start_attempt(
            self.house.db,
            self.claimed,
            key=key,
            repeatable=self._is_repeatable(),
            only_reads=self._is_read_only(),
            lease=self.leases.seconds,
        )
        if started is None:
            if await calls.is_too_old(self.house.db, self.call.id):
                return await self._given_up(because(Code.TOO_OLD))
            return None
        self.leases.extended(self.claimed.token, since)
        self.attempts = self.call.attempts + 1
        return await self._run(tool, input, started)

    async def _input_to_run(self) -> BaseModel | None:
        """The input, if tool and schema still read it as it was shown, for the same effect; else None."""
        tool = self.tool
        if tool is None or not is_as_shown(tool, self.call.effect, self.shown):
            return None
        try:
            return await as_shown(self.house, tool, self.shown)
        except CannotMeasure:
            return None

    async def _run(self, tool: Tool, input: BaseModel, key: str) -> Ended | None:
        count = Count()
        ctx = context(tool, self.claimed.run, key=key, attempt=self.attempts, count=count)
        try:
            with self.house.progress.counting(self.call.run_id, count):
                output = await self.house.user_code.run(
                    *(tool.name, tool.execute, input, ctx),
                    timeout=tool.timeout_seconds,
                    key=key,
                    still=self._is_ours,
                )
        except NotBegun:
            # this process slept, or its threads were full: somebody else may have it, and nothing is recorded
            log.warning("a lease was over before its tool began", tool=tool.name, call=self.call.id)
            return None
        except ToolError as error:
            done, why = self._of_the_call(error.done, said(error.message))
            if not done and (error.done or self.attempts > 1):
                # it did something else than its items; or an earlier attempt, of which it does not speak, may
                # have gone through
                return await self.broke_off(why)
            return await self.failed(why, done)
        except UserCodeTimeout as error:
            if not error.started and self.attempts == 1:
                nothing = because(Code.NOTHING_HAPPENED, tool=tool.name, seconds=error.seconds)
                return await self.failed(nothing, ())
            return await self.broke_off(_how_far(error.why, count))
        except UserCodeFailed as error:  # nobody knows what happened
            why = because(Code.BROKE_OFF, tool=tool.name, error=error.text)
            return await self.broke_off(_how_far(why, count))
        if is_lazy(output):
            lazy = because(Code.LAZY, tool=tool.name, given=type(output).__name__)
            return await self.broke_off(lazy)
        return await self.done(await self._kept(tool, output))

    async def _kept(self, tool: Tool, output: object) -> Json:
        if is_json(output):
            return kept_output(output)
        try:
            kept: Json = await self.house.user_code.run(
                tool.name, kept_output, output, timeout=tool.timeout_seconds
            )
        except UserCodeTimeout as error:
            return unreadable(str(error))
        return kept

    async def done(self, kept: Json) -> Ended | None:
        """It ran, and this is kept of what it returned."""
        outcome = {"kind": "executed", "text": None, "output": kept, "done": None, "seconds": self._seconds()}
        notices = [] if self.approval or self._is_read_only() else [self._call_ran()]
        return await calls.finish_done(
            self.house.db,
            self.claimed,
            **self._ending(self._executed(kept), outcome, output=kept, notices=notices),
        )

    async def failed(self, why: Why, done: Sequence[str]) -> Ended | None:
        """The tool knows that it failed, and what it did before."""
        result = results.failed(
            self.call.tool, why.text, approved_by=self._approvers(), items=self.shown.items, done=done
        )
        if self.edited is not None:
            result = results.after_edit(result, self.edited)
        outcome = {
            "kind": "failed",
            "text": why.text,
            "why": why.to_json(),
            "done": list(done),
            "seconds": self._seconds(),
        }
        return await calls.finish_failed(
            self.house.db, self.claimed, **self._ending(result, outcome, done_items=done)
        )

    def _of_the_call(self, done: Iterable[str], why: Why) -> tuple[tuple[str, ...], Why]:
        """The call's own items of those that a tool names, each once; the reason names any other."""
        named, items = dict.fromkeys(done), set(self.shown.items)
        others = [name for name in named if items and name not in items]
        if not others:
            return tuple(named), why
        told = why.and_also(because(Code.NO_ITEMS, items=", ".join(others)))
        return tuple(name for name in named if name in items), told

    async def broke_off(self, why: Why) -> Ended | None:
        """The tool did not say what happened; of one that only reads, nothing can have."""
        if self._is_read_only():
            return await self.failed(why, ())
        return await self.lost(why, wait=min(2.0**self.attempts, 60.0))

    async def lost(self, why: Why, *, wait: float) -> Ended | None:
        """Nobody knows whether it happened: the same key again, or a person."""
        may_repeat = self._is_repeatable() and self.attempts < MOST_ATTEMPTS
        if may_repeat and await self.release(wait, why):
            return None
        return await self._given_up(why)

    async def _given_up(self, why: Why) -> Ended | None:
        """It is not tried again: nothing can have happened, or a person has to look."""
        if self._is_read_only():
            return await self.failed(why, ())
        await self.unknown(why)
        return None

    async def release(self, seconds: float, why: Why) -> bool:
        """Give it back, to be tried again after so many seconds; False: it may not be."""
        return await calls.release(
            self.house.db, self.call.id, self.claimed.token, seconds=seconds, why=why.text
        )

    async def unknown(self, why: Why) -> None:
        """Open until a person settles it."""
        await mark_unknown(self.house, self.claimed, why)

    # --- what is told ---

    def _ending(
        self,
        result: Result,
        outcome: dict[str, Json],
        *,
        output: Json = None,
        done_items: Sequence[str] | None = None,
        notices: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        return {
            "result": result.to_json(),
            "outcome": outcome,
            "output": output,
            "done_items": done_items,
            "notices": notices,
            "run_token": self.run_token,
            "worker": self.leases.worker,
            "lease": self.leases.seconds,
        }

    def _executed(self, output: Json) -> Result:
        approval = self.approval
        if approval is None:
            return results.allowed(self.call.tool, output, items=self.shown.items)
        return results.executed(
            self.call.tool,
            output,
            approved_by=self._approvers(),
            executed_input=self.shown.input,
            asked_input=None if self.edited is None else self.edited.asked_input,
            edited=self.edited is not None,
            items=self.shown.items,
        )

    def _approvers(self) -> list[Actor]:
        if self.approval is None:
            return []
        return [vote.person for vote in self.approval.votes] or [
            actor for actor in [self.approval.decided_by] if actor
        ]

    def _call_ran(self) -> dict[str, Any]:
        return {
            "dedupe_key": f"ran:{self.call.id}",
            "kind": "call_ran",
            "data": {
                "call_id": self.call.id,
                "tool": self.call.tool,
                "text": self.shown.preview["title"],
            },
        }

    def _is_ours(self) -> bool:
        return self.leases.is_sure(self.claimed.token)

    def _is_read_only(self) -> bool:
        if self.approval is not None:  # it changed something when people were asked, whatever it is by now
            return False
        # once it was attempted, what counts is what it was then
        return self.call.only_reads if self.call.attempts else self.house.only_reads(self.call.tool)

    def _may_begin(self) -> bool:
        """For the first time, again as the tool allows it now, or because a person has just said so."""
        if self.attempts and self.call.only_reads != self.house.only_reads(self.call.tool):
            return False  # it would be another thing than what was begun
        outcome = (self.approval and self.approval.outcome) or {}
        let = outcome.get("kind") == "tried_again" and outcome.get("attempts") == self.attempts
        return self.attempts == 0 or self._is_repeatable() or let

    def _is_repeatable(self) -> bool:
        return self._is_read_only() or (self.tool is not None and self.tool.repeatable)

    def _seconds(self) -> float:
        return round(time.monotonic() - self.started, 3)


def _how_far(why: Why, count: Count) -> Why:
    """Why it broke off, with how far the tool said that it was, for whoever has to look."""
    if count.said is None:
        return why
    done, total = count.said
    if total is None:
        return why.and_also(because(Code.COUNTED, done=done))
    return why.and_also(because(Code.COUNTED_OF, done=done, total=total))


async def mark_unknown(house: House, claimed: ClaimedCall, why: Why, *, lapsed: bool = False) -> bool:
    """Make the call unknown; a call that was not asked gets an approval born as unknown, and its card."""
    approval: NewApproval | None = None
    if claimed.approval is None:
        approval = await _born_unknown(house, claimed)
    return await calls.mark_unknown(
        house.db,
        claimed.call.id,
        claimed.token,
        why=why.text,
        why_json=why.to_json(),
        approval=approval,
        lapsed=lapsed,
    )


async def _born_unknown(house: House, claimed: ClaimedCall) -> NewApproval:
    rule = house.policy.rules.get(claimed.call.tool) or next(iter(house.policy.rules.values()))
    conversation = await runs.read_conversation(house.db, claimed.run.conversation_id)
    return NewApproval(
        new_id("apr"),
        claimed.call.id,
        claimed.call.tool,
        claimed.call.effect or claimed.call.tool,
        rule,
        shown_of(claimed),
        conversation.team_id,
    )
