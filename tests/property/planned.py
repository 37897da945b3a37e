"""A model that does what the task says: a plan in JSON, read from the history, so nothing is remembered."""

import hashlib
import itertools
import json
from collections.abc import Sequence
from typing import Any

from agent.model import Answer, Message, ModelBusy, ToolSchema
from tests.standins.provider_rules import check

Plan = list[list[tuple[str, list[str]]]]
"""Turns, each the calls of one answer: a tool and its bills."""


class PlannedModel:
    """Answers with the plan's next turn, and with words when there is none; `broken` is what was wrong with
    what it was asked. `busy` is how many questions it will not answer."""

    name = "planned"

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.busy = 0

    async def answer(
        self, *, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema], closing: bool = False
    ) -> Answer:
        """See Model.answer."""
        self._look_at(system, messages, tools)
        if self.busy:
            self.busy -= 1
            raise ModelBusy("Overloaded.")
        calls = [] if closing else _next(messages)
        said = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:20]
        content = [
            {"type": "tool_use", "id": f"toolu_{said}_{place}", "name": tool, "input": {"bills": bills}}
            for place, (tool, bills) in enumerate(calls)
        ] or [{"type": "text", "text": "Done."}]
        return Answer(content, "tool_use" if calls else "end_turn", 1, 1, self.name)

    async def close(self) -> None:
        """See Model.close."""

    def _look_at(self, system: str, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> None:
        """The provider would take it, and every call has its result, in the order of the calls."""
        request: dict[str, Any] = {"model": "m", "max_tokens": 1000, "system": system}
        violation = check({**request, "messages": list(messages), "tools": [vars(tool) for tool in tools]})
        if violation is not None:
            self.broken.append(violation.message)
        for asked, answered in itertools.pairwise(messages):
            calls = [block["id"] for block in asked["content"] if block["type"] == "tool_use"]
            told = [b["tool_use_id"] for b in answered["content"] if b["type"] == "tool_result"]
            if asked["role"] == "assistant" and calls != told:
                self.broken.append(f"calls {calls} were answered with {told}")


def _next(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    """What the newest plan says next."""
    for at in reversed(range(len(messages))):
        plans = [
            block["text"]
            for block in messages[at]["content"]
            if messages[at]["role"] == "user" and block["type"] == "text" and block["text"].startswith("{")
        ]
        if plans:
            turn = sum(message["role"] == "assistant" for message in messages[at:])
            plan: Plan = json.loads(plans[-1])["plan"]
            return plan[turn] if turn < len(plan) else []
    return []
