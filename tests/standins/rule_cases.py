"""For each of the provider's rules: requests that break it, each beside its nearest neighbour that passes."""

from __future__ import annotations

from typing import Any

TOOL = {"name": "search", "description": "Search.", "input_schema": {"type": "object", "properties": {}}}
HELLO = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
PAUSED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
OLD_MODEL = "claude-haiku-4-5"  # still takes a last message of the assistant

Request = dict[str, Any]


def request(**fields: Any) -> Request:
    """A request that passes, with some fields replaced."""
    return {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [HELLO], **fields}


def without(name: str) -> Request:
    return {key: value for key, value in request().items() if key != name}


def user(*blocks: object) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: object) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(text: object, **fields: object) -> dict[str, Any]:
    return {"type": "text", "text": text, **fields}


def use(id: object = "toolu_1", **fields: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "search", "input": {}, **fields}


def result(id: object = "toolu_1", **fields: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "{}", **fields}


def history(*messages: dict[str, Any], **fields: Any) -> Request:
    """A request with these messages after the first one, and with a tool."""
    return request(messages=[HELLO, *messages], **{"tools": [TOOL], **fields})


def called(use_block: object, result_block: object) -> Request:
    return history(assistant(use_block), user(result_block))


def tool(**fields: Any) -> Request:
    return request(tools=[{**TOOL, **fields}])


def schema(**fields: Any) -> Request:
    return tool(input_schema={"type": "object", **fields})


def said(*blocks: object, **fields: Any) -> Request:
    return request(messages=[user(*blocks)], **fields)


CALLED = called(use(), result())
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
PAPER = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
MARKED = text("a", cache_control={"type": "ephemeral"})
TWO_USES = assistant(use("a"), use("b"))

