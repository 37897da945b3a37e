from __future__ import annotations

import json
from typing import Any

import pytest

from agent.model import Answer, Message
from agent.scripted import (
    Asked,
    Script,
    ScriptedModel,
    UnexpectedCall,
    UnusedSteps,
    call,
    expect_results,
    expect_text,
    say,
    script,
    step,
)
from tests.standins.provider_rules import check


def user(text: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def results(answer: Answer, *contents: Any) -> Message:
    uses = [block for block in answer.content if block["type"] == "tool_use"]
    return {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": use["id"], "content": json.dumps(content)}
            for use, content in zip(uses, contents, strict=True)
        ],
    }


def turn(answer: Answer) -> Message:
    return {"role": "assistant", "content": answer.content}


async def ask(model: ScriptedModel, *messages: Message, closing: bool = False) -> Answer:
    return await model.answer(system="Be kind.", messages=messages, tools=[], closing=closing)


def refund_script() -> Script:
    return script(
        step(say("I look."), call("search", {"status": "failed"}), expect=expect_text("refund")),
        step(
            call("refund", lambda asked: {"ids": asked.result_of("search")["data"]}),
            expect=expect_results(1),
        ),
        step(
            say(lambda asked: f"Refunded {len(asked.results)}."), expect=expect_results(lambda r: r[0]["ok"])
        ),
    )


async def test_a_script_is_followed_by_a_new_process_at_every_step() -> None:
    messages = [user("Please refund them.")]
    first = await ask(ScriptedModel(refund_script()), *messages)
    assert first.stop_reason == "tool_use"
    messages += [turn(first), results(first, {"data": ["p1", "p2"]})]
    second = await ask(ScriptedModel(refund_script()), *messages)
    assert second.content[0]["input"] == {"ids": ["p1", "p2"]}
    messages += [turn(second), results(second, {"ok": True})]
    third = await ask(ScriptedModel(refund_script()), *messages)
    assert third.content == [{"type": "text", "text": "Refunded 1."}] and third.stop_reason == "end_turn"


async def test_the_same_question_gets_the_same_answer_and_counts_once() -> None:
    model = ScriptedModel(refund_script())
    assert await ask(model, user("refund")) == await ask(model, user("refund"))
    assert model.used == {(0, 0)}


async def test_ids_differ_between_conversations_steps_and_calls() -> None:
    twice = script(*[step(call("search", {}), call("search", {}))] * 2)
    answers = []
    for text in ("one", "two"):
        first = await ask(ScriptedModel(twice), user(text))
        answers += [first, await ask(ScriptedModel(twice), user(text), turn(first), results(first, 1, 2))]
    ids = [block["id"] for answer in answers for block in answer.content]
    assert len(set(ids)) == len(ids) == 8


async def test_an_unmet_expectation_is_an_unexpected_call_that_assert_done_repeats() -> None:
    model = ScriptedModel(refund_script())
    with pytest.raises(
        UnexpectedCall, match="step 1: expected a last message with the text 'refund'"
    ) as first:
        await ask(model, user("Hello"))
    assert first.value.status == 400
    with pytest.raises(UnexpectedCall, match="step 1"):
        model.assert_done()


async def test_a_question_after_the_last_step_is_an_unexpected_call() -> None:
    model = ScriptedModel(script(step(say("Hello."))))
    answer = await ask(model, user("Hi"))
    with pytest.raises(UnexpectedCall, match="step 2: the script has only 1 steps"):
        await ask(model, user("Hi"), turn(answer), user("And?"))


async def test_the_wrong_number_of_results_is_an_unexpected_call() -> None:
    model = ScriptedModel(script(step(call("search", {})), step(say("Done."), expect=expect_results(2))))
    answer = await ask(model, user("Hi"))
    with pytest.raises(UnexpectedCall, match="expected 2 results"):
        await ask(model, user("Hi"), turn(answer), results(answer, 1))


async def test_calls_are_unexpected_when_closing_words_are_asked_for() -> None:
    with pytest.raises(UnexpectedCall, match="closing words"):
        await ask(ScriptedModel(refund_script()), user("refund"), closing=True)


async def test_unused_steps_are_named_and_optional_ones_are_not() -> None:
    model = ScriptedModel(script(step(say("A.")), step(say("B.")), step(say("C."), optional=True)))
    await ask(model, user("Hi"))
    with pytest.raises(UnusedSteps, match=r"never asked for: script 1, step 2$"):
        model.assert_done()


async def test_the_first_text_chooses_the_script_of_the_conversation() -> None:
    model = ScriptedModel(
        script(step(say("Refunds.")), when=lambda text: "refund" in text),
        script(step(say("Other.")), step(say("Refunds later."))),
    )
    other = await ask(model, user("Hi"))
    later = await ask(model, user("Hi"), turn(other), user("Now refund"))
    refunds = await ask(model, user("refund"))
    said = [answer.content[0]["text"] for answer in (other, later, refunds)]
    assert said == ["Other.", "Refunds later.", "Refunds."]
    model.assert_done()


async def test_no_script_is_meant_by_a_foreign_conversation() -> None:
    model = ScriptedModel(script(step(say("Refunds.")), when=lambda text: "refund" in text))
    with pytest.raises(UnexpectedCall, match="no script is meant"):
        await ask(model, user("Hello"))


async def test_per_message_a_script_begins_anew_and_the_last_begun_answers() -> None:
    model = ScriptedModel(
        script(step(say("Refunds.")), when=lambda text: "refund" in text, per_message=True),
        script(step(say("I only refund.")), per_message=True),
    )
    history = [user("refund")]
    for text in ("Hello", "refund again"):
        history += [turn(await ask(model, *history)), user(text)]
    last = await ask(model, *history)
    said = [message["content"][0]["text"] for message in [*history[1::2], turn(last)]]
    assert said == ["Refunds.", "I only refund.", "Refunds."]


async def test_respond_makes_a_response_that_can_be_sent_back() -> None:
    tools = [{"name": "search", "input_schema": {"type": "object"}}]
    request: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be kind."}],
        "messages": [user("refund")],
        "tools": tools,
    }
    response = ScriptedModel(refund_script()).respond(request)
    assert (response["type"], response["model"], response["stop_reason"]) == ("message", "m", "tool_use")
    answered = {"type": "tool_result", "tool_use_id": response["content"][1]["id"]}
    request["messages"] += [
        {"role": response["role"], "content": response["content"]},
        {"role": "user", "content": [answered]},
    ]
    assert check(request) is None


async def test_respond_passes_on_what_was_asked() -> None:
    seen: list[Asked] = []
    model = ScriptedModel(script(step(say("Bye."), expect=seen.append)))
    tool = {"name": "search", "description": "Search.", "input_schema": {"type": "object"}}
    system = [{"type": "text", "text": "Be"}, {"type": "text", "text": "kind."}]
    model.respond(
        {"system": system, "messages": [user("Hi")], "tools": [tool], "tool_choice": {"type": "none"}}
    )
    assert (seen[0].system, seen[0].text, seen[0].closing) == ("Be\nkind.", "Hi", True)
    assert seen[0].tools[0].name == "search"
