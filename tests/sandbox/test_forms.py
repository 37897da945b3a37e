"""Forms: what Slack's client sends, and how it follows each answer."""

import asyncio
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bot.sandbox import Delivery, FormIncompleteError, Sandbox
from tests.sandbox.drive import answering
from tests.sandbox.parts import (
    field,
    modal,
    number_input,
    option,
    section,
    select,
    text_input,
)

Json = dict[str, Any]


async def open_form(sandbox: Sandbox, client: AsyncWebClient, *blocks: Json, **more: Any) -> None:
    trigger_id = sandbox.slack.triggers.issue("U0MARTA")
    await client.views_open(trigger_id=trigger_id, view=modal(*blocks, **more))


async def submit_answered(sandbox: Sandbox, client: AsyncWebClient, response: Response) -> Delivery:
    async def answer(request: Request) -> Response:
        return response

    await open_form(sandbox, client, section(block_id="text"), field(block_id="b"))
    async with answering(sandbox, answer):
        return await sandbox.person("U0MARTA").fill({"Field": "x"}).submit()


def view_answer(action: str) -> Response:
    return JSONResponse({"response_action": action, "view": modal(section("next"))})


@pytest.mark.parametrize("body", ["", "{}"])
async def test_an_empty_answer_closes_the_view(sandbox: Sandbox, client: AsyncWebClient, body: str) -> None:
    await submit_answered(sandbox, client, Response(body))
    assert sandbox.person("U0MARTA").views == []


async def test_errors_keep_the_view_open_beside_their_inputs(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    answer = JSONResponse({"response_action": "errors", "errors": {"b": "Too low."}})
    await submit_answered(sandbox, client, answer)
    view = sandbox.person("U0MARTA").view
    assert (view.errors, view.banner) == ({"b": "Too low."}, None)
    assert view.typed["b", "typed"]["value"] == "x"


@pytest.mark.parametrize("errors", [{"text": "x"}, {"typed": "x"}, {}, None])
async def test_errors_for_anything_but_inputs_are_trouble(
    sandbox: Sandbox, client: AsyncWebClient, errors: object
) -> None:
    answer = JSONResponse({"response_action": "errors", "errors": errors})
    await submit_answered(sandbox, client, answer)
    assert sandbox.person("U0MARTA").view.banner is not None


async def test_update_replaces_push_adds_and_clear_closes_all(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    marta = sandbox.person("U0MARTA")
    for action, shown in (("update", ["next"]), ("push", ["x", "next"]), ("clear", [])):
        await submit_answered(sandbox, client, view_answer(action))
        assert [v.blocks[0]["text"]["text"] for v in marta.views] == shown


@pytest.mark.parametrize(
    "answer",
    [
        Response(status_code=500),
        JSONResponse({"response_action": "dance"}),
        JSONResponse({"response_action": "update", "view": {"type": "modal"}}),
        PlainTextResponse("ok"),
    ],
    ids=["500", "unknown", "invalid view", "no json"],
)
async def test_an_answer_slack_cannot_use_leaves_the_form_with_a_banner(
    sandbox: Sandbox, client: AsyncWebClient, answer: Response
) -> None:
    await submit_answered(sandbox, client, answer)
    view = sandbox.person("U0MARTA").view
    assert view.banner is not None
    assert view.typed["b", "typed"]["value"] == "x"


async def test_a_fourth_view_pushed_by_an_answer_is_trouble(sandbox: Sandbox, client: AsyncWebClient) -> None:
    async def push(request: Request) -> Response:
        return JSONResponse({"response_action": "push", "view": modal(section())})

    marta = sandbox.person("U0MARTA")
    await open_form(sandbox, client, section())
    async with answering(sandbox, push):
        for _ in range(3):
            await marta.submit()
    assert (len(marta.views), marta.view.banner is not None) == (3, True)


async def test_a_late_ack_of_a_form_leaves_it_open_with_a_banner(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    release = asyncio.Event()

    async def late(request: Request) -> Response:
        await release.wait()
        return Response()

    await open_form(sandbox, client, field())
    sandbox.slack.deliverer.ack_timeout = 0.05
    async with answering(sandbox, late):
        delivery = await sandbox.person("U0MARTA").fill({"Field": "x"}).submit()
        release.set()
    assert (delivery.failure, sandbox.person("U0MARTA").view.banner is not None) == ("http_timeout", True)


@pytest.mark.parametrize(
    ("element", "value", "refused"),
    [
        (text_input(), "", True),
        (text_input(max_length=3), "four", True),
        (text_input(min_length=3), "no", True),
        (text_input(max_length=3), "yes", False),
        (number_input(action_id="n", max_value="50"), "51", True),
        (number_input(action_id="n", min_value="1"), "0", True),
        (number_input(action_id="n"), "1.5", True),
        (number_input(action_id="n"), "one", True),
        (number_input(action_id="n", max_value="50"), "50", False),
        ({"type": "email_text_input", "action_id": "e"}, "marta", True),
        ({"type": "email_text_input", "action_id": "e"}, "marta@shop.example", False),
    ],
)
async def test_slacks_client_does_not_send_an_incomplete_form(
    sandbox: Sandbox, client: AsyncWebClient, element: Json, value: str, refused: bool
) -> None:
    await open_form(sandbox, client, field(element, block_id="b"))
    marta = sandbox.person("U0MARTA").fill({"Field": value})
    if not refused:
        marta.prepare_submit()
        return
    with pytest.raises(FormIncompleteError) as error:
        await marta.submit()
    assert list(error.value.errors) == ["b"]
    assert sandbox.deliveries == []


async def test_initial_values_count_and_selects_are_filled_by_label(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    chosen = select(option("One", "1"), option("Two", "2"), action_id="s", initial_option=option("One", "1"))
    many = {"type": "checkboxes", "action_id": "c", "options": [option("A", "a"), option("B", "b")]}
    await open_form(sandbox, client, field(chosen, "Pick", block_id="p"), field(many, "Many", block_id="m"))
    marta = sandbox.person("U0MARTA").fill({"Many": ["A", "b"]})
    values = marta.prepare_submit().payload["view"]["state"]["values"]
    assert values["p"]["s"]["selected_option"]["value"] == "1"
    assert [o["value"] for o in values["m"]["c"]["selected_options"]] == ["a", "b"]
    with pytest.raises(LookupError, match="no option"):
        marta.fill({"Pick": "Three"})
    with pytest.raises(LookupError, match="sees no"):
        marta.fill({"Nothing": "x"})
