"""The page: modals are opened, filled in, refused under their inputs, submitted and closed."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.sandbox.browsing import Browser, Document
from tests.sandbox.drive import Recorder, answering
from tests.sandbox.parts import (
    actions,
    button,
    field,
    modal,
    number_input,
    option,
    plain,
    section,
    select,
    text_input,
)

Json = dict[str, Any]
REQUIRED = "Please complete this required field."


class App:
    """An app that opens a modal at every press, and answers a submission as it is told."""

    def __init__(
        self, client: AsyncWebClient, *blocks: Json, answer: Json | None = None, **more: Any
    ) -> None:
        self.client, self.view, self.answer = (
            client,
            modal(*blocks, **{"submit": plain("Done"), **more}),
            answer,
        )
        self.payloads: list[Json] = []

    async def answer_delivery(self, request: Request) -> Response:
        payload = json.loads((await _form(request))["payload"])
        self.payloads.append(payload)
        if payload["type"] == "block_actions" and payload["container"]["type"] == "message":
            await self.client.views_open(trigger_id=payload["trigger_id"], view=self.view)
        if payload["type"] == "view_submission" and self.answer is not None:
            return JSONResponse(self.answer)
        return Response()

    def submitted(self) -> Json:
        """What stood in the inputs, per block_id."""
        values: Json = self.payloads[-1]["view"]["state"]["values"]
        return {block: next(iter(held.values())) for block, held in values.items()}


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode()))


async def opened(browser: Browser, client: AsyncWebClient) -> Document:
    """The page after the press that opens the modal."""
    await client.chat_postMessage(channel="C0APPROVALS", text="x", blocks=[actions(button("Edit it"))])
    return await browser.press(await browser.open(), "Edit it")


async def test_a_modal_is_shown_filled_in_and_submitted(browser: Browser, client: AsyncWebClient) -> None:
    reason = field(text_input(multiline=True, initial_value="<old>"), "Reason", block_id="reason")
    app = App(client, section("Say *why*"), reason, submit=plain("Refuse"))
    async with answering(browser.sandbox, app.answer_delivery):
        page = await opened(browser, client)
        assert "Edit Say why Reason" in page.text
        assert ("&lt;old&gt;</textarea>") in page.html
        page = await browser.press(page, "Refuse", {"Reason": "two\r\nlines"})
    assert app.submitted()["reason"]["value"] == "two\nlines"
    assert "<dialog" not in page.html


@pytest.mark.parametrize(
    ("element", "typed", "name", "expected"),
    [
        (number_input(action_id="a"), "12", "value", 12),
        ({"type": "email_text_input", "action_id": "a"}, "a@b.example", "value", "a@b.example"),
        ({"type": "datepicker", "action_id": "a"}, "2026-11-30", "selected_date", "2026-11-30"),
        ({"type": "timepicker", "action_id": "a"}, "23:10", "selected_time", "23:10"),
        (
            {"type": "datetimepicker", "action_id": "a"},
            "2026-11-30T23:10",
            "selected_date_time",
            1_796_076_600,
        ),
        ({"type": "users_select", "action_id": "a"}, "U0LEO", "selected_user", "U0LEO"),
        ({"type": "channels_select", "action_id": "a"}, "C0SUPPORT", "selected_channel", "C0SUPPORT"),
    ],
)
async def test_each_input_holds_what_was_entered(
    browser: Browser, client: AsyncWebClient, element: Json, typed: str, name: str, expected: Any
) -> None:
    app = App(client, field(element, "It", block_id="it"))
    async with answering(browser.sandbox, app.answer_delivery):
        await browser.press(await opened(browser, client), "Done", {"It": typed})
    held = app.submitted()["it"][name]
    assert held == expected or float(held) == expected


async def test_a_moment_is_entered_in_the_zone_of_the_browser(
    browser: Browser, client: AsyncWebClient
) -> None:
    browser.headers["Cookie"] = "zone=Asia/Tokyo"
    app = App(client, field({"type": "datetimepicker", "action_id": "a"}, "It", block_id="it"))
    async with answering(browser.sandbox, app.answer_delivery):
        await browser.press(await opened(browser, client), "Done", {"It": "2026-12-01T07:10"})
    assert app.submitted()["it"]["selected_date_time"] == 1_796_076_600


async def test_options_are_chosen(browser: Browser, client: AsyncWebClient) -> None:
    options = [option("One", "1"), option("Two", "2"), option("Three", "3")]
    one = field(select(*options, action_id="a"), "One of them", block_id="one")
    some = {"type": "multi_static_select", "options": options, "initial_options": [option("One", "1")]}
    boxes = {
        "type": "checkboxes",
        "options": options,
        "initial_options": [option("Two", "2")],
        "action_id": "c",
    }
    app = App(
        client,
        one,
        field({**some, "action_id": "s"}, "Some", block_id="some"),
        field(boxes, "Boxes", block_id="boxes", optional=True),
    )
    async with answering(browser.sandbox, app.answer_delivery):
        page = await opened(browser, client)
        typed = {"One of them": "3", "Some": ["2", "3"], '["boxes", "c"]': []}
        await browser.press(page, "Done", typed)
    held = app.submitted()
    assert held["one"]["selected_option"]["value"] == "3"
    assert [o["value"] for o in held["some"]["selected_options"]] == ["2", "3"]
    assert held["boxes"]["selected_options"] == []


async def test_what_slacks_client_refuses_stands_under_its_input(
    browser: Browser, client: AsyncWebClient
) -> None:
    app = App(
        client, field(text_input(), "Reason", block_id="reason"), field(number_input(), "Count", block_id="n")
    )
    async with answering(browser.sandbox, app.answer_delivery):
        page = await browser.press(await opened(browser, client), "Done", {"Count": "many"})
    assert [payload["type"] for payload in app.payloads] == ["block_actions"], "nothing was sent"
    assert f"Reason {REQUIRED} Count Enter a number." in page.text
    assert 'aria-invalid="true"' in page.html
    assert 'value="many"' in page.html, "what was typed is kept"


async def test_what_the_app_refuses_stands_under_its_input(browser: Browser, client: AsyncWebClient) -> None:
    refusal = {"response_action": "errors", "errors": {"reason": "Say more <b>."}}
    app = App(
        client, field(text_input(), "Reason", block_id="reason", hint=plain("In a word")), answer=refusal
    )
    async with answering(browser.sandbox, app.answer_delivery):
        page = await browser.press(await opened(browser, client), "Done", {"Reason": "no"})
    assert "Reason Say more <b>. In a word" in page.text
    described = 'aria-describedby="f-reason-typed-error f-reason-typed-hint"'
    assert described in page.html


async def test_an_app_that_fails_at_a_submission_shows_slacks_banner(
    browser: Browser, client: AsyncWebClient
) -> None:
    async with answering(browser.sandbox, App(client, section()).answer_delivery):
        page = await opened(browser, client)
    async with answering(browser.sandbox, Recorder(500).__call__):
        page = await browser.press(page, "Done")
    assert "We had some trouble connecting. Try again?" in page.text


async def test_a_modal_is_closed_and_the_app_told_if_it_asked(
    browser: Browser, client: AsyncWebClient
) -> None:
    app = App(client, section(), close=plain("Never mind"), notify_on_close=True)
    async with answering(browser.sandbox, app.answer_delivery):
        page = await browser.press(await opened(browser, client), "Never mind")
    assert app.payloads[-1]["type"] == "view_closed"
    assert "<dialog" not in page.html


async def test_a_button_in_a_modal_keeps_what_was_typed(browser: Browser, client: AsyncWebClient) -> None:
    app = App(
        client, field(text_input(), "Reason", block_id="reason"), actions(button("More", action_id="more"))
    )
    async with answering(browser.sandbox, app.answer_delivery):
        page = await browser.press(await opened(browser, client), "More", {"Reason": "half"})
    assert app.payloads[-1]["actions"][0]["action_id"] == "more"
    assert 'value="half"' in page.html


async def test_a_window_that_is_gone_is_told(browser: Browser, client: AsyncWebClient) -> None:
    async with answering(browser.sandbox, App(client, section()).answer_delivery):
        page = await opened(browser, client)
        await browser.press(page, "Close")
        for label in ("Done", "Close"):
            again = await browser.press(page, label, at=-1)
            assert (again.status, again.text.split(" Back")[0]) == (409, "This window is no longer open.")


async def test_a_modal_is_seen_by_the_person_who_opened_it_alone(
    browser: Browser, client: AsyncWebClient
) -> None:
    async with answering(browser.sandbox, App(client, section("for Marta")).answer_delivery):
        await opened(browser, client)
    assert "for Marta" in (await browser.open("U0MARTA", "home")).text
    assert "for Marta" not in (await browser.open("U0LEO")).text


async def test_an_option_that_is_not_offered_is_refused(browser: Browser, client: AsyncWebClient) -> None:
    app = App(client, field(select(option("One", "1"), action_id="a"), "It", block_id="it"))
    async with answering(browser.sandbox, app.answer_delivery):
        page = await browser.press(await opened(browser, client), "Done", {"It": "9"})
    assert page.status == 409
    assert page.text.startswith("There is no option '9'")


async def test_what_a_window_warns_of_is_read_out_anew_each_time(
    browser: Browser, client: AsyncWebClient
) -> None:
    app = App(client, section("⚠️ It is too much."), section("More about it"))
    alert = re.compile(r'<div class="block section" role="alert" id="([^"]+)">')
    async with answering(browser.sandbox, app.answer_delivery):
        page = await opened(browser, client)
        first = alert.findall(page.html)
        view_id = browser.sandbox.person("U0MARTA").view.id
        await client.views_update(view_id=view_id, view=modal(section("⚠️ It is still too much."), section()))
        again = alert.findall((await browser.open()).html)
    assert len(first) == len(again) == 1 and first != again


async def test_a_warning_in_a_message_is_read_with_its_log(browser: Browser, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel="C0APPROVALS", text="x", blocks=[section("⚠️ It is too much.")])
    assert '<div class="block section">' in (await browser.open()).html
