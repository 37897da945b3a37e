"""The model misbehaves, over real HTTP: what becomes of the run, its row, and what its thread is told."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent import answers
from agent.loop import CLOSING, MOST_FAULTS
from agent.model import AnthropicModel
from agent.start import retry_run
from agent.worker import Worker
from store.records import Actor, Run
from store.transitions import RunStatus
from tests.databases import Database
from tests.integration.agent.office import POLICY, Office, office
from tests.standins.replies import (
    Drip,
    Provider,
    Reply,
    answer,
    failure,
    http,
    in_chunks,
    provider,
    text,
    use,
)

ONE = {"bills": ["b1"]}
DONE = answer(text("That is all."))
PAUSED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
OPERATOR = Actor("operator", name="operator")


@dataclass
class Scene:
    """An office whose worker asks a provider over HTTP."""

    o: Office
    api: Provider
    worker: Worker

    async def work(self, after: str | None = None) -> None:
        """Let the worker do what may be done, with the clock ahead by `after`."""
        if after is not None:
            self.o.shift_clock(after)
        await self.worker.work_off()

    async def run(self) -> Run:
        """The one run as it is now."""
        [(run_id,)] = self.o.execute("SELECT id FROM runs")
        return await self.o.run(run_id)

    async def ended(self) -> tuple[RunStatus, str | None]:
        """The run's status, and its answer or its error."""
        run = await self.run()
        return run.status, run.error if run.answer is None else run.answer

    def told(self) -> list[tuple[Any, ...]]:
        """What the thread is told of the end of runs: (kind, text, error) each."""
        return self.o.execute(
            "SELECT kind, data->>'text', data->>'error' FROM notices"
            " WHERE kind IN ('run_completed', 'run_exhausted', 'run_failed') ORDER BY id"
        )


@asynccontextmanager
async def scene(
    database: Database, folder: Path, *replies: Reply, policy: str = POLICY, patience: float = 30.0
) -> AsyncIterator[Scene]:
    """An office with a begun run, and a provider with these replies."""
    async with provider(*replies) as api, office(database, folder, policy=policy) as o:
        model = AnthropicModel("claude-sonnet-5-5", api_key="test", base_url=api.url, timeout=patience)
        try:
            await o.start()
            yield Scene(o, api, o.another_worker("w1", replace(o.house, model=model)))
        finally:
            await model.close()


# --- what passes ---

