"""Socket Mode: the same product without a public URL, and nothing is lost when connections come and go."""

import asyncio
import json
from dataclasses import replace

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.listeners import mention
from bot.sandbox.changes import Changes
from bot.sandbox.sockets import Connection, Sockets
from bot.socket_line import Line
from store import runs
from tests.acceptance.children import child
from tests.acceptance.scripts import NOTHING, ONLY_ASK, ask_for_refunds
from tests.acceptance.stage import SUPPORT, Stage, eventually, process_of, staged
from tests.acceptance.test_clicks import unreachable
from tests.acceptance.test_http import BODY, get, post, signed
from tests.acceptance.test_modals import fill_payments, open_form
from tests.databases import Database


def sockets(stage: Stage) -> Sockets:
    """The connections of the app."""
    return stage.sandbox.sockets


async def another(stage: Stage, old: Connection) -> Connection:
    """The connection that the app opens besides or after `old`."""
    found = await stage.sandbox.until(lambda: [each for each in sockets(stage).open if each is not old])
    return found[0]


async def runs_begun(stage: Stage) -> int:
    """How many mentions counted."""
    return len(await runs.listed(stage.db, unfinished_only=False, limit=99))


class Gate:
    """Holds back what a mention does, before anything is stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        begin_run = mention.begin_run

        async def held(*args: object) -> None:
            self.reached.set()
            await self.open.wait()
            await begin_run(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(mention, "begin_run", held)


# --- the product, as over HTTP ---


async def test_an_approval_goes_its_whole_way_without_a_request_over_http(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), socket_mode=True) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38
        assert [(each.url, each.acked) for each in stage.sandbox.deliveries] == [("socket", True)] * 2


async def test_windows_and_commands_are_answered_on_the_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ONLY_ASK, socket_mode=True) as stage:
        await stage.ask()
        await open_form(stage, "Edit")
        await fill_payments(stage, ["pay_0007", "pay_0007"])
        await stage.marta.submit()
        assert "give every payment once" in " ".join(stage.marta.view.errors.values())
        answer = await stage.marta.slash("/approvals")
        assert "1 approval waits for you." in answer.body
        assert stage.marta.read(stage.marta.ephemerals[0]).startswith("1 approval waits for you.")


async def test_the_same_envelope_fifty_times_is_one_decision_and_one_sentence(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), socket_mode=True, processes=2) as stage:
        asked = await stage.ask()
        click = stage.marta.prepare_click(await stage.card("38 payments"), "Approve")
        answers = await stage.sandbox.send_identical(click, times=50, to=[0, 1])
        assert [answer.acked for answer in answers] == [True] * 50
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38
        await stage.told(stage.marta)
        for process in stage.processes:
            await process.app.bot.tasks.drain(10)
        assert len(stage.marta.ephemerals) == 1


async def test_what_could_not_be_stored_is_not_acknowledged_and_counts_when_it_comes_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        stage.sandbox.slack.deliverer.ack_timeout = 0.5
        with monkeypatch.context() as without:
            unreachable(stage, without)
            await stage.ask()
        await stage.sandbox.until(lambda: stage.sandbox.deliveries[-1].acked)
        assert stage.sandbox.deliveries[0].failure == "timeout"
        assert await runs_begun(stage) == 1
        _, numbers = await get(stage, "/metrics")
        again = len(stage.sandbox.deliveries) - 1
        assert f'vistobueno_slack_retries_total{{reason="timeout"}} {again}.0' in numbers


async def test_what_slack_would_not_send_is_not_acknowledged_and_hurts_nothing_else(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        [connection] = sockets(stage).open
        for frame in ("{no json", "[]", "", "[" * 100_000, '{"type": "hello", "num_connections": "many"}'):
            await connection.socket.send_str(frame)
        await connection.socket.send_bytes(b"\x00")
        for payload in (None, "words", [], {}, {"type": "event_callback", "event": []}):
            envelope = {"envelope_id": "bad", "type": "events_api", "payload": payload}
            await connection.socket.send_json(envelope)
        await stage.ask()
        assert [ack["envelope_id"] for ack in connection.acks] == connection.sent
        assert await runs_begun(stage) == 1


# --- connections that come and go ---


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_connection_that_slack_gives_up_serves_until_the_next_one_does(
    database: Database, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        [old] = sockets(stage).open
        await old.disconnect(reason)
        new = await another(stage, old)
        assert sockets(stage).open == [old, new]
        await asyncio.gather(*(stage.leo.mention(SUPPORT, str(n), to=n % 2) for n in range(6)))
        await old.close()
        await stage.leo.mention(SUPPORT, "6")
        assert [len(each.acks) for each in (old, new)] == [3, 4]
        assert all(delivery.acked for delivery in stage.sandbox.deliveries)
        assert await runs_begun(stage) == 7


async def test_an_answer_whose_connection_has_gone_goes_out_on_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        [old], gate = sockets(stage).open, Gate(monkeypatch)
        asking = asyncio.create_task(stage.ask())
        await gate.reached.wait()
        await old.disconnect("refresh_requested")
        new = await another(stage, old)
        await old.close()
        gate.open.set()
        await asking
        assert [len(each.acks) for each in (old, new)] == [0, 1]
        assert (stage.sandbox.deliveries[0].acked, await runs_begun(stage)) == (True, 1)


async def test_what_was_under_way_when_the_connection_broke_comes_again_and_counts_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        deliverer = stage.sandbox.slack.deliverer
        deliverer.ack_timeout, deliverer.retry_delays = 0.5, (2.0,)
        [old], gate = sockets(stage).open, Gate(monkeypatch)
        asking = asyncio.create_task(stage.ask())
        await gate.reached.wait()
        old.break_off()
        gate.open.set()
        await asking
        await stage.sandbox.until(lambda: stage.sandbox.deliveries[-1].acked)
        assert stage.sandbox.deliveries[0].failure == "timeout"
        assert await runs_begun(stage) == 1


@pytest.mark.parametrize(
    ("reason", "says"),
    [("too_many_websockets", "stop processes that use the same"), ("link_disabled", "turn it on")],
)
async def test_readiness_says_why_nothing_comes_in_until_it_does_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, reason: str, says: str
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        [old] = sockets(stage).open
        assert (await get(stage, "/readyz"))[0] == 200
        await old.disconnect(reason)
        await stage.sandbox.until(lambda: sockets(stage).open == [])  # it is not left open meanwhile
        status, body = await get(stage, "/readyz")
        assert status == 503
        assert says in json.loads(body)["checks"]["socket_mode"]["error"]
        await another(stage, old)
        await eventually(lambda: is_ready(stage))


async def test_a_reason_is_heard_though_the_connection_closes_in_the_same_breath() -> None:
    sockets = Sockets("A1", Changes())
    await sockets.start()
    line = Line(AsyncWebClient(), sockets.new_url(), lambda line, request: None)
    try:
        await line.dial()
        [connection] = sockets.open
        await connection.disconnect("link_disabled")
        await connection.close()
        assert await line.leaves() == "link_disabled"
    finally:
        await line.hang_up()
        await sockets.stop()


async def test_while_slack_opens_no_connection_it_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        kept, stage.sandbox.slack.deliverer.sockets = sockets(stage), None
        [old] = kept.open
        await old.close()
        await stage.sandbox.until(lambda: stage.sandbox.calls[-1].error == "forbidden_team")
        assert "turn it on on your Slack app's page Socket Mode" in (await get(stage, "/readyz"))[1]
        stage.sandbox.slack.deliverer.sockets = kept
        await another(stage, old)
        await stage.ask()
        assert stage.sandbox.deliveries[-1].acked


async def is_ready(stage: Stage) -> bool:
    """Whether /readyz says so."""
    return (await get(stage, "/readyz"))[0] == 200


# --- processes ---


async def test_a_process_that_ends_finishes_what_is_under_way_and_takes_nothing_new(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        gate = Gate(monkeypatch)
        asking = asyncio.create_task(stage.ask())
        await gate.reached.wait()
        stage.processes[0].stop.set()
        await eventually(lambda: has_stopped_listening(stage))
        late = asyncio.create_task(stage.ask())
        await stage.sandbox.until(lambda: len(sockets(stage).open[0].sent) == 2)
        gate.open.set()
        await asyncio.gather(asking, late)
        assert [delivery.acked for delivery in stage.sandbox.deliveries[:2]] == [True, False]
        assert await runs_begun(stage) == 1


async def has_stopped_listening(stage: Stage) -> bool:
    """Whether the process reads no more of what Slack sends."""
    kept = stage.processes[0].app.socket_mode
    assert kept is not None
    [line] = kept._lines
    return line.message_receiver is not None and line.message_receiver.done()


async def test_when_one_of_two_processes_dies_the_other_takes_all_and_says_no_secrets(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        staged(database, monkeypatch, NOTHING, socket_mode=True, processes=0) as stage,
        child(stage, "web") as first,
        child(stage, "web", LOG_LEVEL="DEBUG") as other,
    ):
        await stage.sandbox.until(lambda: len(sockets(stage).open) == 2)
        await first.kill()
        await stage.sandbox.until(lambda: len(sockets(stage).open) == 1)
        for number in range(3):
            await stage.leo.mention(SUPPORT, f"please answer {number}")
        assert [delivery.acked for delivery in stage.sandbox.deliveries] == [True] * 3
        await other.stop()
    said = capsys.readouterr().err
    assert "socket mode: connected" in said
    assert [word for word in ("xapp-", "xoxb-", "ticket", "please answer") if word in said] == []


async def test_over_http_nothing_unsigned_is_taken_and_nothing_at_all_without_a_secret(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        assert await post(stage, BODY, {}) == 401
        assert await post(stage, BODY, signed(stage, BODY)) == 401
        assert await post(stage, BODY, signed(stage, BODY, secret="")) == 401
        secret = stage.sandbox.workspace.app.signing_secret
        async with process_of(replace(stage.settings, slack_signing_secret=secret), work=False) as both:
            stage.processes.insert(0, both)
            assert await post(stage, BODY, {}) == 401
            assert await post(stage, BODY, signed(stage, BODY)) == 200
