"""A real Bolt app on the sandbox: signatures hold, a click opens a modal, its answers are followed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import Response

from bot.sandbox import Sandbox
from tests.sandbox.drive import answering, client_of
from tests.sandbox.parts import actions, button, field, modal


def bolt_app(sandbox: Sandbox, secret: str = "sandbox-signing-secret") -> AsyncApp:
    async def authorize(**_: Any) -> AuthorizeResult:
        found = await client_of(sandbox).auth_test()
        return AuthorizeResult.from_auth_test_response(auth_test_response=found, bot_token="xoxb-sandbox")

    app = AsyncApp(
        signing_secret=secret,
        authorize=authorize,
        client=client_of(sandbox),
        process_before_response=True,
    )
    app.event("app_mention")(on_mention)
    app.event("message")(on_message)
    app.action("edit")(on_edit)
    app.view("edit")(on_submit)
    app.command("/approvals")(on_command)
    return app


async def on_mention(event: dict[str, Any], say: Any) -> None:
    blocks = [actions(button("Edit", action_id="edit", value="7"))]
    await say(text="a card", blocks=blocks, thread_ts=event["ts"])


async def on_message(event: dict[str, Any], say: Any) -> None:
    await say(f"heard {event['text']}")


async def on_edit(ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
    await ack()
    view = modal(field(label="Amount", block_id="amount"), callback_id="edit", private_metadata="7")
    await client.views_open(trigger_id=body["trigger_id"], view=view)


async def on_submit(ack: Any, view: dict[str, Any]) -> None:
    if view["state"]["values"]["amount"]["typed"]["value"] == "0":
        await ack(response_action="errors", errors={"amount": "Must not be zero."})
    else:
        await ack()


async def on_command(ack: Any, command: dict[str, str]) -> None:
    await ack(f"you asked for {command['text']}")


@pytest.fixture
async def running(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    handler = AsyncSlackRequestHandler(bolt_app(sandbox))

    async def answer(request: Request) -> Response:
        return await handler.handle(request)

    async with answering(sandbox, answer):
        yield sandbox


async def test_a_mention_is_answered_in_its_thread(running: Sandbox) -> None:
    asked = await running.person("U0MARTA").mention("C0SUPPORT", "refund them")
    assert [m.text for m in running.channel("C0SUPPORT").thread(asked.ts)][1:] == ["a card"]


async def test_a_modal_goes_round_with_an_error_and_then_closes(running: Sandbox) -> None:
    marta = running.person("U0MARTA")
    await marta.mention("C0SUPPORT", "refund them")
    await marta.click(running.channel("C0SUPPORT").last, "Edit")
    assert (marta.view.title, marta.view.private_metadata) == ("Edit", "7")
    await marta.fill({"Amount": "0"}).submit()
    assert marta.view.errors == {"amount": "Must not be zero."}
    await marta.fill({"Amount": "5"}).submit()
    assert marta.views == []


async def test_a_direct_message_is_answered_and_the_answer_is_not_heard_again(running: Sandbox) -> None:
    await running.person("U0LEO").dm("hello")
    await running.until(lambda: len(running.deliveries) == 2)
    assert [m.text for m in running.dm("U0LEO").messages] == ["hello", "heard hello"]


async def test_a_command_is_answered_privately(running: Sandbox) -> None:
    await running.person("U0LEO").slash("/approvals", "all")
    assert [m.text for m in running.ephemerals_for("U0LEO")] == ["you asked for all"]


async def test_the_challenge_is_echoed(running: Sandbox) -> None:
    delivery = await running.admin.verify_request_url()
    assert delivery.payload["challenge"] in delivery.body


async def test_another_signing_secret_is_refused(sandbox: Sandbox) -> None:
    handler = AsyncSlackRequestHandler(bolt_app(sandbox, "another-secret"))

    async def answer(request: Request) -> Response:
        return await handler.handle(request)

    async with answering(sandbox, answer):
        delivery = await sandbox.person("U0MARTA").slash("/approvals")
    assert (delivery.status, delivery.acked) == (401, False)
