"""A turn's calls: judged and run in order up to the first that asks, then closed or left to people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent import conversation, results
from agent.execute import execute
from agent.house import House
from agent.leases import Leases
from agent.model import Message
from agent.outcome import Outcome, Paused
from agent.propose import Proposal, Refused, allow, ask, defer, judge_call
from store import calls, runs
from store.records import Actor, Call, ClaimedRun, Run
from store.transitions import CallStatus

ITEM_WAIT = 2.0  # seconds until an allowed call whose item another one holds is tried again, at first
MOST_ITEM_WAIT = 60.0
LONGEST_WAIT = 3600.0  # seconds: then the model is told, as with an approved call that cannot begin in time


class Lost(Exception):
    """The run is no longer this worker's: whatever it was about to write is not written."""


@dataclass
class Thread:
    """The run as this worker carries it on: what was said, and what of the last turn is still open."""

    claimed: ClaimedRun
    said: list[Message]
    untold: list[dict[str, Any]]
    calls: Sequence[Call] = field(default=())

    @property
    def run(self) -> Run:
        """The run, with the counters as this worker last wrote them."""
        return self.claimed.run

    @property
    def open(self) -> list[Call]:
        """The turn's calls without a result."""
        return [call for call in self.calls if call.result is None]

    @property
    def lost_track(self) -> bool:
        """Whether the model reads of a call of this turn that nobody knows what became of it."""
        return any(call.result is not None and "unknown" in call.result["content"] for call in self.calls)


async def work_on_turn(house: House, leases: Leases, thread: Thread) -> Outcome | None:
    """Judge and run the turn's open calls in order, up to the first that asks; None: the turn is closed."""
    proposal = Proposal(Actor("model", name=thread.run.agent))
    house.progress.moved(thread.run.id)
    open_calls = thread.open
    for at, call in enumerate(open_calls):
        rest = open_calls[at + 1 :]
        if call.status is CallStatus.EXECUTING:  # its worker is gone, or another one is at it
            return await _come_back(house, thread, f"{call.tool} is still executing")
        if call.status is CallStatus.PROPOSED:
            judged = await judge_call(house, thread.claimed, call, proposal.replaced, rest)
            if isinstance(judged, Refused):
                proposal.add(call, judged.status, judged.result)
                continue
            if judged.asks:
                ask(house, thread.claimed, proposal, judged)
                return await _measure_rest(house, thread, proposal, rest)
            allow(proposal, judged)
        if call.status in (CallStatus.PROPOSED, CallStatus.ALLOWED):
            proposal = await _record(house, thread, proposal)
            if await _run_allowed(house, leases, thread, call):
                continue
            now = await calls.read(house.db, call.id)
            if now is None or now.status is not CallStatus.UNKNOWN:
                waiting = await _wait(house, leases, thread, call)
                if waiting is None:
                    continue
                return waiting
        # unknown: a person has to look, as with a call that asks
        return await _measure_rest(house, thread, proposal, rest)
    await _record(house, thread, proposal)
    return await _close(house, thread)


async def _measure_rest(
    house: House, thread: Thread, proposal: Proposal, rest: Sequence[Call]
) -> Outcome | None:
    """A call waits for people: all the rest of the turn is measured and written with it, in one statement."""
    for at, call in enumerate(rest):
        if call.status is not CallStatus.PROPOSED:
            continue
        judged = await judge_call(house, thread.claimed, call, proposal.replaced, rest[at + 1 :])
        if isinstance(judged, Refused):
            proposal.add(call, judged.status, judged.result)
        elif judged.asks:
            ask(house, thread.claimed, proposal, judged)
        else:
            defer(proposal, judged)
    paused = bool(proposal.approvals)
    await _record(house, thread, proposal)
    return Paused() if paused else await _close(house, thread)


async def _record(house: House, thread: Thread, proposal: Proposal) -> Proposal:
    if proposal.outcomes and not await proposal.record(house, thread.claimed):
        raise Lost(thread.run.id)
    return Proposal(proposal.actor)


async def _run_allowed(house: House, leases: Leases, thread: Thread, call: Call) -> bool:
    """Execute an allowed call under this run's lease; False: it did not come to its end."""
    if leases.closing:
        return False
    token = leases.new_token()
    claimed = await calls.claim_allowed(
        house.db,
        call.id,
        run_token=thread.claimed.token,
        token=token,
        worker=leases.worker,
        lease=leases.seconds,
    )
    if claimed is None:
        return False
    with leases.holding(token):
        return await execute(house, leases, claimed, thread.claimed.token) is not None


async def _wait(house: House, leases: Leases, thread: Thread, call: Call) -> Outcome | None:
    """An allowed call did not come to its end: it is tried again; None: it has waited for too long.

    A worker that ends begins none: the run is queued again as it is, for any other.
    """
    if leases.closing:
        return await _queue_again(house, thread, "its worker was asked to end", 0.0)
    waited = await calls.waited(house.db, call.id)
    if waited > LONGEST_WAIT and await _give_up(house, thread, call):
        return None
    return await _come_back(house, thread, f"{call.tool} waits for its items or for another try", waited / 4)


async def _give_up(house: House, thread: Thread, call: Call) -> bool:
    """Tell the model that its items were never free; False: an attempt has begun, which has to end."""
    result = results.waited_in_vain(call.tool).to_json()
    return await calls.give_up_waiting(house.db, call.id, run_token=thread.claimed.token, result=result)


async def _come_back(house: House, thread: Thread, why: str, seconds: float = 0.0) -> Outcome:
    """Something that is no person's to decide is in the way: the run is queued again, with a time."""
    return await _queue_again(house, thread, why, min(max(seconds, ITEM_WAIT), MOST_ITEM_WAIT))


async def _queue_again(house: House, thread: Thread, why: str, wait: float) -> Outcome:
    if not await runs.requeue(house.db, thread.claimed, seconds=wait, why=why, fault=False):
        raise Lost(thread.run.id)
    return Paused()


async def _close(house: House, thread: Thread) -> Outcome | None:
    """Every call of the turn has been looked at: with all results the model is told, else the run waits."""
    thread.calls = await calls.of_turn(house.db, thread.run.id, thread.run.turn)
    if thread.open:
        if await runs.pause(house.db, thread.claimed):
            return Paused()
        # what was open was settled at this moment, or the run was taken over
        thread.calls = await calls.of_turn(house.db, thread.run.id, thread.run.turn)
        if thread.open:
            raise Lost(thread.run.id)
    thread.untold = [conversation.result_block(call) for call in thread.calls]
    return None
