"""What the model is told."""

import json
from typing import Any

import pytest

from agent import results
from agent.preview import Moved
from agent.result_block import BLOCK_LIMIT
from agent.result_form import kept_output
from agent.results import Result, tool_result_block
from store.records import Actor, ApprovalId, Veto
from tests.unit.agent.samples import ANA, MARTA

INPUT: Any = {"payment_ids": ["a", "b"], "reason": "failed"}
MOVED = Moved("precondition", "failed payments", 38, 41)
REFUSAL = Veto("refund", ApprovalId("apr_1"), "rejected", MARTA, "no refunds on Sundays")
SILENCE = Veto("refund", ApprovalId("apr_1"), "expired", None, None)

ALL: dict[str, tuple[Result, Any]] = {
    "allowed": (results.allowed("t", [1]), True),
    "executed": (results.executed("t", {}, approved_by=[MARTA], executed_input=INPUT), True),
    "edited": (
        results.executed("t", {}, approved_by=[MARTA], executed_input=INPUT, asked_input={}, edited=True),
        True,
    ),
    "policy": (results.approved_by_policy_after_wait("t", {}, waited_seconds=60, executed_input=INPUT), True),
    "rejected": (results.rejected("t", MARTA, "no"), False),
    "rejected, may retry": (results.rejected("t", MARTA, "no", may_retry=True), False),
    "expired": (results.expired("t"), False),
    "not started in time": (results.not_started_in_time("t", [MARTA]), False),
    "vetoed": (results.vetoed("t", REFUSAL), False),
    "vetoed after silence": (results.vetoed("t", SILENCE), False),
    "deferred": (results.deferred("t"), False),
    "superseded": (results.superseded("t", [MOVED]), False),
    "withdrawn": (results.withdrawn("t", "The tool is gone."), False),
    "forbidden": (results.forbidden("t", "never on Sundays"), False),
    "invalid": (results.invalid("t", [("payment_ids.0", "too long")]), False),
    "no such tool": (results.no_such_tool("t", ["refund"]), False),
    "unprepared": (results.unprepared("t", "no database"), False),
    "failed": (results.failed("t", "declined"), False),
    "failed in part": (results.failed("t", "declined", items=["a", "b"], done=["a"]), True),
    "unknown": (results.unknown("t"), None),
    "cancelled": (results.cancelled("t"), False),
    "broken off": (results.broken_off("t"), False),
    "settled: ran": (results.settled_by_person("t", MARTA, ran=True, executed_input=INPUT), True),
    "settled: did not run": (results.settled_by_person("t", MARTA, ran=False, executed_input=INPUT), False),
}
ERRORS = {"invalid", "no such tool", "unprepared", "failed", "failed in part"}


@pytest.mark.parametrize("name", ALL)
def test_every_result_says_whether_it_was_executed(name: str) -> None:
    result, executed = ALL[name]
    assert result.content["executed"] is executed
    assert result.content["toolName"] == "t"
    assert isinstance(result.content["ok"], bool)


@pytest.mark.parametrize("name", ALL)
def test_only_failed_and_invalid_are_errors_to_the_provider(name: str) -> None:
    assert ALL[name][0].is_error is (name in ERRORS)
    assert tool_result_block("toolu_1", ALL[name][0].to_json()).get("is_error", False) is (name in ERRORS)


@pytest.mark.parametrize("name", ALL)
def test_no_result_holds_an_id_of_slack(name: str) -> None:
    text = json.dumps(ALL[name][0].to_json())
    assert "U0MARTA" not in text
    assert "T0SHOP" not in text


def test_each_result_has_a_shape_of_its_own() -> None:
    instructions = [
        result.content["instruction"] for result, _ in ALL.values() if "instruction" in result.content
    ]
    assert len(instructions) == len(ALL) - 2  # allowed and executed as asked speak for themselves
    assert len(set(map(str, instructions))) == len(instructions)


def test_an_executed_call_names_who_approved_and_what_ran() -> None:
    content = results.executed("t", {"sent": 2}, approved_by=[MARTA, ANA], executed_input=INPUT).content
    assert content["approvedBy"] == "Marta (support_lead), Ana (admin)"
    assert (content["edited"], content["executedInput"], content["data"]) == (False, INPUT, {"sent": 2})
    assert "requestedInput" not in content


