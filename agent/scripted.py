"""A model that follows a script: for the demo, and for tests that must see what the model was told.

Nothing is remembered between answers: which step applies is read from the history, so the process may
be killed and started again between any two of them. Only what `assert_done` reports is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.model import Answer, Message, ModelRefused, ToolSchema

SCRIPTED = "scripted"


class UnexpectedCall(ModelRefused):
    """The model was asked something its script does not foresee."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 400)


class UnusedSteps(AssertionError):
    """The script was not followed to its end."""


@dataclass(frozen=True)
class Asked:
    """One question to the model, with what scripts look at."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSchema]
    closing: bool = False

    @property
    def text(self) -> str:
        """The texts of the last message that has any from a person or the house."""
        return next((text for message in reversed(self.messages) if (text := _user_text(message))), "")

    @property
    def results(self) -> list[Any]:
        """The contents of the last message's results, in order: JSON if it is some, else the text."""
        return [_result(block) for block in _blocks(self.messages[-1]) if block["type"] == "tool_result"]

    def result_of(self, tool: str) -> Any:
        """The content of the newest result of that tool; raises LookupError if there is none."""
        blocks = [block for message in self.messages for block in _blocks(message)]
        ids = {block["id"] for block in blocks if block["type"] == "tool_use" and block["name"] == tool}
        for block in reversed(blocks):
            if block["type"] == "tool_result" and block["tool_use_id"] in ids:
                return _result(block)
        raise LookupError(f"no result of {tool} in the history")


Expectation = Callable[[Asked], str | None]
"""None if it is met, else what was expected."""


@dataclass(frozen=True)
class Say:
    """A text block of an answer."""

    text: str | Callable[[Asked], str]


@dataclass(frozen=True)
class Call:
    """A call of a tool in an answer."""

    tool: str
    input: Mapping[str, Any] | Callable[[Asked], Mapping[str, Any]]
    id: str | None = None


@dataclass(frozen=True)
class Step:
    """One answer; the house must ask for it, unless it is optional."""

    parts: tuple[Say | Call, ...]
    expect: Expectation | None = None
    optional: bool = False


@dataclass(frozen=True)
class Script:
    """The answers of one conversation, in order; `when` looks at the text it begins with."""

    steps: tuple[Step, ...]
    when: Callable[[str], bool]
    per_message: bool = False

    def begins(self, messages: Sequence[Message]) -> int | None:
        """The index of the message from which the steps are counted; None if this is another's."""
        texts = [(index, text) for index, message in enumerate(messages) if (text := _user_text(message))]
        candidates = reversed(texts) if self.per_message else texts[:1]
        return next((index for index, text in candidates if self.when(text)), None)


def script(
    *steps: Step, when: Callable[[str], bool] = lambda text: True, per_message: bool = False
) -> Script:
    """The script of the conversations whose first text satisfies `when`.

    Its steps are counted over all runs of the conversation; with `per_message` they begin anew with
    the last text that satisfies `when`.
    """
    return Script(steps, when, per_message)


def step(*parts: Say | Call, expect: Expectation | None = None, optional: bool = False) -> Step:
    """One answer: its texts first, then its calls, as a model answers."""
    texts = [part for part in parts if isinstance(part, Say)]
    calls = [part for part in parts if isinstance(part, Call)]
    return Step((*texts, *calls), expect, optional)


def say(text: str | Callable[[Asked], str]) -> Say:
    """A text, or one made from what was asked."""
    return Say(text)


def call(
    tool: str, input: Mapping[str, Any] | Callable[[Asked], Mapping[str, Any]], id: str | None = None
) -> Call:
    """A call with this input, or with one made from what was asked; the id is made up unless given."""
    return Call(tool, input, id)


def expect_text(contains: str) -> Expectation:
    """The last message has a text with `contains` in it."""

    def met(asked: Asked) -> str | None:
        found = contains in _user_text(asked.messages[-1])
        return None if found else f"a last message with the text {contains!r}"

    return met


def expect_results(wanted: int | Callable[[list[Any]], bool]) -> Expectation:
    """The last message has that many results, or results of which the predicate holds."""

    def met(asked: Asked) -> str | None:
        if isinstance(wanted, int):
            return None if len(asked.results) == wanted else f"{wanted} results"
        return None if asked.results and wanted(asked.results) else "other results"

    return met


