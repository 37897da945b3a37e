"""The page: what people do on it is done through their Slack client, and what fails is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import Recorder, acknowledge, answer, answering
from tests.sandbox.parts import actions, button, confirm, option, section, select

Json = dict[str, Any]
SUGGESTION = "please refund the failed payments"


async def card(client: AsyncWebClient, *elements: Json, **more: Any) -> str:
    blocks = [section("Refund 38"), actions(*elements, block_id="b")]
    message = {"channel": "C0APPROVALS", "text": "x", "blocks": blocks, **more}
    answered = await answer(client, "chat.postMessage", **message)
    assert answered["ok"], answered
    return str(answered["ts"])


def pressed(sandbox: Sandbox) -> Json:
    """The action of the last press that was delivered."""
    action: Json = sandbox.deliveries[-1].payload["actions"][0]
    return action


async def test_the_first_sentence_of_the_story_stands_ready_and_reaches_the_bot() -> None:
    async with (
        Sandbox.running(rate_limits=RateLimits.off(), suggestion=SUGGESTION) as sandbox,
        aiohttp.ClientSession() as http,
        answering(sandbox, acknowledge),
    ):
        browser = Browser(sandbox, http)
        page = await browser.press(await browser.get("/"), "Send")
        assert page.status == 200
        event = sandbox.deliveries[-1].payload["event"]
        assert (event["type"], event["user"]) == ("app_mention", "U0LEO")
        assert event["text"] == f"<@U0BOT> {SUGGESTION}"
        assert f"@vistobueno {SUGGESTION}" in page.text
        assert SUGGESTION not in str(page.fields), "it is not offered again"


async def test_the_first_sentence_stands_ready_in_the_first_channel_while_nobody_has_written_there() -> None:
    async with (
        Sandbox.running(rate_limits=RateLimits.off(), suggestion=SUGGESTION) as sandbox,
        aiohttp.ClientSession() as http,
    ):
        leo = sandbox.person("U0LEO")
        gone = await leo.say("C0SUPPORT", "question")
        await leo.say("C0SUPPORT", "answer", gone.ts)
        gone.deleted = True
        page = await Browser(sandbox, http).open("U0LEO", "C0SUPPORT")
        assert "Nobody has written here yet. The first words stand ready below: press Send." in page.text
        assert SUGGESTION in str(page.fields)
        for place in ("C0APPROVALS", "dm"):
            page = await Browser(sandbox, http).open("U0LEO", place)
            assert page.text.count("Nobody has written here yet.") == 1
            assert "stand ready" not in page.text
            assert SUGGESTION not in str(page.fields)


async def test_what_is_typed_is_escaped_and_names_become_ids(browser: Browser) -> None:
    page = await browser.open("U0LEO", "C0SUPPORT")
    typed = "@Marta & @LEO <b> in #approvals, mail@marta.example"
    page = await browser.press(page, "Send", {"Message #support": typed})
    said = browser.sandbox.channel("C0SUPPORT").last.text
    assert said == "<@U0MARTA> &amp; <@U0LEO> &lt;b&gt; in <#C0APPROVALS>, mail@marta.example"
    assert "@Marta & @Leo <b> in #approvals" in page.text


async def test_a_reply_goes_into_the_open_thread_and_the_channels_form_beside_it_does_not(
    browser: Browser,
) -> None:
    sandbox = browser.sandbox
    root = await sandbox.person("U0LEO").say("C0SUPPORT", "question")
    page = await browser.open("U0LEO", "C0SUPPORT", thread=root.ts)
    page = await browser.press(page, "Send", {"Message this thread": "answer"}, at=1)
    assert sandbox.channel("C0SUPPORT").last.thread_ts == root.ts
    page = await browser.press(page, "Send", {"Message #support": "aside"}, at=0)
    assert (sandbox.channel("C0SUPPORT").last.text, sandbox.channel("C0SUPPORT").last.thread_ts) == (
        "aside",
        None,
    )
    assert f"thread={root.ts}" in page.url


async def test_a_dm_reaches_the_bot(browser: Browser) -> None:
    async with answering(browser.sandbox, acknowledge):
        page = await browser.open("U0LEO", "dm")
        await browser.press(page, "Send", {"Message vistobueno": "hello"})
    event = browser.sandbox.deliveries[-1].payload["event"]
    assert (event["channel_type"], event["text"]) == ("im", "hello")


async def test_a_typed_command_is_a_slash_command(browser: Browser) -> None:
    async def two(request: Request) -> Response:
        return PlainTextResponse("2 pending")

    async with answering(browser.sandbox, two):
        page = await browser.press(await browser.open(), "Send", {"Message #approvals": "/approvals all"})
    sent = browser.sandbox.deliveries[-1].payload
    assert (sent["command"], sent["text"], sent["channel_id"]) == ("/approvals", "all", "C0APPROVALS")
    assert "Only visible to you Dismiss 2 pending" in page.text
    assert browser.sandbox.channel("C0APPROVALS").messages == []


async def test_a_command_that_slack_does_not_take_is_told_by_slackbot(browser: Browser) -> None:
    page = await browser.press(await browser.open(), "Send", {"Message #approvals": "/nonsense"})
    assert "/nonsense is not a valid command." in page.text
    root = await browser.sandbox.person("U0LEO").say("C0SUPPORT", "question")
    page = await browser.open("U0LEO", "C0SUPPORT", thread=root.ts)
    page = await browser.press(page, "Send", {"Message this thread": "/approvals"}, at=1)
    assert "/approvals is not supported in threads. Sorry!" in page.text


async def test_a_failed_command_is_told_as_slack_tells_it(browser: Browser) -> None:
    browser.sandbox.connect("http://127.0.0.1:1")
    page = await browser.press(await browser.open(), "Send", {"Message #approvals": "/approvals"})
    assert '/approvals failed with the error "dispatch_failed"' in page.text


async def test_an_empty_message_is_not_sent(browser: Browser) -> None:
    page = await browser.press(await browser.open(), "Send", {"Message #approvals": "  "})
    assert (page.status, browser.sandbox.channel("C0APPROVALS").messages) == (400, [])


async def test_a_press_is_delivered_as_slack_delivers_it(browser: Browser, client: AsyncWebClient) -> None:
    two = (button("Approve", action_id="go", value="1"), button("Approve", action_id="other", value="2"))
    ts = await card(client, *two)
    async with answering(browser.sandbox, acknowledge):
        page = await browser.press(await browser.open(), "Approve", at=1)
    payload = browser.sandbox.deliveries[-1].payload
    assert (payload["type"], payload["user"]["id"]) == ("block_actions", "U0MARTA")
    assert payload["container"]["message_ts"] == ts
    assert (pressed(browser.sandbox)["action_id"], pressed(browser.sandbox)["value"]) == ("other", "2")
    assert page.url.endswith("/?as=U0MARTA&in=C0APPROVALS")


@pytest.mark.parametrize(
    ("element", "label", "typed", "expected"),
    [
        (
            {
                "type": "overflow",
                "action_id": "m",
                "options": [option("Details", "d"), option("History", "h")],
            },
            "History",
            {},
            "h",
        ),
        (select(option("Later", "4h"), action_id="when"), "Choose", {'["b", "when"]': "4h"}, "4h"),
        (
            {"type": "radio_buttons", "action_id": "r", "options": [option("One", "1"), option("Two", "2")]},
            "Choose",
            {'["b", "r"]': "2"},
            "2",
        ),
    ],
)
async def test_an_option_is_chosen(
    browser: Browser, client: AsyncWebClient, element: Json, label: str, typed: dict[str, str], expected: str
) -> None:
    await card(client, element)
    async with answering(browser.sandbox, acknowledge):
        await browser.press(await browser.open(), label, typed)
    assert pressed(browser.sandbox)["selected_option"]["value"] == expected


async def test_a_select_without_a_choice_sends_nothing(browser: Browser, client: AsyncWebClient) -> None:
    await card(client, select(option("Later", "4h"), action_id="when"))
    page = await browser.press(await browser.open(), "Choose")
    assert (page.status, page.text.split(" Back")[0]) == (400, "Choose an option first.")


async def test_a_dangerous_press_is_confirmed_first(browser: Browser, client: AsyncWebClient) -> None:
    await card(client, button("Delete", confirm=confirm("Sure?", "*All* of them", "Do it", "Keep")))
    async with answering(browser.sandbox, acknowledge):
        asked = await browser.press(await browser.open(), "Delete")
        assert browser.sandbox.deliveries == []
        assert "Sure? *All* of them Keep Do it" in asked.text
        assert "<dialog" not in (await browser.get(asked.link("Keep"))).html
        done = await browser.press(asked, "Do it")
    assert pressed(browser.sandbox)["type"] == "button"
    assert "<dialog" not in done.html


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (500, "The app answered Slack with an error. Try again?"),
        (None, "Slack could not reach the app. Try again?"),
    ],
)
async def test_a_press_that_fails_is_told(
    browser: Browser, client: AsyncWebClient, status: int | None, sentence: str
) -> None:
    await card(client, button("Approve"))
    async with answering(browser.sandbox, Recorder(status or 200).__call__):
        if status is None:
            browser.sandbox.connect("http://127.0.0.1:1")
        page = await browser.press(await browser.open(), "Approve")
    assert page.text.endswith(sentence)
    assert sentence not in (await browser.open()).text


async def test_an_app_that_does_not_answer_in_time_is_told() -> None:
    async def never(request: Request) -> Response:
        await asyncio.sleep(3_600)
        return Response()

    limits = RateLimits.off()
    async with (
        Sandbox.running(rate_limits=limits, ack_timeout=0.05) as sandbox,
        aiohttp.ClientSession() as http,
        answering(sandbox, never),
    ):
        await sandbox.person("U0LEO").open_home()
        page = await Browser(sandbox, http).press(await Browser(sandbox, http).open(), "Home")
    assert page.text.endswith("Slack got no answer from the app within 3 seconds. Try again?")


async def test_an_app_that_is_not_there_yet_is_told_in_one_sentence(
    browser: Browser, client: AsyncWebClient
) -> None:
    await card(client, button("Approve"))
    page = await browser.press(await browser.open(), "Approve")
    assert (page.status, page.text.count(".")) == (409, 2)
    assert page.text.startswith("The app has no request URL yet")


async def test_a_button_that_has_gone_meanwhile_is_told(browser: Browser, client: AsyncWebClient) -> None:
    ts = await card(client, button("Approve"))
    page = await browser.open()
    await client.chat_update(channel="C0APPROVALS", ts=ts, text="done", blocks=[section("done")])
    page = await browser.press(page, "Approve")
    assert page.status == 409
    assert page.text.startswith("It is no longer there: what you saw has changed meanwhile.")


async def test_home_is_opened_and_shown(browser: Browser, client: AsyncWebClient) -> None:
    async def publish(request: Request) -> Response:
        view = {"type": "home", "blocks": [section("Waiting for you"), actions(button("Look"))]}
        await client.views_publish(user_id="U0MARTA", view=view)
        return Response()

    assert "has not shown a Home to you yet" in (await browser.open("U0MARTA", "home")).text
    async with answering(browser.sandbox, publish):
        page = await browser.press(await browser.open(), "Home")
        assert browser.sandbox.deliveries[-1].payload["event"]["type"] == "app_home_opened"
        assert "Waiting for you" in page.text
        await browser.press(page, "Look")
    assert browser.sandbox.deliveries[-1].payload["container"]["type"] == "view"


async def test_a_private_note_is_dismissed_by_its_reader_alone(
    browser: Browser, client: AsyncWebClient
) -> None:
    await answer(client, "chat.postEphemeral", channel="C0APPROVALS", user="U0LEO", text="for Leo")
    page = await browser.open("U0LEO")
    note = browser.sandbox.ephemerals_for("U0LEO")[0].ts
    refused = await browser.post("/dismiss?as=U0MARTA&in=C0APPROVALS", urlencode({"where": note}))
    assert refused.status == 404
    page = await browser.press(page, "Dismiss")
    assert "for Leo" not in page.text
    assert browser.sandbox.ephemerals_for("U0LEO") == []


@pytest.fixture
async def cross_site(browser: Browser, client: AsyncWebClient) -> AsyncIterator[tuple[str, str]]:
    """The address and form of a press, as another site could guess them."""
    ts = await card(client, button("Approve", action_id="go"))
    async with answering(browser.sandbox, acknowledge):
        yield (
            "/press?as=U0MARTA&in=C0APPROVALS",
            urlencode({"where": ts, "element": json.dumps(["b", "go"])}),
        )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://evil.example", "Host": "evil.example"},
    ],
)
async def test_a_page_of_another_site_cannot_press(
    browser: Browser, cross_site: tuple[str, str], headers: dict[str, str]
) -> None:
    refused = await browser.post(*cross_site, headers)
    assert (refused.status, browser.sandbox.deliveries) == (403, [])
    assert (await browser.post(*cross_site)).status == 200
    assert len(browser.sandbox.deliveries) == 1


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/press", {"where": "1.2", "element": "[]"}),
        ("/press", {"element": "[]"}),
        ("/press", {"where": "TS", "element": "nonsense"}),
        ("/press", {"where": "TS", "element": "[1]"}),
        ("/dismiss", {"where": "V0"}),
        ("/say", {}),
    ],
)
async def test_a_form_that_names_nothing_is_one_sentence(
    browser: Browser, client: AsyncWebClient, path: str, fields: dict[str, str]
) -> None:
    ts = await card(client, button("Approve"))
    body = urlencode({name: value.replace("TS", ts) for name, value in fields.items()})
    page = await browser.post(f"{path}?as=U0MARTA&in=C0APPROVALS", body)
    assert page.status == 404
    assert page.text.removesuffix(" Back to the workspace").endswith((".", "'."))


async def test_nobody_presses_in_a_channel_they_are_not_in(browser: Browser, client: AsyncWebClient) -> None:
    ts = await card(client, button("Approve", action_id="go"))
    browser.sandbox.channel("C0APPROVALS").members.discard("U0GUEST")
    body = urlencode({"where": ts, "element": json.dumps(["b", "go"])})
    page = await browser.post("/press?as=U0GUEST&in=C0SUPPORT", body)
    assert page.status == 404
    assert page.text.startswith("Gwen sees no message or window")