def test_an_edited_call_tells_both_inputs_and_not_to_repeat_the_original() -> None:
    """C10: the approver lowered the amount and the model asked for the original again."""
    asked: Any = {"payment_ids": ["a", "b", "c"]}
    content = results.executed(
        "t", None, approved_by=[MARTA], executed_input=INPUT, asked_input=asked, edited=True
    ).content
    assert (content["edited"], content["requestedInput"], content["executedInput"]) == (True, asked, INPUT)
    assert "A person changed your request" in str(content["instruction"])
    assert "do not ask again for the original" in str(content["instruction"])


def test_the_items_that_went_through_are_told() -> None:
    whole = results.allowed("t", None, items=["a", "b"]).content
    assert (whole["partial"], whole["itemsDone"], whole["itemsNotDone"]) == (False, ["a", "b"], [])
    part = results.allowed("t", None, items=["a", "b"], done=["b"]).content
    assert (part["partial"], part["itemsDone"], part["itemsNotDone"]) == (True, ["b"], ["a"])
    assert "Only itemsDone went through" in str(part["instruction"])
    assert "itemsDone" not in results.allowed("t", None).content


def test_a_rejection_has_its_four_ingredients() -> None:
    content = results.rejected("t", MARTA, "no refunds on Sundays").content
    assert content["approvalDenied"] is True
    assert content["deniedBy"] == "Marta (support_lead)"
    assert content["reason"] == "no refunds on Sundays"
    instruction = str(content["instruction"])
    for ingredient in (
        "A person decided",
        "smaller batches",
        "other parameters",
        "another tool",
        "end your turn",
    ):
        assert ingredient in instruction


def test_a_rejection_that_allows_another_try_does_not_forbid_it() -> None:
    instruction = str(results.rejected("t", MARTA, "at most ten", may_retry=True).content["instruction"])
    assert "follow their words" in instruction
    assert "smaller batches" not in instruction


def test_a_followup_stays_allowed_after_a_refusal() -> None:
    for result in (
        results.rejected("t", MARTA, "no", followup="send_email"),
        results.expired("t", followup="send_email"),
        results.vetoed("t", REFUSAL, followup="send_email"),
    ):
        assert "You may still use send_email" in str(result.content["instruction"])


def test_an_expiry_blames_nobody() -> None:
    content = results.expired("t").content
    assert content["expired"] is content["approvalDenied"] is True
    assert content["deniedBy"] is content["reason"] is None


def test_a_veto_repeats_the_refusal() -> None:
    content = results.vetoed("t", REFUSAL).content
    assert (content["vetoed"], content["deniedBy"]) == (True, "Marta (support_lead)")
    assert content["reason"] == "no refunds on Sundays"
    silent = results.vetoed("t", SILENCE).content
    assert (silent["vetoed"], silent["expired"], silent["deniedBy"]) == (True, True, None)


def test_what_moved_is_told_and_that_nothing_ran() -> None:
    content = results.superseded("t", [MOVED]).content
    assert content["moved"] == [{"kind": "precondition", "name": "failed payments", "was": 38, "is": 41}]
    assert "Nothing ran" in str(content["instruction"])


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_error_is_never_empty(text: str) -> None:
    assert results.failed("t", text).content["error"] == "The tool failed and did not say why."
    assert results.unprepared("t", text).content["error"]
    assert results.forbidden("t", text).content["rule"]


def test_a_failure_in_part_names_both_halves() -> None:
    content = results.failed("t", "declined", items=["a", "b"], done=["a"]).content
    assert (content["itemsDone"], content["itemsNotDone"]) == (["a"], ["b"])
    assert "itemsNotDone did not happen" in str(content["instruction"])


def test_a_failure_after_everything_does_not_speak_of_a_part() -> None:
    content = results.failed("t", "declined", items=["a", "b"], done=["a", "b"]).content
    assert (content["partial"], content["itemsNotDone"]) == (False, [])
    assert "after all of its items had gone through" in str(content["instruction"])


def test_a_failure_of_a_call_without_items_says_what_it_did_and_nothing_of_the_rest() -> None:
    content = results.failed("t", "declined", done=["a"]).content
    assert content["itemsDone"] == ["a"]
    assert not {"partial", "itemsNotDone"} & content.keys()
    assert "itemsNotDone" not in str(content["instruction"])


def test_names_are_cleaned_and_bounded() -> None:
    sly = Actor("person", "T0SHOP", "U0MARTA", "Mar\u202eta\n\x07" + "x" * 500, "support_lead")
    name = str(results.rejected("t", sly, "no").content["deniedBy"])
    assert name.startswith("Marta x")
    assert name.endswith("… (support_lead)")
    assert len(name) < 100


