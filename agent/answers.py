"""Reads an answer of the model: what is kept of it, and whether it is a turn, the last words, or no use.

Why the model stopped decides it: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.conversation import Block, text_of, tool_uses
from agent.model import Answer, Message, flaw_of
from agent.why import Code, Why, because
from store.values import new_id

GO_ON = "Please go on."
CUT_IN_A_CALL = (
    "Your answer was cut off at its length limit inside a call, so none of its calls ran and nobody was "
    "asked. Call again, with fewer words around it."
)
CUT = "Your answer was cut off at its length limit, and nobody has read it. Answer again, in fewer words."
SILENT = "Your answer was empty. Say what was done and what was not, or go on."
TOO_LARGE = because(Code.CONVERSATION_TOO_LARGE)
DECLINED = because(Code.DECLINED)

# What the provider takes back: https://platform.claude.com/docs/en/api/messages
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Turn:
    """An answer that the run goes on from: `content` is kept, `note` is what the house says to it."""

    content: list[Block]
    note: str | None = None


@dataclass(frozen=True)
class LastWords:
    """The answer that ends the run."""

    content: list[Block]


@dataclass(frozen=True)
class Useless:
    """Nothing of it can be kept: the same is asked again."""

    why: Why


@dataclass(frozen=True)
class Hopeless:
    """The same question has no other answer; people are told why."""

    why: Why


Reading = Turn | LastWords | Useless | Hopeless


def read_answer(asked: Sequence[Message], answer: Answer, *, closing: bool) -> Reading:
    """What an answer to the messages `asked` is; `closing`: it had to be the last one, without calls."""
    flaw = flaw_of(answer.content) or (None if closing else _flaw_of_calls(answer))
    if flaw is not None:
        return Useless(flaw)
    if answer.stop_reason == "refusal":
        return Hopeless(DECLINED)
    words = _words(answer.content)
    if closing:  # a call without a row would be an orphan in the history
        return LastWords(words if tool_uses(answer.content) or not words else answer.content)
    if answer.stop_reason == "model_context_window_exceeded":
        return Hopeless(TOO_LARGE)
    return _read_open(asked, answer, words)


def _read_open(asked: Sequence[Message], answer: Answer, words: list[Block]) -> Reading:
    """The run may go on after this answer."""
    calls = bool(tool_uses(answer.content))
    if answer.stop_reason == "max_tokens":
        return Turn(words, CUT_IN_A_CALL if calls else CUT)
    if calls:
        return Turn(_with_good_ids(asked, _calls_last(answer.content)))
    if answer.stop_reason == "pause_turn" and answer.content:
        return Turn(answer.content)
    if not words and not _was_told(asked, SILENT):
        return Turn([], SILENT)
    return LastWords(answer.content if words else [])


def next_content(said: Sequence[Message], untold: list[Block]) -> list[Block]:
    """What is said next, after the history `said`; nothing if it can be sent as it is."""
    if untold or said[-1]["role"] == "user":
        return untold
    # a paused answer whose tool runs at the provider goes on when it is sent back and nothing is added
    if said[-1]["content"][-1]["type"] not in {"text", "thinking", "redacted_thinking"}:
        return []
    return [said_by_house(GO_ON)]


def said_by_house(words: str) -> Block:
    """Words of the house, on the user's side of the conversation."""
    return {"type": "text", "text": words}


def _flaw_of_calls(answer: Answer) -> Why | None:
    """Why these calls cannot be made, nor sent back."""
    calls = tool_uses(answer.content)
    ids = [call["id"] for call in calls]
    if len(set(ids)) < len(ids):  # it may be one call that is there twice
        return because(Code.MODEL_SAME_ID)
    if not all(0 < len(call["name"]) <= _LONGEST_NAME for call in calls):
        return because(Code.MODEL_NAMELESS_CALL)
    return None


def _with_good_ids(asked: Sequence[Message], content: Sequence[Block]) -> list[Block]:
    """The answer with ids that a provider takes back: it refuses a conversation for ever that has others.

    Some models count their calls anew in each answer.
    """
    known = {call["id"] for message in asked for call in tool_uses(message["content"])}
    return [
        {**block, "id": new_id("toolu")}
        if block.get("type") == "tool_use" and (block["id"] in known or not _CALL_ID.fullmatch(block["id"]))
        else block
        for block in content
    ]


def _calls_last(content: Sequence[Block]) -> list[Block]:
    """The answer with its calls at the end: a provider refuses a conversation for ever where more follows.

    What was said after a call stands before it; thoughts after it are left out, for they may not move.
    """
    calls = tool_uses(content)
    first = content.index(calls[0])
    return [*content[:first], *_words(content[first:]), *calls]


def _words(content: Sequence[Block]) -> list[Block]:
    """Only what was said: an answer may not end in thoughts, nor hold a call that is not made."""
    return [block for block in content if block.get("type") == "text" and text_of([block])]


def _was_told(asked: Sequence[Message], words: str) -> bool:
    last: dict[str, Any] = asked[-1]["content"][-1]
    return last.get("text") == words
