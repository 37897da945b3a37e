"""A conversation as the model reads it: the stored turns, then what it has not been told yet."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent import results
from agent.model import Message
from agent.results import Result
from agent.why import Code, because
from store.records import Call, ClaimedRun, Edited, Json, Settlement
from store.runs import STATE_VERSION
from store.transitions import CallStatus

Block = dict[str, Any]


class SavedByNewer(Exception):
    """A turn was saved in a form that this release does not know; the text says what to do."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.why = because(Code.SAVED_BY_NEWER, form=version, known=STATE_VERSION)
        super().__init__(self.why.text)


def messages(claimed: ClaimedRun) -> list[Message]:
    """The stored turns of all runs up to this one, as they were sent and received.

    Raises SavedByNewer.
    """
    newest = max((turn.state_version for turn in claimed.turns), default=STATE_VERSION)
    if newest > STATE_VERSION:
        raise SavedByNewer(newest)
    return extended([], (message for turn in claimed.turns for message in turn.body))


def untold(claimed: ClaimedRun) -> list[Block]:
    """The content of the next message: results of the last turn's calls in the model's order, then what was
    settled too late for its run, then the messages of people that no turn holds yet."""
    last = claimed.turns[-1] if claimed.turns else None
    told_up_to = next((r.seq for r in claimed.runs if last and r.id == last.run_id), 0)
    answered = [
        result_block(call, claimed.edited.get(call.id))
        for call in claimed.calls
        if last and call.run_id == last.run_id and call.turn == last.seq
    ]
    tasks: list[Block] = [
        {"type": "text", "text": run.task}
        for run in claimed.runs
        if run.seq > told_up_to and run.task.strip()
    ]
    return answered + _settled_late(claimed, answered) + tasks


def _settled_late(claimed: ClaimedRun, answered: list[Block]) -> list[Block]:
    """What people said of calls of unknown outcome after their run had ended, and no message has yet."""
    told = [block for turn in claimed.turns for message in turn.body for block in message["content"]]
    told += answered
    made = ((one.call, settlement_block(one, claimed.edited.get(one.call.id))) for one in claimed.settled)
    return [block for call, block in made if block not in told and not _is_result_of(call, told)]


def _is_result_of(call: Call, told: list[Block]) -> bool:
    """Whether the settlement itself was the call's result, because no message had it before."""
    return "unknown" not in call.result["content"] and result_block(call) in told


def settlement_block(settlement: Settlement, edited: Edited | None = None) -> Block:
    """The text of a late settlement: always the same, so that a stored message says that it was told."""
    call, ran = settlement.call, settlement.call.status is CallStatus.DONE
    result = results.settled_by_person(call.tool, settlement.by, ran=ran, executed_input=settlement.input)
    if edited is not None:
        result = results.after_edit(result, edited)
    return {"type": "text", "text": results.settled_late(call.provider_id, result)}


def result_block(call: Call, edited: Edited | None = None) -> Block:
    """The `tool_result` of a call; one that a stopped run left open is told as far as it is known.

    A run is stopped without a look at each call: that a person had `edited` it is only said here.
    """
    result: Json = call.result
    if result is None:
        made = results.cancelled if call.status is CallStatus.PROPOSED else results.unknown
        result = made(call.tool).to_json()
    if edited is not None and (call.result is None or call.status is CallStatus.CANCELLED):
        result = results.after_edit(Result.from_json(result), edited).to_json()
    return results.tool_result_block(call.provider_id, result)


def extended(history: Iterable[Message], more: Iterable[Message]) -> list[Message]:
    """The history and further messages; the history itself is left as it is."""
    made = list(history)
    for message in more:
        _add(made, message)
    return made


def text_of(content: Iterable[Mapping[str, Any]]) -> str:
    """The words in an answer's content."""
    return "\n\n".join(block["text"] for block in content if block.get("type") == "text").strip()


def tool_uses(content: Iterable[Block]) -> list[Block]:
    """The calls in an answer's content, in the model's order."""
    return [block for block in content if block.get("type") == "tool_use"]


def _add(made: list[Message], message: Message) -> None:
    """Messages alternate: a second one of the same side joins the first."""
    if made and made[-1]["role"] == message["role"]:
        made[-1] = {**made[-1], "content": [*made[-1]["content"], *message["content"]]}
    else:
        made.append(message)
