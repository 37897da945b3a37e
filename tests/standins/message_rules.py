"""The provider's rules for the messages of a request; see provider_rules for the sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

MAX_MESSAGES = 100_000
BLOCK_ID = re.compile(r"[a-zA-Z0-9_-]+")

BLOCK_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {  # required, optional
    "text": (frozenset({"text"}), frozenset({"citations", "cache_control"})),
    "tool_use": (
        frozenset({"id", "name", "input"}),
        frozenset({"caller", "toolset_name", "cache_control"}),
    ),
    "tool_result": (
        frozenset({"tool_use_id"}),
        frozenset({"content", "is_error", "toolset_name", "cache_control"}),
    ),
    "server_tool_use": (frozenset({"id", "name", "input"}), frozenset({"caller", "cache_control"})),
    "web_search_tool_result": (frozenset({"tool_use_id", "content"}), frozenset({"caller", "cache_control"})),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
    "image": (frozenset({"source"}), frozenset({"cache_control"})),
    "document": (frozenset({"source"}), frozenset({"title", "context", "citations", "cache_control"})),
    "search_result": (frozenset({"source", "title", "content"}), frozenset({"citations", "cache_control"})),
}
ASSISTANT_BLOCKS = frozenset({"text", "tool_use", "thinking", "redacted_thinking"}) | {
    "server_tool_use",
    "web_search_tool_result",
}
USER_BLOCKS = frozenset({"text", "tool_result", "image", "document", "search_result"})
RESULT_BLOCKS = frozenset({"text", "image", "document", "search_result"})

# Models after these refuse a last message of the assistant.
PREFILLED = re.compile(r"claude-(opus|sonnet|haiku)-4-5(-\d{8})?")

Request = Mapping[str, Any]
Block = dict[str, Any]
Message = dict[str, Any]


def blocks_of(message: Message) -> list[Block]:
    """The content as blocks; a string stands for one text."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def each_block(request: Request) -> Iterator[tuple[str, Message, Block]]:
    """Every block with the provider's name for its place and the message it is in."""
    for index, message in enumerate(request["messages"]):
        for place, block in enumerate(blocks_of(message)):
            yield f"messages.{index}.content.{place}", message, block


def message_shape(request: Request) -> Iterator[str]:
    messages = request["messages"]
    if not isinstance(messages, list):
        yield "messages: Input should be a valid list"
        return
    if not messages:
        yield "messages: at least one message is required"
    if len(messages) > MAX_MESSAGES:
        yield f"messages: List should have at most {MAX_MESSAGES} items"
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            yield f"messages.{index}: Input should be a valid dictionary"
            continue
        for name in ("role", "content"):
            if name not in message:
                yield f"messages.{index}.{name}: Field required"
        for name in message.keys() - {"role", "content"}:
            yield f"messages.{index}.{name}: Extra inputs are not permitted"
        if not isinstance(message.get("content"), str | list):
            yield f"messages.{index}.content: Input should be a valid list"


def roles(request: Request) -> Iterator[str]:
    for index, message in enumerate(request["messages"]):
        if message["role"] not in ("user", "assistant"):
            yield f"messages.{index}.role: Input should be 'user' or 'assistant'"


def first_is_user(request: Request) -> Iterator[str]:
    if request["messages"][0]["role"] != "user":
        yield 'messages: first message must use the "user" role'


def content_is_there(request: Request) -> Iterator[str]:
    for index, message in enumerate(request["messages"]):
        if not message["content"]:
            yield f"messages.{index}: all messages must have non-empty content"


def block_shape(request: Request) -> Iterator[str]:
    for where, message, block in each_block(request):
        if not isinstance(block, dict) or block.get("type") not in BLOCK_FIELDS:
            yield f"{where}: Input tag does not match any of the expected tags"
        else:
            yield from wrong_fields(where, block)
            allowed = USER_BLOCKS if message["role"] == "user" else ASSISTANT_BLOCKS
            if block["type"] not in allowed:
                yield f"{where}: `{block['type']}` blocks are not allowed in `{message['role']}` messages"


def wrong_fields(where: str, block: Block) -> Iterator[str]:
    required, optional = BLOCK_FIELDS[block["type"]]
    for name in required - block.keys():
        yield f"{where}.{block['type']}.{name}: Field required"
    for name in block.keys() - required - optional - {"type"}:
        yield f"{where}.{block['type']}.{name}: Extra inputs are not permitted"


def texts(request: Request) -> Iterator[str]:
    def inside(block: Block) -> Iterator[Block]:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from (part for part in block["content"] if isinstance(part, dict))

    for where, _, block in each_block(request):
        for text in (part.get("text") for part in inside(block) if part.get("type") == "text"):
            if not isinstance(text, str):
                yield f"{where}.text.text: Input should be a valid string"
            elif not text:
                yield "messages: text content blocks must be non-empty"
            elif not text.strip():
                yield "messages: text content blocks must contain non-whitespace text"


def user_citations(request: Request) -> Iterator[str]:
    for where, message, block in each_block(request):
        if message["role"] == "user" and block["type"] == "text" and block.get("citations"):
            yield f"{where}.text.citations: citations are not allowed in `user` messages"