CASES: list[tuple[str, Request, Request]] = [
    ("required fields", without("model"), request()),
    ("required fields", without("max_tokens"), request()),
    ("required fields", without("messages"), request()),
    ("known fields", request(temperature=1.0), request(metadata={"user_id": "a"})),
    ("known fields", request(closing=True), request(stop_sequences=["a"])),
    ("model name", request(model=""), request(model="m")),
    ("max_tokens", request(max_tokens=0), request(max_tokens=1)),
    ("max_tokens", request(max_tokens="1"), request(max_tokens=1)),
    ("max_tokens", request(max_tokens=True), request(max_tokens=1)),
    ("system shape", request(system={"type": "text"}), request(system="Be brief.")),
    ("system shape", request(system=[PICTURE]), request(system=[text("Be brief.")])),
    ("system shape", request(system=[text(" ")]), request(system=[MARKED])),
    ("tools shape", request(tools={}), request(tools=[])),
    ("tools shape", request(tools=["search"]), request(tools=[TOOL])),
    ("tools shape", request(tools=[{"name": "search"}]), request(tools=[TOOL])),
    ("tools shape", tool(effect="refund"), tool(strict=True)),
    ("tools shape", tool(description=None), tool(description="")),
    ("tool names", tool(name="look up"), tool(name="look_up")),
    ("tool names", tool(name="a" * 129), tool(name="a" * 128)),
    ("unique tool names", request(tools=[TOOL, TOOL]), request(tools=[TOOL, {**TOOL, "name": "other"}])),
    ("input schemas", tool(input_schema=[]), schema()),
    ("input schemas", tool(input_schema={}), schema()),
    ("input schemas", schema(type="string"), schema()),
    ("input schemas", schema(anyOf=[]), schema(properties={"a": {"anyOf": []}})),
    ("input schemas", schema(properties=[]), schema(properties={})),
    ("input schemas", schema(properties={"to$": {}}), schema(properties={"to.a-b_1": {}})),
    ("input schemas", schema(properties={"a" * 65: {}}), schema(properties={"a" * 64: {}})),
    ("input schemas", schema(required="a"), schema(required=["a"])),
    ("tool_choice", tool() | {"tool_choice": "none"}, tool() | {"tool_choice": {"type": "none"}}),
    ("tool_choice", tool() | {"tool_choice": {"type": "some"}}, tool() | {"tool_choice": {"type": "any"}}),
    ("tool_choice", request(tool_choice={"type": "none"}), tool() | {"tool_choice": {"type": "none"}}),
    (
        "tool_choice",
        tool() | {"tool_choice": {"type": "none", "name": "search"}},
        tool() | {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    ),
    (
        "tool_choice",
        tool() | {"tool_choice": {"type": "tool", "name": "refund"}},
        tool() | {"tool_choice": {"type": "tool", "name": "search"}},
    ),
    ("message shape", request(messages={}), request(messages=[HELLO])),
    ("message shape", request(messages=[]), request(messages=[HELLO])),
    ("message shape", request(messages=["Hello"]), request(messages=[HELLO])),
    ("message shape", request(messages=[{"role": "user"}]), request(messages=[HELLO])),
    ("message shape", request(messages=[{**HELLO, "id": "1"}]), request(messages=[HELLO])),
    ("message shape", request(messages=[{**HELLO, "content": None}]), request(messages=[HELLO])),
    ("roles", request(messages=[{**HELLO, "role": "tool"}]), request(messages=[HELLO])),
    ("roles", request(messages=[HELLO, {**HELLO, "role": "system"}]), request(messages=[HELLO, HELLO])),
    ("first is user", request(messages=[assistant(text("Hi")), HELLO]), request(messages=[HELLO])),
    ("content is there", said(), said(text("a"))),
    ("content is there", request(messages=[{**HELLO, "content": ""}]), request(messages=[HELLO])),
    ("content is there", history(assistant(), HELLO), history(assistant(text("a")), HELLO)),
    ("block shape", said("a"), said(text("a"))),
    ("block shape", said({"type": "note", "text": "a"}), said(text("a"))),
    ("block shape", said({"type": "text"}), said(text("a"))),
    ("block shape", said(text("a", id="1")), said(MARKED)),
    ("block shape", called(use(text=""), result()), CALLED),
    ("block shape", history(user(use())), CALLED),
    ("block shape", history(assistant(result()), HELLO), CALLED),
    ("block shape", history(assistant(PAPER), HELLO), said(PAPER)),
    (
        "block shape",
        history(assistant({"type": "thinking", "thinking": "a"}), HELLO),
        history(assistant({"type": "thinking", "thinking": "a", "signature": "b"}), HELLO),
    ),
    ("texts", said(text("")), said(text("a"))),
    ("texts", said(text(" \n")), said(text(" a\n"))),
    ("texts", said(text(1)), said(text("1"))),
    ("texts", history(assistant(text(""), use()), user(result())), CALLED),
    ("texts", called(use(), result(content=[text("")])), called(use(), result(content=[text("a")]))),
    (
        "user citations",
        said(text("a", citations=[{"type": "char_location"}])),
        history(assistant(text("a", citations=[{"type": "char_location"}])), HELLO),
    ),
    ("tool_use shape", called(use("a b"), result("a b")), called(use("a_b"), result("a_b"))),
    ("tool_use shape", called(use(name=""), result()), called(use(name="gone"), result())),
    ("tool_use shape", called(use(input="{}"), result()), called(use(input={"a": 1}), result())),
    ("tool_result shape", called(use(), result(1)), CALLED),
    ("tool_result shape", called(use(), result(is_error="no")), called(use(), result(is_error=True))),
    ("tool_result shape", called(use(), result(content={"ok": 1})), called(use(), result(content=""))),
    ("tool_result shape", called(use(), result(content=[{"ok": 1}])), called(use(), result(content=[]))),
    ("tool_result shape", called(use(), result(content=[use()])), called(use(), result(content=[PICTURE]))),
    (
        "unique tool_use ids",
        history(assistant(use("a"), use("a")), user(result("a"))),
        history(TWO_USES, user(result("a"), result("b"))),
    ),
    (
        "unique tool_use ids",
        history(assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))),
        history(assistant(use("a")), user(result("a")), assistant(use("b")), user(result("b"))),
    ),
    (
        "calls at the end",
        history(assistant(use(), text("Wait.")), user(result())),
        history(assistant(text("Wait."), use()), user(result())),
    ),
    ("calls answered", history(assistant(use())), CALLED),
    ("calls answered", history(assistant(use()), HELLO), CALLED),
    (
        "calls answered",
        history(TWO_USES, user(result("a"))),
        history(TWO_USES, user(result("b"), result("a"))),
    ),
    (
        "calls answered",
        history(TWO_USES, user(result("a")), user(result("b"))),
        history(TWO_USES, user(result("a"), result("b"), text("And?"))),
    ),
    (
        "calls answered",
        history(assistant(use()), user(text("Here."), result())),
        history(assistant(use()), user(result(), text("Here."))),
    ),
    (
        "calls answered",
        history(TWO_USES, user(result("a"), text("And"), result("b"))),
        history(TWO_USES, user(result("a"), result("b"))),
    ),
    ("results called", history(user(result())), CALLED),
    ("results called", history(assistant(use()), user(result(), result("other"))), CALLED),
    (
        "results called",
        history(assistant(use()), user(result()), assistant(text("a")), user(result())),
        history(assistant(use()), user(result()), assistant(text("a")), HELLO),
    ),
    ("single results", history(assistant(use()), user(result(), result())), CALLED),
    (
        "tools for calls",
        history(assistant(use()), user(result()), tools=[]),
        history(assistant(use()), user(result()), tools=[{**TOOL, "name": "other"}]),
    ),
    ("prefill", history(assistant(text("a"))), history(assistant(text("a")), model=OLD_MODEL)),
    ("prefill", history(assistant(PAUSED, text("a"))), history(assistant(text("a"), PAUSED))),
    (
        "prefill",
        history(assistant(text("a ")), model=OLD_MODEL),
        history(assistant(text("a ")), HELLO, model=OLD_MODEL),
    ),
    (
        "cache marks",
        said(MARKED, MARKED, MARKED, system=[MARKED, MARKED]),
        said(*[MARKED] * 3, system=[MARKED]),
    ),
]