@pytest.mark.parametrize("name", ["", "\u200b", "U0MARTA", "U0123ABCDEF"])
def test_somebody_without_a_name_is_a_person_and_not_an_id(name: str) -> None:
    nameless = Actor("person", "T0SHOP", "U0MARTA", name, "support_lead")
    assert results.rejected("t", nameless, "no").content["deniedBy"] == "a person (support_lead)"


def test_a_reason_is_quoted_as_it_is_up_to_a_limit() -> None:
    assert results.rejected("t", MARTA, "No!\n- not *now* ").content["reason"] == "No!\n- not *now*"
    assert len(str(results.rejected("t", MARTA, "x" * 9000).content["reason"])) == 3000
    assert results.rejected("t", MARTA, " ").content["reason"] is None


def test_output_that_is_no_json_does_not_undo_what_happened() -> None:
    class Broken:
        def to_json(self) -> dict[str, Any]:
            raise RuntimeError("broken")

    for output in (object(), {1: 2}, float("nan"), Broken()):
        content = results.allowed("t", output).content
        assert content["ok"] is content["executed"] is True
        assert "cannot be kept" in str(content["data"])


def test_output_that_postgres_refuses_can_be_kept() -> None:
    assert kept_output({"a": "\x00\ud800"}) == {"a": "\ufffd\ufffd"}


def test_endless_output_is_cut_where_it_is_kept() -> None:
    kept = kept_output("x" * 3_000_000)
    assert isinstance(kept, dict)
    assert kept["truncated"] is True
    assert len(json.dumps(kept)) <= 1_000_000


def test_a_block_is_in_the_providers_form() -> None:
    block = tool_result_block("toolu_1", results.allowed("t", "café").to_json())
    assert (block["type"], block["tool_use_id"]) == ("tool_result", "toolu_1")
    assert '"data": "café"' in block["content"]
    assert "is_error" not in block


@pytest.mark.parametrize("output", ["é" * 300_000, ['"\\'] * 90_000, {"a": ["x" * 40] * 9000}])
def test_a_block_is_bounded_and_says_what_is_missing(output: Any) -> None:
    long: Any = {"payment_ids": [f"pay_{n}" for n in range(20_000)]}
    made = results.executed("t", output, approved_by=[MARTA], executed_input=long)
    text = tool_result_block("toolu_1", made.to_json())["content"]
    assert len(text.encode()) <= 100_000
    content = json.loads(text)
    assert (content["ok"], content["executed"], content["approvedBy"]) == (True, True, "Marta (support_lead)")
    assert content["data"]["truncated"] is True
    assert len(text.encode()) > 95_000
    assert "was cut" in content["data"]["note"]
    assert content["data"]["begin"]


def test_the_system_prompt_has_the_name_the_instructions_and_the_protocol() -> None:
    prompt = results.system_prompt("Be kind.\n", "Refund helper")
    assert prompt.startswith("You are Refund helper,")
    assert "\n\nBe kind.\n\n" in prompt
    assert prompt.endswith(results.PROTOCOL)
    assert "must not depend on each other" in results.PROTOCOL
    assert "\n\n\n" not in results.system_prompt("", "Refund helper")


def test_a_late_settlement_has_a_bound_too() -> None:
    long = {"ids": ["x" * 50] * 5_000}
    settled = results.settled_by_person("pay", MARTA, ran=True, executed_input=long, output=long)
    text = results.settled_late("toolu_1", settled)
    told = json.loads(text.partition(": ")[2])
    assert len(text.encode()) < BLOCK_LIMIT + 500
    assert told["executedInput"]["truncated"] and told["instruction"] == settled.content["instruction"]


def test_a_late_settlement_is_one_text_always_the_same_that_names_the_call() -> None:
    settled = results.settled_by_person("pay", MARTA, ran=False, executed_input=INPUT)
    text = results.settled_late("toolu_1", settled)
    assert text == results.settled_late("toolu_1", settled)
    before, _, said = text.partition(": ")
    assert before == "Meanwhile a person settled an earlier call whose outcome was unknown"
    told = json.loads(said)
    assert (told["toolUseId"], told["toolName"], told["executed"]) == ("toolu_1", "pay", False)
    assert told["settledBy"] == settled.content["settledBy"]
