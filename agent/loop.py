"""The agent's loop: runs until it is done or must wait for people; one turn, one checkpoint."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from agent import conversation, results
from agent.answers import (
    Hopeless,
    LastWords,
    Turn,
    Useless,
    next_content,
    read_answer,
    said_by_house,
)
from agent.conversation import Block
from agent.house import House
from agent.leases import Leases
from agent.model import Answer, Message, ModelBusy, ModelError, ToolSchema
from agent.outcome import Exhausted, Failed, Finished, Outcome, Retry
from agent.results import system_prompt
from agent.schema import InvalidInput, model_schema, split_input
from agent.tool import Tool
from agent.turn import Lost, Thread, work_on_turn
from agent.why import Code, Why, because
from store import calls, runs
from store.errors import StoreError
from store.records import Call, ClaimedRun, Run, RunId
from store.transitions import CallStatus
from store.values import new_id

MOST_FAULTS = 8
MOST_VETOED = 3
LONGEST_BACKOFF = 300.0  # seconds
LONGEST_WAIT = 3600.0  # seconds, also when the provider asks for more
CLOSING = (
    "Your budget for this run is used up and you have no tools left. Say briefly what was done, what was not,"
    " and what is still open."
)
LOST_TRACK = (
    "Nobody knows yet whether one of your calls took effect: this run ends here and you have no tools left."
    " Say briefly what was done, what was not, and that a person has to check the rest."
)
REFUSED_THRICE = (
    "You have tried three times what had been refused: this run ends here and you have no tools left."
    " Explain what you were going to do, that it was refused and why; say what was done all the same, and"
    " what was not."
)


async def advance(house: House, leases: Leases, claimed: ClaimedRun) -> Outcome:
    """Carry a claimed run on until it ends, waits or must be tried again.

    Finished, Exhausted and Paused are recorded already; Failed and Retry are the caller's to record. Raises
    Lost when another worker has the run.
    """
    try:
        thread = _thread(claimed)
    except conversation.SavedByNewer as error:
        return _unreadable(claimed, error.why)
    while True:
        if thread.run.faults >= MOST_FAULTS and not _under_way(thread.calls):  # its workers were gone
            return Failed(_worn_out(thread.run.faults, because(Code.LAST_WORKER_GONE)))
        if thread.open:
            waiting = await work_on_turn(house, leases, thread)
            if waiting is not None:
                return waiting
        try:
            ended = await _take_turn(house, thread)
        except ModelBusy as error:
            return _retry(thread.run, error.why, retry_after=error.retry_after)
        except ModelError as error:
            return Failed(error.why)
        if ended is not None:
            return ended


def _thread(claimed: ClaimedRun) -> Thread:
    own = [call for call in claimed.calls if call.run_id == claimed.run.id]
    opened = any(call.result is None for call in own)
    untold = [] if opened else conversation.untold(claimed)
    return Thread(claimed, conversation.messages(claimed), untold, own)


def _unreadable(claimed: ClaimedRun, why: Why) -> Outcome:
    """A worker of the other release may take it up meanwhile, as during a deploy."""
    if _under_way(call for call in claimed.calls if call.run_id == claimed.run.id):
        return Retry(_backoff(claimed.run), why.text)
    return _retry(claimed.run, why, Code.NOT_TAKEN_UP)


# --- a turn of the model ---


async def _take_turn(house: House, thread: Thread) -> Outcome | None:
    exhausted = thread.run.steps >= house.policy.agent.max_steps or _spent(house, thread.run)
    closing = CLOSING if exhausted else await _closing_words(house, thread)
    content = (
        [*thread.untold, said_by_house(closing)] if closing else next_content(thread.said, thread.untold)
    )
    house.progress.moved(thread.run.id)
    assert house.model is not None, "a worker has a model"
    asked = conversation.extended(thread.said, _by_user(content))
    answer = await house.model.answer(
        system=system_prompt(house.policy.agent.instructions, house.policy.agent.name),
        messages=asked,
        tools=_schemas(house.tools),
        closing=closing is not None,
    )
    match read_answer(asked, answer, closing=closing is not None):
        case Useless(why):
            return _retry(thread.run, why, Code.NO_USABLE_ANSWER)
        case Hopeless(why):
            return Failed(why)
        case LastWords(kept):
            body = [*_by_user(content), *_by_model(kept)]
            return await _finish(house, thread, replace(answer, content=kept), body, exhausted=exhausted)
        case Turn(kept, note):
            noted = _by_user([said_by_house(note)]) if note else []
            body = [*_by_user(content), *_by_model(kept), *noted]
            await _save_turn(house, thread, replace(answer, content=kept), body)
            return None
        case _ as never:
            assert_never(never)


async def _closing_words(house: House, thread: Thread) -> str | None:
    """What the model is told when this must be its last answer; None: it may go on."""
    if thread.lost_track:
        return LOST_TRACK
    if not any(call.status is CallStatus.VETOED for call in thread.calls):
        return None
    vetoed = await calls.count_vetoed(house.db, thread.run.id)
    return REFUSED_THRICE if vetoed >= MOST_VETOED else None


def _by_user(content: list[Block]) -> list[Message]:
    return [{"role": "user", "content": content}] if content else []


def _by_model(content: list[Block]) -> list[Message]:
    return [{"role": "assistant", "content": content}] if content else []


async def _finish(
    house: House, thread: Thread, answer: Answer, body: list[Message], *, exhausted: bool
) -> Outcome:
    text = conversation.text_of(answer.content)
    done = await runs.complete(
        house.db,
        thread.claimed,
        body=body,
        answer=text,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        exhausted=exhausted,
    )
    if not done:
        raise Lost(thread.run.id)
    return Exhausted(text) if exhausted else Finished(text)


async def _save_turn(house: House, thread: Thread, answer: Answer, body: list[Message]) -> None:
    uses = conversation.tool_uses(answer.content)
    new_calls = [_new_call(house.tools, position, use) for position, use in enumerate(uses)]
    made = await runs.save_turn(
        house.db,
        thread.claimed,
        body=body,
        calls=new_calls,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
    )
    if made is None:
        raise Lost(thread.run.id)
    run = thread.run
    run = replace(
        run,
        turn=run.turn + 1,
        steps=run.steps + 1,
        faults=0,
        input_tokens=run.input_tokens + answer.input_tokens,
        output_tokens=run.output_tokens + answer.output_tokens,
    )
    thread.claimed = replace(thread.claimed, run=run)
    thread.said = conversation.extended(thread.said, body)
    thread.untold = []
    thread.calls = made


def _new_call(tools: Mapping[str, Tool], position: int, use: Mapping[str, Any]) -> dict[str, Any]:
    tool = tools.get(use["name"])
    raw, rationale = use["input"], None
    if tool is not None:
        try:
            raw, rationale = split_input(tool, raw)
        except InvalidInput:
            raw = use["input"]  # kept as it came: the verdict will say what is wrong with it
    return {
        "id": new_id("call"),
        "position": position,
        "provider_id": use["id"],
        "tool": use["name"],
        "effect": tool.effect if tool else None,
        "input": raw,
        "rationale": rationale,
    }


def _schemas(tools: Mapping[str, Tool]) -> list[ToolSchema]:
    return [ToolSchema(**model_schema(tool)) for tool in tools.values()]


def _spent(house: House, run: Run) -> bool:
    budget = house.policy.agent.max_tokens
    return budget is not None and run.input_tokens + run.output_tokens >= budget


def _retry(run: Run, why: Why, in_short: Code = Code.NO_ANSWER, retry_after: float | None = None) -> Outcome:
    """Ask again later: not before the provider wants it, and later each time it happens in a row."""
    if run.faults + 1 >= MOST_FAULTS:
        return Failed(because(in_short, n=run.faults + 1, why=why))
    return Retry(max(_backoff(run), min(retry_after or 0.0, LONGEST_WAIT)), why.text)


def _backoff(run: Run) -> float:
    return min(2.0 ** (min(run.faults, MOST_FAULTS) + 1), LONGEST_BACKOFF)


# --- ends that are not the model's ---


async def record_fault(house: House, run_id: RunId, token: str, error: Exception) -> None:
    """Count what broke off a run that is held under `token`: it is tried again later, or it fails.

    Without the count it would be repeated for ever, with a question to the model each time.
    """
    run = await runs.read(house.db, run_id)
    assert run is not None, run_id
    conversation = await runs.read_conversation(house.db, run.conversation_id)
    why = because(Code.FAULT, error=type(error).__name__)
    if isinstance(error, StoreError):
        why = because(Code.DATABASE_FAULT, error=str(error))
    outcome: Outcome = Retry(_backoff(run), why.text)
    if run.faults + 1 >= MOST_FAULTS and not _under_way(await calls.of_turn(house.db, run_id, run.turn)):
        outcome = Failed(_worn_out(run.faults + 1, why))
    await record_end(house, ClaimedRun(run, conversation, token, (), (), (), ()), outcome)


def _worn_out(times: int, why: Why) -> Why:
    return because(Code.WORN_OUT, n=times, why=why)


def _under_way(turn: Iterable[Call]) -> bool:
    """Whether one of the calls may have begun and is not settled: only a run that goes on sees to it."""
    return any(
        call.status is CallStatus.EXECUTING or (call.status is CallStatus.ALLOWED and call.attempts > 0)
        for call in turn
    )


async def record_end(house: House, claimed: ClaimedRun, outcome: Outcome) -> None:
    """Write the ends that `advance` leaves to its caller."""
    if isinstance(outcome, Retry):
        await runs.requeue(house.db, claimed, seconds=outcome.after_seconds, why=outcome.error, fault=True)
    elif isinstance(outcome, Failed):
        cancelled, why = results.broken_off("").to_json(), outcome.why
        await runs.fail(house.db, claimed, why.text, cancelled, why_json=why.to_json())
