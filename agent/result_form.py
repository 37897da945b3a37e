"""The form that all results share: what ran, what did not, who decided, in bounded and storable JSON."""

import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import IOBase
from typing import Any

from agent.canonical import Json, plain
from agent.legible import cut, error_text, line, storable
from agent.result_block import shorten
from store.records import Actor

NAME_LIMIT = 80
REASON_LIMIT = 3000  # https://docs.slack.dev/reference/block-kit/block-elements/plain-text-input-element
ERROR_LIMIT = 4000
OUTPUT_LIMIT = 1_000_000  # bytes: what is kept of what a tool returned
PLAIN_PARTS = 10_000  # values in one another: more take a while, wherever they are read
_SLACK_ID = re.compile(r"(?=.*[0-9])[UW][A-Z0-9]{6,}")
_NAMELESS = {"person": "a person", "operator": "the operator", "policy": "the policy"}


@dataclass(frozen=True)
class Result:
    """A call's result: `content` is the JSON object that the model reads."""

    content: dict[str, Json]
    is_error: bool = False

    def to_json(self) -> dict[str, Json]:
        """Give {"content", "is_error"}, as it is stored with the call."""
        return {"content": storable(self.content), "is_error": self.is_error}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Result":
        """What `to_json` gave."""
        return cls(stored["content"], stored["is_error"])


def kept_output(output: object) -> Json:
    """Give what a tool returned as JSON that can be stored; it never raises, for the effect has happened.

    The JSON of what is not `is_json` is made by user code: run this where user code runs.
    """
    try:
        return shorten(storable(plain(output)), OUTPUT_LIMIT)
    except BaseException as error:  # a value's own code makes its JSON and may raise anything, SystemExit too
        return unreadable(error_text(error))


def unreadable(why: str) -> Json:
    """Give what is kept instead of an output of which no JSON could be made."""
    return {"unreadable": f"The call ran, but what it returned cannot be kept ({line(why, 300)})."}


def is_lazy(output: object) -> bool:
    """Say whether it is work that is still to be done, like a generator, a map or a coroutine."""
    return issubclass(type(output), Iterator | AsyncIterator | Awaitable) and not isinstance(output, IOBase)


def is_json(value: object) -> bool:
    """Say whether a value is small and of exactly the types of JSON, so that nothing in it is user code."""
    left, seen = [value], 0
    while left and seen < PLAIN_PARTS:
        part, seen = left.pop(), seen + 1
        if type(part) is dict:
            left += [*part, *part.values()]
        elif type(part) is list:
            left += part
        elif type(part) not in {str, int, float, bool, type(None)}:
            return False
    return not left


def ran(
    tool: str,
    output: object,
    how: dict[str, Json],
    items: Sequence[str],
    done: Sequence[str] | None,
    instruction: str = "",
) -> Result:
    """Something happened: `how` says who let it, `done` are the items that went through (None: all)."""
    through = went_through(items, done)
    if through.get("partial"):
        instruction = f"{instruction} Only itemsDone went through: report that.".strip()
    content: dict[str, Json] = {"ok": True, "toolName": tool, "executed": True, **how, **through}
    content["data"] = kept_output(output)
    return Result(content | ({"instruction": instruction} if instruction else {}))


def did_not_run(tool: str, kind: str, instruction: str, **more: Json) -> Result:
    """Nothing happened, and nobody refused it in person; `kind` is the flag that says why."""
    content: dict[str, Json] = {"ok": False, "toolName": tool, kind: True, "executed": False}
    return Result({**content, **more, "instruction": instruction})


def as_error(result: Result) -> Result:
    """The same result, flagged as an error to the provider."""
    return Result(result.content, is_error=True)


def denial(tool: str, denied_by: str | None, reason: str | None, instruction: str) -> dict[str, Json]:
    """The content of a refusal; the reason is quoted as it is, up to 3,000 characters."""
    return {
        "ok": False,
        "approvalDenied": True,
        "toolName": tool,
        "deniedBy": denied_by,
        "reason": cut(reason.strip(), REASON_LIMIT) if reason and reason.strip() else None,
        "executed": False,
        "instruction": instruction,
    }


def went_through(items: Sequence[str], done: Sequence[str] | None) -> dict[str, Json]:
    """Which items went through, None: all; "partial" if it was not all of them, where these are known."""
    through = list(items) if done is None else list(done)
    if not items:
        return {"itemsDone": list[Json](through)} if through else {}
    went = frozenset(through)
    left = [item for item in items if item not in went]
    return {"partial": bool(left), "itemsDone": list[Json](through), "itemsNotDone": list[Json](left)}


def named(actor: Actor) -> str:
    """The cleaned name with the role, as "Marta (support_lead)"; never an id of Slack."""
    name = line(actor.name, NAME_LIMIT)
    # an id in the place of a name: the directory did not know the person's name
    if not name or name == actor.user_id or _SLACK_ID.fullmatch(name):
        name = _NAMELESS.get(actor.kind, "the house")
    return f"{name} ({line(actor.role, NAME_LIMIT)})" if actor.role else name


def names(actors: Sequence[Actor]) -> str:
    """The names of several people, with commas."""
    return ", ".join(map(named, actors))


def sentence(text: str | None, otherwise: str) -> str:
    """The text, bounded, or `otherwise` if it is blank: an empty error would tell the model nothing."""
    return cut(text.strip(), ERROR_LIMIT) if text and text.strip() else otherwise
