"""People: what they see and find, what a press sends, commands, and waiting."""

import asyncio
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bot.sandbox import Sandbox
from tests.sandbox.drive import acknowledge, answering
from tests.sandbox.parts import (
    actions,
    button,
    cell,
    option,
    section,
    select,
    table,
)

Json = dict[str, Any]


async def post(client: AsyncWebClient, *blocks: Json) -> str:
    return str((await client.chat_postMessage(channel="C0APPROVALS", text="x", blocks=list(blocks)))["ts"])


async def test_a_button_is_found_by_label_action_id_and_index(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    marta = sandbox.person("U0MARTA")
    ts = await post(client, actions(button("Approve", action_id="go"), button("Reject"), button("Reject")))
    assert marta.buttons(ts) == ["Approve", "Reject", "Reject"]
    async with answering(sandbox, acknowledge):
        for name, index in (("Approve", None), ("go", None), ("Reject", 1)):
            assert (await marta.click(ts, name, index=index)).acked
    with pytest.raises(LookupError, match="give an index"):
        marta.prepare_click(ts, "Reject")
    with pytest.raises(LookupError, match="sees no 'Edit'"):
        marta.prepare_click(ts, "Edit")


async def test_people_outside_a_channel_see_nothing_of_it(sandbox: Sandbox, client: AsyncWebClient) -> None:
    ts = await post(client, actions(button("Approve")))
    sandbox.channel("C0APPROVALS").members.discard("U0GUEST")
    with pytest.raises(LookupError, match="does not see"):
        sandbox.person("U0GUEST").prepare_click(ts, "Approve")


async def test_a_button_for_some_is_hidden_from_the_others(sandbox: Sandbox, client: AsyncWebClient) -> None:
    ts = await post(client, actions(button("Approve", visible_to_user_ids=["U0MARTA"]), button("Details")))
    assert sandbox.person("U0MARTA").buttons(ts) == ["Approve", "Details"]
    assert sandbox.person("U0LEO").buttons(ts) == ["Details"]
    with pytest.raises(LookupError):
        sandbox.person("U0LEO").prepare_click(ts, "Approve")


async def test_a_stale_client_still_presses_what_it_shows(sandbox: Sandbox, client: AsyncWebClient) -> None:
    ts = await post(client, actions(button("Approve", value="revision 1")))
    stale = sandbox.channel("C0APPROVALS").last.snapshot()
    await client.chat_update(channel="C0APPROVALS", ts=ts, text="done", blocks=[section("done")])
    async with answering(sandbox, acknowledge):
        click = await sandbox.person("U0MARTA").click(stale, "Approve")
    assert click.payload["actions"][0]["value"] == "revision 1"
    assert sandbox.person("U0MARTA").buttons(ts) == []


async def test_a_table_is_read_row_by_row(sandbox: Sandbox, client: AsyncWebClient) -> None:
    rows = [[cell("Payment"), cell("Amount")], [cell("p1"), cell("€5.00")]]
    ts = await post(client, section("Impact"), table() | {"rows": rows})
    marta = sandbox.person("U0MARTA")
    assert marta.tables(ts)[0].header == ("Payment", "Amount")
    assert marta.tables(ts)[0].rows == (("p1", "€5.00"),)
    assert marta.read(ts).splitlines() == ["Impact", "Payment", "Amount", "p1", "€5.00"]


async def test_a_select_in_a_message_sends_the_chosen_option(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    ts = await post(client, actions(select(option("Later", "4h"), action_id="when"), block_id="b"))
    async with answering(sandbox, acknowledge):
        choice = await sandbox.person("U0MARTA").choose(ts, "when", "Later")
    assert choice.payload["actions"][0]["selected_option"]["value"] == "4h"
    assert choice.payload["state"]["values"]["b"]["when"]["selected_option"]["value"] == "4h"


async def test_the_answer_to_a_command_is_shown_to_its_author(sandbox: Sandbox) -> None:
    for response in (PlainTextResponse("2 pending"), JSONResponse({"text": "2 pending"})):

        async def answer(request: Request, response: Response = response) -> Response:
            return response

        async with answering(sandbox, answer):
            await sandbox.person("U0MARTA").slash("/approvals")
    assert [m.text for m in sandbox.ephemerals_for("U0MARTA")] == ["2 pending"] * 2
    with pytest.raises(LookupError, match="not a valid command"):
        await sandbox.person("U0MARTA").slash("/nonsense")


async def test_a_failed_command_is_told_by_slackbot(sandbox: Sandbox) -> None:
    sandbox.connect("http://127.0.0.1:1")
    await sandbox.person("U0MARTA").slash("/approvals")
    assert "dispatch_failed" in sandbox.ephemerals_for("U0MARTA")[0].text


async def test_a_messages_tab_that_is_read_only_takes_no_messages(sandbox: Sandbox) -> None:
    sandbox.workspace.app.messages_tab_read_only = True
    with pytest.raises(LookupError, match="turned off"):
        await sandbox.person("U0MARTA").dm("hi")


async def test_waiting_ends_with_the_change_it_waits_for(sandbox: Sandbox, client: AsyncWebClient) -> None:
    waiting = asyncio.create_task(sandbox.until(lambda: sandbox.channel("C0SUPPORT").messages))
    await client.chat_postMessage(channel="C0SUPPORT", text="x")
    assert [m.text for m in await waiting] == ["x"]
    with pytest.raises(TimeoutError):
        await sandbox.until(lambda: False, 0.01)
