"""The soak's model: it proposes the refund that it was asked for, again if that could not be prepared."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.standins.provider_rules import check

PAYMENTS = re.compile(r"\bsoak_\d+\b")
MOST_TRIES = 9  # one run has twelve answers
Json = dict[str, Any]


class SoakModel:
    """Answers the JSON of Messages requests; `broken_rules` are those that the provider would refuse."""

    def __init__(self) -> None:
        self.requests = 0
        self.broken_rules: list[str] = []

    async def answer(self, request: Json) -> Json:
        """The JSON of the response; the same question has the same answer, ids included."""
        self.requests += 1
        violation = check(request)
        if violation is not None:
            self.broken_rules.append(violation.message)
        content = _content(request["messages"])
        calls = content[0]["type"] == "tool_use"
        return {
            "id": f"msg_{_digest(request['messages'])}",
            "type": "message",
            "role": "assistant",
            "model": str(request.get("model")),
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }


def _content(messages: list[Json]) -> list[Json]:
    wanted, results = list(_wanted(messages)), list(_results(messages))
    if not results or (_came_to_nothing(results[-1]) and len(results) < MOST_TRIES):
        called = {"payment_ids": wanted, "reason": "the charge failed"}
        id = f"toolu_{_digest(messages)}"
        return [{"type": "tool_use", "id": id, "name": "refund_payments", "input": called}]
    told = "It is done" if results[-1].get("executed") else "It was not done"
    return [{"type": "text", "text": f"{told}: {', '.join(wanted)}."}]


def _came_to_nothing(result: Json) -> bool:
    """Nothing ran, and nobody refused it: it could not be measured, or was left alone."""
    return result.get("executed") is False and not result.get("approvalDenied")


def _wanted(messages: list[Json]) -> Iterator[str]:
    """The payments that the person named."""
    for block in _blocks(messages[0]):
        yield from PAYMENTS.findall(block.get("text", ""))


def _results(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        for block in _blocks(message):
            if block["type"] == "tool_result":
                yield json.loads(_text(block["content"]))


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]
