"""Socket Mode as Slack speaks it: tickets, hello, envelopes and their answers, and connections that end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from bot.sandbox import RateLimits, Sandbox
from bot.sandbox.limits import SOCKETS_PER_APP
from tests.sandbox.drive import client_of

Socket = aiohttp.ClientWebSocketResponse


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox.running(
        rate_limits=RateLimits.off(), socket_mode=True, ack_timeout=0.2, retry_delays=(0.0, 0.0, 0.0)
    ) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def new_url(sandbox: Sandbox) -> str:
    """What apps.connections.open gives the app's token."""
    return str((await client_of(sandbox).apps_connections_open(app_token="xapp-sandbox"))["url"])


async def connected(sandbox: Sandbox, http: aiohttp.ClientSession) -> tuple[Socket, dict[str, Any]]:
    """A connection of the app, and the first frame on it."""
    socket = await http.ws_connect(await new_url(sandbox))
    return socket, await socket.receive_json()


async def test_a_connection_begins_with_a_hello_that_counts_the_app_s_connections(
    sandbox: Sandbox, http: aiohttp.ClientSession
) -> None:
    both = [await connected(sandbox, http) for _ in range(2)]  # a connection that nobody keeps is closed
    hellos = [hello for _, hello in both]
    assert [hello["type"] for hello in hellos] == ["hello", "hello"]
    assert [hello["num_connections"] for hello in hellos] == [1, 2]
    assert hellos[0]["connection_info"] == {"app_id": "A0VISTO"}


async def test_a_url_is_good_for_one_connection(sandbox: Sandbox, http: aiohttp.ClientSession) -> None:
    url = await new_url(sandbox)
    await http.ws_connect(url)
    for used_or_forged in (url, url.replace("ticket=", "ticket=x")):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(used_or_forged)


async def test_the_eleventh_connection_is_one_too_many(sandbox: Sandbox, http: aiohttp.ClientSession) -> None:
    kept = [await connected(sandbox, http) for _ in range(SOCKETS_PER_APP)]
    _, first = await connected(sandbox, http)
    assert len(kept) == 10
    assert (first["type"], first["reason"]) == ("disconnect", "too_many_websockets")
    assert len(sandbox.sockets.open) == 10


async def test_an_event_takes_no_payload_and_says_which_attempt_it_is(
    sandbox: Sandbox, http: aiohttp.ClientSession
) -> None:
    socket, _ = await connected(sandbox, http)
    asking = asyncio.create_task(sandbox.person("U0MARTA").open_home())
    first, second = await socket.receive_json(), await socket.receive_json()  # the first is not answered
    await socket.send_json({"envelope_id": second["envelope_id"]})
    await asking
    await sandbox.until(lambda: sandbox.deliveries[-1].acked)
    assert (first["type"], first["accepts_response_payload"]) == ("events_api", False)
    assert (first["retry_attempt"], first["retry_reason"]) == (0, "")
    assert (second["retry_attempt"], second["retry_reason"]) == (1, "timeout")
    assert second["payload"] == first["payload"]
    assert [delivery.failure for delivery in sandbox.deliveries] == ["timeout", None]


async def test_a_command_is_answered_with_a_payload_and_never_comes_again(
    sandbox: Sandbox, http: aiohttp.ClientSession
) -> None:
    socket, _ = await connected(sandbox, http)
    marta = sandbox.person("U0MARTA")
    asking = asyncio.create_task(marta.slash("/approvals"))
    envelope = await socket.receive_json()
    assert (envelope["type"], envelope["accepts_response_payload"]) == ("slash_commands", True)
    assert envelope["payload"]["command"] == "/approvals"
    assert "retry_attempt" not in envelope
    await socket.send_json({"envelope_id": envelope["envelope_id"], "payload": {"text": "Nothing waits."}})
    assert (await asking).acked
    await marta.slash("/approvals")
    said = [marta.read(note) for note in marta.ephemerals]
    assert said == ["Nothing waits.", '/approvals failed with the error "operation_timeout"']
    assert len(sandbox.deliveries) == 2


async def test_each_envelope_goes_to_one_connection_in_turn(
    sandbox: Sandbox, http: aiohttp.ClientSession
) -> None:
    sandbox.slack.deliverer.retry_delays = ()
    async with AsyncExitStack() as stack:
        for _ in range(2):
            socket, _ = await connected(sandbox, http)
            stack.push_async_callback(socket.close)
        for _ in range(4):
            await sandbox.person("U0MARTA").open_home()
        assert [len(connection.sent) for connection in sandbox.sockets.open] == [2, 2]


async def test_without_a_connection_nothing_can_be_delivered(sandbox: Sandbox) -> None:
    await sandbox.person("U0MARTA").open_home()
    await sandbox.until(lambda: len(sandbox.deliveries) == 4)
    assert {delivery.failure for delivery in sandbox.deliveries} == {"connection_failed"}
