"""The provider's rules for a Messages request: which requests it answers with 400, and in what words.

Sources: the API reference and its page on errors (https://platform.claude.com/docs/en/api/messages,
…/api/errors), the page on tool calls (…/agents-and-tools/tool-use/handle-tool-calls), the changes of
the version 2026-10-21 (…/api/migration-2026-10-21), the SDK's parameter types, and errors that users
of the API have published. Where the provider is said to be lenient in one place and strict in
another, the strict reading counts here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.standins.message_rules import MESSAGE_RULES

MAX_BYTES = 32 * 1024 * 1024
MAX_CACHE_MARKS = 4
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
PROPERTY = re.compile(
    r"[a-zA-Z0-9_.-]{1,64}"
)  # at the top: https://github.com/anthropics/claude-code/issues/79418

REQUIRED = ("max_tokens", "messages", "model")
# temperature, top_p and top_k are gone since 2026-10-21.
FIELDS = frozenset(
    {*REQUIRED, "cache_control", "container", "diagnostics", "inference_geo", "metadata", "output_config"}
    | {"service_tier", "speed", "stop_sequences", "stream", "system", "thinking", "tool_choice", "tools"}
)
TOOL_FIELDS = frozenset({"name", "description", "input_schema", "type", "cache_control", "strict"})
CHOICE_FIELDS: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "none": frozenset({"type"}),
}

Request = Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A broken rule by name, with the answer the provider gives for it."""

    rule: str
    message: str
    status: int = 400


def check(request: object, size: int = 0) -> Violation | None:
    """The first rule that the JSON of a request of `size` bytes breaks; None if it may pass."""
    if size > MAX_BYTES:
        return Violation("size", "Request exceeds the maximum size", 413)
    if not isinstance(request, dict):
        return Violation("object", "The request body is not a JSON object")
    # Later rules rely on what earlier ones have established.
    for name, rule in RULES.items():
        message = next(rule(request), None)
        if message is not None:
            return Violation(name, message)
    return None


def check_headers(headers: Mapping[str, str]) -> Violation | None:
    """The rule that the headers, in lower case, break; None if they may pass."""
    if not headers.get("x-api-key") and not headers.get("authorization"):
        return Violation("key", "x-api-key header is required", 401)
    if not headers.get("anthropic-version"):
        return Violation("version", "anthropic-version: header is required")
    return None


def required_fields(request: Request) -> Iterator[str]:
    return (f"{name}: Field required" for name in REQUIRED if name not in request)


def known_fields(request: Request) -> Iterator[str]:
    return (f"{name}: Extra inputs are not permitted" for name in request if name not in FIELDS)


def model_name(request: Request) -> Iterator[str]:
    if not isinstance(request["model"], str) or not request["model"]:
        yield "model: String should have at least 1 character"


def max_tokens(request: Request) -> Iterator[str]:
    # The provider takes 0 to warm its cache; this project never means that.
    value = request["max_tokens"]
    if type(value) is not int:
        yield "max_tokens: Input should be a valid integer"
    elif value < 1:
        yield "max_tokens: Input should be greater than or equal to 1"


def system_shape(request: Request) -> Iterator[str]:
    system = request.get("system", "")
    if isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: Input should be a valid list"
        return
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text" or "text" not in block:
            yield f"system.{index}: Input should be a text block"
        elif not isinstance(block["text"], str) or not block["text"].strip():
            yield "system: text content blocks must contain non-whitespace text"


def tools_shape(request: Request) -> Iterator[str]:
    tools = request.get("tools", [])
    if not isinstance(tools, list):
        yield "tools: Input should be a valid list"
        return
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            yield f"tools.{index}: Input should be a valid dictionary"
            continue
        for name in ("name", "input_schema"):
            if name not in tool:
                yield f"tools.{index}.custom.{name}: Field required"
        for name in tool.keys() - TOOL_FIELDS:
            yield f"tools.{index}.custom.{name}: Extra inputs are not permitted"
        if not isinstance(tool.get("description", ""), str):
            yield f"tools.{index}.custom.description: Input should be a valid string"


def tool_names(request: Request) -> Iterator[str]:
    for index, tool in enumerate(request.get("tools", [])):
        if not isinstance(tool["name"], str) or not TOOL_NAME.fullmatch(tool["name"]):
            yield f"tools.{index}.custom.name: String should match pattern '^{TOOL_NAME.pattern}$'"


def unique_tool_names(request: Request) -> Iterator[str]:
    names = [tool["name"] for tool in request.get("tools", [])]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."


def input_schemas(request: Request) -> Iterator[str]:
    for index, tool in enumerate(request.get("tools", [])):
        where, schema = f"tools.{index}.custom.input_schema", tool["input_schema"]
        if not isinstance(schema, dict):
            yield f"{where}: Input should be a valid dictionary"
        elif "type" not in schema:
            yield f"{where}.type: Field required"
        elif schema["type"] != "object":
            yield f"{where}.type: Input should be 'object'"
        elif schema.keys() & {"oneOf", "allOf", "anyOf"}:
            yield f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        elif not isinstance(schema.get("properties", {}), dict):
            yield f"{where}.properties: Input should be a valid dictionary"
        elif not all(map(PROPERTY.fullmatch, schema.get("properties", {}))):
            yield f"{where}.properties: Property keys should match pattern '^{PROPERTY.pattern}$'"
        elif not isinstance(schema.get("required", []), list):
            yield f"{where}.required: Input should be a valid list"


def tool_choice(request: Request) -> Iterator[str]:
    if "tool_choice" not in request:
        return
    choice, tools = request["tool_choice"], request.get("tools", [])
    if not isinstance(choice, dict) or choice.get("type") not in CHOICE_FIELDS:
        yield "tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
    elif choice.keys() - CHOICE_FIELDS[choice["type"]]:
        yield f"tool_choice.{choice['type']}: Extra inputs are not permitted"
    elif not tools:
        yield "tool_choice: tool_choice may only be specified while providing tools"
    elif choice["type"] == "tool" and choice.get("name") not in [tool["name"] for tool in tools]:
        yield f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"


def cache_marks(request: Request) -> Iterator[str]:
    def count(value: object) -> int:
        if isinstance(value, dict):
            inner = sum(count(part) for key, part in value.items() if key != "input")
            return inner + (value.get("cache_control") is not None)
        return sum(map(count, value)) if isinstance(value, list) else 0

    found = count(request)
    if found > MAX_CACHE_MARKS:
        yield f"A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {found}."


Rule = Callable[[Request], Iterator[str]]
RULES: Mapping[str, Rule] = {
    "required fields": required_fields,
    "known fields": known_fields,
    "model name": model_name,
    "max_tokens": max_tokens,
    "system shape": system_shape,
    "tools shape": tools_shape,
    "tool names": tool_names,
    "unique tool names": unique_tool_names,
    "input schemas": input_schemas,
    "tool_choice": tool_choice,
    **MESSAGE_RULES,
    "cache marks": cache_marks,
}
