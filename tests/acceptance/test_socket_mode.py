"""Socket Mode: the same product without a public URL, and nothing lost when connections come and go."""

import asyncio

import pytest

from bot.sandbox.sockets import Connection
from store import runs
from tests.acceptance.scripts import NOTHING, ask_for_refunds
from tests.acceptance.stage import SUPPORT, Stage, staged
from tests.databases import Database

REASONS = ["warning", "refresh_requested"]


async def next_connection(stage: Stage, old: Connection) -> Connection:
    """The one that the app opens besides or after `old`."""

    def find() -> Connection | None:
        return next((each for each in stage.sandbox.sockets.open if each is not old), None)

    found = await stage.sandbox.until(find)
    assert found is not None
    return found


async def test_an_approval_goes_its_whole_way_without_a_request_over_http(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, ask_for_refunds(), socket_mode=True) as stage:
        asked = await stage.ask()
        await stage.marta.click(await stage.card("38 payments"), "Approve")
        await stage.said(asked, "That is all.")
        assert len(stage.provider.refunds) == 38
        assert {delivery.url for delivery in stage.sandbox.deliveries} == {"socket"}
        assert [delivery.failure for delivery in stage.sandbox.deliveries if not delivery.acked] == []


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


@pytest.mark.parametrize("reason", REASONS)
async def test_a_connection_that_slack_gives_up_is_replaced_before_it_is_closed(
    database: Database, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        old = stage.sandbox.sockets.open[0]
        await old.disconnect(reason)
        new = await next_connection(stage, old)
        assert old in stage.sandbox.sockets.open
        for to in (0, 1):
            await stage.leo.mention(SUPPORT, f"over {to}", to=to)
        await old.close()
        await stage.sandbox.until(lambda: stage.sandbox.sockets.open == [new])
        assert [delivery.acked for delivery in stage.sandbox.deliveries] == [True, True]
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=9)) == 2


async def test_an_answer_goes_out_on_the_connection_of_its_request(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        old = stage.sandbox.sockets.open[0]
        await old.disconnect("refresh_requested")
        new = await next_connection(stage, old)
        await asyncio.gather(*(stage.leo.mention(SUPPORT, str(number), to=number % 2) for number in range(6)))
        for connection in (old, new):
            assert sorted(ack["envelope_id"] for ack in connection.acks) == sorted(connection.sent)


async def test_after_a_connection_is_lost_what_was_on_it_comes_again_and_counts_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(database, monkeypatch, NOTHING, socket_mode=True, work=False) as stage:
        old = stage.sandbox.sockets.open[0]
        old.break_off()
        new = await next_connection(stage, old)
        await stage.leo.mention(SUPPORT, "hello")
        event = stage.sandbox.deliveries[-1].request
        await stage.sandbox.send_identical(event, times=3)
        assert len(new.acks) == 4
        assert len(await runs.listed(stage.db, unfinished_only=False, limit=9)) == 1