def tool_use_shape(request: Request) -> Iterator[str]:
    for where, _, block in each_block(request):
        if block["type"] != "tool_use":
            continue
        if not isinstance(block["id"], str) or not BLOCK_ID.fullmatch(block["id"]):
            yield f"{where}.tool_use.id: String should match pattern '^{BLOCK_ID.pattern}$'"
        if not isinstance(block["name"], str) or not 1 <= len(block["name"]) <= 200:
            yield f"{where}.tool_use.name: String should have 1 to 200 characters"
        if not isinstance(block["input"], dict):
            yield f"{where}.tool_use.input: Input should be a valid dictionary"


def tool_result_shape(request: Request) -> Iterator[str]:
    for where, _, block in each_block(request):
        if block["type"] != "tool_result":
            continue
        where, content = f"{where}.tool_result", block.get("content", "")
        if not isinstance(block["tool_use_id"], str) or not BLOCK_ID.fullmatch(block["tool_use_id"]):
            yield f"{where}.tool_use_id: String should match pattern '^{BLOCK_ID.pattern}$'"
        if not isinstance(block.get("is_error", False), bool):
            yield f"{where}.is_error: Input should be a valid boolean"
        if isinstance(content, str):
            continue
        if not isinstance(content, list):
            yield f"{where}.content: Input should be a valid list"
            continue
        for part in content:
            if not isinstance(part, dict) or part.get("type") not in RESULT_BLOCKS:
                yield f"{where}.content: Input tag does not match any of the expected tags"
            else:
                yield from wrong_fields(f"{where}.content", part)


def unique_tool_use_ids(request: Request) -> Iterator[str]:
    seen: set[str] = set()
    for where, _, block in each_block(request):
        if block["type"] == "tool_use":
            if block["id"] in seen:
                yield f"{where}: `tool_use` ids must be unique"
            seen.add(block["id"])


def calls_at_the_end(request: Request) -> Iterator[str]:
    for index, message in enumerate(request["messages"]):
        kinds = [block["type"] for block in blocks_of(message)]
        if "tool_use" in kinds and kinds[-1] != "tool_use":
            yield unanswered(index, [block["id"] for block in calls_of(message)])


def calls_answered(request: Request) -> Iterator[str]:
    messages = request["messages"]
    for index, message in enumerate(messages):
        called = [block["id"] for block in calls_of(message)]
        following = messages[index + 1] if index + 1 < len(messages) else None
        missing = set(called) - set(leading_results(following))
        if missing:
            yield unanswered(index, [id for id in called if id in missing])


def results_called(request: Request) -> Iterator[str]:
    previous: Message | None = None
    for index, message in enumerate(request["messages"]):
        called = {block["id"] for block in calls_of(previous)} if previous else set()
        for place, block in enumerate(blocks_of(message)):
            if block["type"] == "tool_result" and block["tool_use_id"] not in called:
                yield (
                    f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {block['tool_use_id']}. Each `tool_result` block must have a corresponding "
                    "`tool_use` block in the previous message."
                )
        previous = message


def single_results(request: Request) -> Iterator[str]:
    for index, message in enumerate(request["messages"]):
        seen: set[str] = set()
        for place, block in enumerate(blocks_of(message)):
            if block["type"] != "tool_result":
                continue
            if block["tool_use_id"] in seen:
                yield (
                    f"messages.{index}.content.{place}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {block['tool_use_id']}"
                )
            seen.add(block["tool_use_id"])


def tools_for_calls(request: Request) -> Iterator[str]:
    kinds = {block["type"] for _, _, block in each_block(request)}
    if kinds & {"tool_use", "tool_result"} and not request.get("tools"):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"


def prefill(request: Request) -> Iterator[str]:
    last = request["messages"][-1]
    # a paused turn is sent back as it is: https://github.com/anthropics/anthropic-sdk-python/pull/1648
    if last["role"] != "assistant" or blocks_of(last)[-1]["type"] == "server_tool_use":
        return
    if not PREFILLED.fullmatch(request["model"]):
        yield (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    text = blocks_of(last)[-1].get("text", "")
    if text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def calls_of(message: Message) -> list[Block]:
    return [block for block in blocks_of(message) if block["type"] == "tool_use"]


def leading_results(message: Message | None) -> Iterator[str]:
    """The ids of the results at the beginning of a message: a result after other blocks answers nothing."""
    for block in blocks_of(message) if message else []:
        if block["type"] != "tool_result":
            return
        yield block["tool_use_id"]


def unanswered(index: int, ids: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
        "next message."
    )


MESSAGE_RULES: Mapping[str, Callable[[Request], Iterator[str]]] = {
    "message shape": message_shape,
    "roles": roles,
    "first is user": first_is_user,
    "content is there": content_is_there,
    "block shape": block_shape,
    "texts": texts,
    "user citations": user_citations,
    "tool_use shape": tool_use_shape,
    "tool_result shape": tool_result_shape,
    "unique tool_use ids": unique_tool_use_ids,
    "calls at the end": calls_at_the_end,
    "calls answered": calls_answered,
    "results called": results_called,
    "single results": single_results,
    "tools for calls": tools_for_calls,
    "prefill": prefill,
}