class ScriptedModel:
    """Answers from the first script whose conversation it is (per message: the one begun last).

    Raises UnexpectedCall when no script is meant, its steps are used up, an expectation is not met, or
    a step with calls is asked to close. The same question gets the same answer, ids included.
    """

    def __init__(self, *scripts: Script, name: str = SCRIPTED) -> None:
        self.name = name
        self.scripts = scripts
        self.used: set[tuple[int, int]] = set()
        self.unexpected: list[UnexpectedCall] = []

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """See Model.answer."""
        return self.follow(Asked(system, messages, tools, closing))

    async def close(self) -> None:
        """See Model.close."""

    def follow(self, asked: Asked) -> Answer:
        """The answer to `asked`; what was unexpected is kept for `assert_done` as well."""
        try:
            return self._follow(asked)
        except UnexpectedCall as error:
            self.unexpected.append(error)
            raise

    def respond(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the JSON of a Messages request with the JSON of a response."""
        answer = self.follow(_read_request(request))
        return {
            "id": f"msg_{_digest(request['messages'])}",
            "type": "message",
            "role": "assistant",
            "model": str(request.get("model", self.name)),
            "content": answer.content,
            "stop_reason": answer.stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
        }

    def assert_done(self) -> None:
        """Raise the first UnexpectedCall there was, or UnusedSteps if a step was never asked for."""
        if self.unexpected:
            raise self.unexpected[0]
        unused = [
            f"script {number + 1}, step {position + 1}"
            for number, each in enumerate(self.scripts)
            for position, wanted in enumerate(each.steps)
            if not wanted.optional and (number, position) not in self.used
        ]
        if unused:
            raise UnusedSteps(f"never asked for: {'; '.join(unused)}")

    def _follow(self, asked: Asked) -> Answer:
        number, begin = self._choose(asked)
        steps = self.scripts[number].steps
        position = sum(message["role"] == "assistant" for message in asked.messages[begin:])
        where = f"script {number + 1}, step {position + 1}"
        if position >= len(steps):
            raise UnexpectedCall(f"{where}: the script has only {len(steps)} steps{_seen(asked)}")
        current = steps[position]
        missing = current.expect(asked) if current.expect else None
        if missing:
            raise UnexpectedCall(f"{where}: expected {missing}{_seen(asked)}")
        if asked.closing and any(isinstance(part, Call) for part in current.parts):
            raise UnexpectedCall(f"{where}: has calls, but closing words were asked for")
        self.used.add((number, position))
        return _make_answer(current, asked, self.name)

    def _choose(self, asked: Asked) -> tuple[int, int]:
        begins = ((each.begins(asked.messages), -number) for number, each in enumerate(self.scripts))
        begun = [(begin, number) for begin, number in begins if begin is not None]
        if not begun:
            raise UnexpectedCall(f"no script is meant{_seen(asked)}")
        begin, number = max(begun)
        return -number, begin


def _make_answer(current: Step, asked: Asked, model: str) -> Answer:
    content = [_make_block(part, asked, place) for place, part in enumerate(current.parts)]
    calls = any(isinstance(part, Call) for part in current.parts)
    return Answer(
        content=content,
        stop_reason="tool_use" if calls else "end_turn",
        input_tokens=_tokens([asked.system, *asked.messages]),
        output_tokens=_tokens(content),
        model=model,
    )


def _make_block(part: Say | Call, asked: Asked, place: int) -> dict[str, Any]:
    if isinstance(part, Say):
        return {"type": "text", "text": part.text(asked) if callable(part.text) else part.text}
    made = part.input(asked) if callable(part.input) else part.input
    # From the whole history: unique to this conversation and step, and the same after a restart.
    id = part.id or f"toolu_{_digest([*asked.messages, place])}"
    return {"type": "tool_use", "id": id, "name": part.tool, "input": dict(made)}


def _read_request(request: Mapping[str, Any]) -> Asked:
    system = request.get("system", "")
    return Asked(
        system=system if isinstance(system, str) else "\n".join(block["text"] for block in system),
        messages=request["messages"],
        tools=[
            ToolSchema(tool["name"], tool.get("description", ""), tool["input_schema"])
            for tool in request.get("tools", ())
        ],
        closing=request.get("tool_choice", {}).get("type") == "none",
    )


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _user_text(message: Message) -> str:
    return _text(_blocks(message)) if message["role"] == "user" else ""


def _result(block: Mapping[str, Any]) -> Any:
    content = block.get("content", "")
    text = content if isinstance(content, str) else _text(content)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _seen(asked: Asked) -> str:
    return f"; the last message was {json.dumps(asked.messages[-1:], ensure_ascii=False)[:1000]}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _tokens(value: object) -> int:
    # Four characters a token, so that budgets of tokens can be tested.
    return 1 + len(json.dumps(value)) // 4