TRANSIENT: dict[str, Reply] = {
    "429": failure(429, "retry-after: 90"),
    "429 with a date": failure(
        429, "date: Wed, 21 Oct 2026 07:26:30 GMT", "retry-after: Wed, 21 Oct 2026 07:28:00 GMT"
    ),
    "529": failure(529),
    "500": failure(500),
    "timeout": None,
    "dripping": Drip(0.1),
    "dropped": b"",
    "cut body": b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{",
    "malformed chunk": in_chunks([b"ZZ\r\n{}\r\n"]),
    "cut stream": in_chunks([b'5\r\n{"typ\r\n']),
    "no JSON": http(200, b"<html>a proxy</html>"),
}


@pytest.mark.parametrize("fault", TRANSIENT)
async def test_a_fault_that_passes_is_waited_for_without_a_lease_and_then_the_run_goes_on(
    database: Database, tmp_path: Path, fault: str
) -> None:
    patience = 30.0 if isinstance(TRANSIENT[fault], bytes) else 0.3
    async with scene(database, tmp_path, TRANSIENT[fault], DONE, patience=patience) as s:
        await s.work()
        [(status, faults, token, lease, wait)] = s.o.execute(
            "SELECT status::text, faults, token, lease_until, extract(epoch FROM not_before - queued_at)"
            " FROM runs"
        )
        assert (status, faults, token, lease) == ("queued", 1, None, None)
        assert wait == (90 if fault.startswith("429") else 2)
        await s.work()
        assert len(s.api.requests) == 1, "it is not asked before its time"
        await s.work("91 seconds")
        assert await s.ended() == (RunStatus.COMPLETED, "That is all.")
        assert (await s.run()).faults == 1


async def test_a_provider_that_always_wants_it_at_once_is_asked_more_and_more_rarely(
    database: Database, tmp_path: Path
) -> None:
    async with scene(database, tmp_path, *[failure(429, "retry-after: 0")] * MOST_FAULTS) as s:
        waits = []
        for hour in range(MOST_FAULTS):
            await s.work(f"{hour} hours")
            waits += s.o.execute("SELECT extract(epoch FROM not_before - queued_at)::int FROM runs")
        assert [wait for (wait,) in waits[:-1]] == [2, 4, 8, 16, 32, 64, 128]
        status, error = await s.ended()
        assert (status, error) == (
            RunStatus.FAILED,
            "The model did not answer after 8 tries: The model is busy (429): The provider's words.",
        )


async def test_a_wait_that_the_provider_asks_for_is_bounded(database: Database, tmp_path: Path) -> None:
    async with scene(database, tmp_path, failure(429, "retry-after: 999999")) as s:
        await s.work()
        assert s.o.execute("SELECT not_before - queued_at <= interval '1 hour' FROM runs") == [(True,)]


# --- answers that are cut, empty or paused ---


async def test_a_call_that_was_cut_off_is_not_made_and_the_model_calls_again(
    database: Database, tmp_path: Path
) -> None:
    cut = answer(text("I pay."), use("tip", {"bills": []}), stop_reason="max_tokens")
    async with scene(database, tmp_path, cut, answer(use("tip", ONE)), DONE) as s:
        await s.work()
        assert s.api.requests[1]["messages"][1:] == [
            {"role": "assistant", "content": [text("I pay.")]},
            {"role": "user", "content": [text(answers.CUT_IN_A_CALL)]},
        ]
        assert (await s.ended(), s.o.world.paid) == ((RunStatus.COMPLETED, "That is all."), ["b1"])
        assert len(await s.o.calls((await s.run()).id)) == 1


async def test_an_answer_that_was_cut_off_is_not_what_the_thread_reads(
    database: Database, tmp_path: Path
) -> None:
    cut = answer(text("I refunded 3"), stop_reason="max_tokens")
    async with scene(database, tmp_path, cut, answer(text("I refunded 38."))) as s:
        await s.work()
        assert s.told() == [("run_completed", "I refunded 38.", None)]
        assert s.api.last_message == [text(answers.CUT)]


async def test_a_model_that_is_always_cut_off_has_its_closing_words(
    database: Database, tmp_path: Path
) -> None:
    policy = POLICY.replace("max_steps = 12", "max_steps = 2")
    cut = answer(text("Well"), use("tip", ONE), stop_reason="max_tokens")
    closing = answer(text("I could not"), stop_reason="max_tokens")
    async with scene(database, tmp_path, cut, cut, closing, policy=policy) as s:
        await s.work()
        assert await s.ended() == (RunStatus.EXHAUSTED, "I could not")
        assert s.o.world.attempts == []


async def test_an_empty_answer_is_asked_about_once_and_then_the_run_ends(
    database: Database, tmp_path: Path
) -> None:
    look = answer(use("look", ONE))
    async with scene(database, tmp_path, look, answer(), answer(text(" \n"))) as s:
        await s.work()
        assert [b["type"] for b in s.api.last_message] == ["tool_result", "text"]
        assert s.api.last_message[1] == text(answers.SILENT)
        assert await s.ended() == (RunStatus.COMPLETED, "")


async def test_words_after_an_empty_answer_are_the_answer(database: Database, tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    async with scene(database, tmp_path, answer(thought), DONE) as s:
        await s.work()
        assert await s.ended() == (RunStatus.COMPLETED, "That is all.")


@pytest.mark.parametrize(
    "content, next_message",
    [
        ([text("I search."), PAUSED], ("assistant", [text("I search."), PAUSED])),
        ([text("I search.")], ("user", [text(answers.GO_ON)])),
    ],
    ids=["a tool of the provider's", "words"],
)
async def test_a_paused_answer_is_sent_back_and_goes_on(
    database: Database, tmp_path: Path, content: list[Any], next_message: tuple[str, list[Any]]
) -> None:
    async with scene(database, tmp_path, answer(*content, stop_reason="pause_turn"), DONE) as s:
        await s.work()
        last = s.api.requests[1]["messages"][-1]
        assert (last["role"], last["content"]) == next_message
        assert await s.ended() == (RunStatus.COMPLETED, "That is all.")


async def test_a_paused_answer_is_on_the_record_and_another_worker_goes_on_from_it(
    database: Database, tmp_path: Path
) -> None:
    paused = answer(text("I search."), PAUSED, stop_reason="pause_turn")
    rest = answer(text("I found it."), use("look", ONE))
    async with scene(database, tmp_path, paused, failure(529), rest, DONE) as s:
        await s.work()
        assert (await s.run()).status is RunStatus.QUEUED
        await s.work("10 seconds")
        assert [m["role"] for m in s.api.requests[-1]["messages"]] == ["user", "assistant", "user"]
        assert await s.ended() == (RunStatus.COMPLETED, "That is all.")


async def test_a_run_that_is_always_paused_ends_with_its_budget(database: Database, tmp_path: Path) -> None:
    policy = POLICY.replace("max_steps = 12", "max_steps = 3")
    paused = answer(text("One moment."), stop_reason="pause_turn")
    async with scene(database, tmp_path, paused, paused, paused, DONE, policy=policy) as s:
        await s.work()
        assert await s.ended() == (RunStatus.EXHAUSTED, "That is all.")
        assert s.api.last_message == [text(CLOSING)]


# --- answers after which there is nothing to hope for ---


@pytest.mark.parametrize(
    "reply, error",
    [
        (answer(text("I can't"), stop_reason="refusal"), answers.DECLINED.text),
        (answer(stop_reason="refusal"), answers.DECLINED.text),
        (answer(text("Well, "), stop_reason="model_context_window_exceeded"), answers.TOO_LARGE.text),
        (answer(use("tip", ONE), stop_reason="model_context_window_exceeded"), answers.TOO_LARGE.text),
        (failure(413), "The model refused (413): The provider's words. The conversation is too large:"),
        (failure(401), "The model refused (401): The provider's words. Set ANTHROPIC_API_KEY"),
    ],
    ids=["refusal", "silent refusal", "full", "full in a call", "413", "401"],
)
async def test_a_run_that_cannot_go_on_fails_at_once_and_its_thread_is_told_why(
    database: Database, tmp_path: Path, reply: bytes, error: str
) -> None:
    async with scene(database, tmp_path, reply) as s:
        await s.work()
        [(kind, _, said)] = s.told()
        assert (kind, said.startswith(error)) == ("run_failed", True)
        assert ((await s.run()).status, s.o.world.attempts) == (RunStatus.FAILED, [])


async def test_a_failed_run_that_is_retried_goes_on_and_repeats_nothing_that_ran(
    database: Database, tmp_path: Path
) -> None:
    async with scene(database, tmp_path, answer(use("tip", ONE)), failure(401), failure(401), DONE) as s:
        await s.work()
        failed = await s.run()
        assert (failed.status, s.o.world.paid) == (RunStatus.FAILED, ["b1"])
        await retry_run(s.o.house, failed.id, OPERATOR)
        await s.work()
        assert (await s.run()).status is RunStatus.FAILED
        await retry_run(s.o.house, failed.id, OPERATOR)
        await s.work()
        assert await s.ended() == (RunStatus.COMPLETED, "That is all.")
        assert (s.o.world.paid, len(s.o.world.keys)) == (["b1"], 1)
        assert s.api.requests[3]["messages"] == s.api.requests[1]["messages"]
        assert [kind for kind, *_ in s.told()] == ["run_failed", "run_failed", "run_completed"]


async def test_a_call_that_a_failing_run_left_is_not_said_to_be_stopped_by_a_person(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(database, tmp_path, answer(use("tip", ONE)), DONE) as s:
        with monkeypatch.context() as broken:
            broken.setattr("agent.turn.judge_call", None)  # stands for any fault of the house's own
            for hour in range(MOST_FAULTS):
                await s.work(f"{hour} hours")
        failed = await s.run()
        assert failed.status is RunStatus.FAILED
        await retry_run(s.o.house, failed.id, OPERATOR)
        await s.work()
        [told] = s.api.results
        assert (told["cancelled"], told["executed"], "person" in told["instruction"]) == (True, False, False)


# --- calls that cannot be made ---


@pytest.mark.parametrize(
    "call, says",
    [
        (use("pay_everything", ONE), lambda told: "pay_everything" in told["toolName"] and told["tools"]),
        (use("pay", {"bills": []}), lambda told: told["fields"][0]["field"] == "bills"),
        (use("pay", {"bills": "b1"}), lambda told: told["fields"][0]["field"] == "bills"),
        (use("pay", {}), lambda told: told["fields"][0]["field"] == "bills"),
        (use("pay", {**ONE, "sneaky": 1}), lambda told: told["fields"][0]["field"] == "sneaky"),
    ],
    ids=["no such tool", "too short", "wrong type", "missing", "unknown field"],
)
async def test_a_call_that_cannot_be_made_is_told_to_the_model_and_to_no_person(
    database: Database, tmp_path: Path, call: Any, says: Callable[[Any], bool]
) -> None:
    async with scene(database, tmp_path, answer(call), DONE) as s:
        await s.work()
        [told] = s.api.results
        assert told["invalid"] and told["executed"] is False and says(told)
        assert s.api.last_message[0]["is_error"] is True
        assert (s.o.execute("SELECT id FROM approvals"), s.o.world.attempts) == ([], [])
        assert (await s.ended())[0] is RunStatus.COMPLETED


TWICE = answer(use("tip", ONE, id="a"), use("tip", {"bills": ["b2"]}, id="a"))


@pytest.mark.parametrize(
    "bad",
    [TWICE, answer(use("", ONE, id="b")), answer(use("x" * 201, ONE, id="b"))],
    ids=["one id twice", "no name", "a long name"],
)
async def test_calls_that_cannot_be_sent_back_are_not_kept(
    database: Database, tmp_path: Path, bad: bytes
) -> None:
    look = answer(use("look", ONE, id="toolu_0"))
    async with scene(database, tmp_path, look, bad, DONE) as s:
        await s.work()
        assert ((await s.run()).status, (await s.run()).faults) == (RunStatus.QUEUED, 1)
        await s.work("10 seconds")
        assert (await s.ended(), s.o.world.attempts) == ((RunStatus.COMPLETED, "That is all."), [])


@pytest.mark.parametrize(
    "content",
    [
        [use("tip", ONE), text("I tipped.")],
        [text("I tip."), use("tip", ONE), {"type": "thinking", "thinking": "Well.", "signature": "s"}],
    ],
    ids=["words", "thoughts"],
)
async def test_what_comes_after_a_call_does_not_spoil_the_conversation(
    database: Database, tmp_path: Path, content: list[dict[str, Any]]
) -> None:
    async with scene(database, tmp_path, answer(*content), DONE) as s:
        await s.work()
        assert (await s.ended(), s.o.world.paid) == ((RunStatus.COMPLETED, "That is all."), ["b1"])
        kinds = [block["type"] for block in s.api.requests[-1]["messages"][1]["content"]]
        assert kinds == ["text", "tool_use"]


@pytest.mark.parametrize("id", ["toolu_0", "functions.tip:0", ""])
async def test_a_call_with_an_id_that_the_provider_would_not_take_back_is_made_under_another(
    database: Database, tmp_path: Path, id: str
) -> None:
    look, tip = answer(use("look", ONE, id="toolu_0")), answer(use("tip", ONE, id=id))
    async with scene(database, tmp_path, look, tip, DONE) as s:
        await s.work()
        assert (await s.ended(), s.o.world.paid) == ((RunStatus.COMPLETED, "That is all."), ["b1"])
        [_, made] = await s.o.calls((await s.run()).id)
        assert s.api.last_message[0]["tool_use_id"] == made.provider_id != id


async def test_a_model_that_always_doubles_its_ids_fails_the_run_in_words(
    database: Database, tmp_path: Path
) -> None:
    async with scene(database, tmp_path, *[TWICE] * MOST_FAULTS) as s:
        for hour in range(MOST_FAULTS):
            await s.work(f"{hour} hours")
        error = (
            "The model gave no answer that can be used after 8 tries: The model gave two calls the same id."
        )
        assert s.told() == [("run_failed", None, error)]


# --- many calls ---

THIRTY = [f"b{n}" for n in range(30)]


def thirty(tool: str) -> bytes:
    return answer(*(use(tool, {"bills": [bill]}, id=f"toolu_{bill}") for bill in THIRTY))


async def test_thirty_calls_at_once_run_one_after_another_and_have_thirty_results_in_order(
    database: Database, tmp_path: Path
) -> None:
    async with scene(database, tmp_path, thirty("tip"), DONE) as s:
        await s.work()
        assert s.o.world.paid == THIRTY
        assert [b["tool_use_id"] for b in s.api.last_message] == [f"toolu_{bill}" for bill in THIRTY]
        assert len(set(s.o.world.keys)) == 30


async def test_thirty_calls_that_ask_are_thirty_approvals_of_one_turn(
    database: Database, tmp_path: Path
) -> None:
    async with scene(database, tmp_path, thirty("pay"), DONE) as s:
        await s.work()
        [asked] = s.o.execute(
            "SELECT count(*), count(DISTINCT call_id) FROM approvals WHERE status = 'pending'"
        )
        assert (asked, len(s.api.requests)) == ((30, 30), 1)
        for number, (approval_id,) in enumerate(s.o.execute("SELECT id FROM approvals ORDER BY id")):
            approval = await s.o.approval(approval_id)
            await (s.o.approve(approval) if number % 2 else s.o.reject(approval))
        await s.work()
        assert (len(s.o.world.paid), len(s.api.results)) == (15, 30)
        assert [told["ok"] for told in s.api.results].count(True) == 15
        assert [b["tool_use_id"] for b in s.api.last_message] == [f"toolu_{bill}" for bill in THIRTY]
        assert (await s.ended())[0] is RunStatus.COMPLETED


async def test_a_run_that_never_stops_calling_has_its_budget_and_its_closing_words(
    database: Database, tmp_path: Path
) -> None:
    calls = [answer(use("look", ONE, id=f"toolu_{n}")) for n in range(12)]
    closing = answer(text("I stop."), use("tip", ONE, id="toolu_late"))
    async with scene(database, tmp_path, *calls, closing) as s:
        await s.work()
        assert await s.ended() == (RunStatus.EXHAUSTED, "I stop.")
        assert s.api.requests[-1]["tool_choice"] == {"type": "none"}
        assert (s.o.world.looks, s.o.world.attempts) == (12, [])
