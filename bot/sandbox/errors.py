"""What Slack's server answers when it refuses: one exception that carries the documented code."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a block, a view or a message: where (a JSON pointer) and what."""

    pointer: str
    what: str

    def __str__(self) -> str:
        return f"[ERROR] {self.what} [json-pointer:{self.pointer}]"


class SlackError(Exception):
    """A refusal with Slack's error `code`, lines for `response_metadata.messages`, and further fields."""

    def __init__(self, code: str, messages: list[str] | None = None, **fields: Any) -> None:
        super().__init__(code)
        self.code = code
        self.messages = messages or []
        self.fields = fields

    def body(self) -> Json:
        """The JSON body of the answer, as the Web API sends it."""
        body: Json = {"ok": False, "error": self.code, **self.fields}
        if self.messages:
            body["response_metadata"] = {"messages": self.messages}
        return body


def missing_argument(name: str) -> SlackError:
    """The refusal of a call that lacks the required argument `name`."""
    return SlackError("invalid_arguments", [f"[ERROR] missing required field: {name}"])
