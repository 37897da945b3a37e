"""The three clients: who retries, who goes around the proxy, and what an error says."""

import json
from typing import Any, cast

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.identity import ask_for, clean_name, read_user
from bot.posting import Fault, advice
from bot.sandbox import Fault as SlackFault
from bot.sandbox import Sandbox
from bot.settings import SlackSettings
from bot.slack import (
    NotSlack,
    Team,
    channel_of,
    connect,
    error_code,
    message_link,
    retry_after,
)
from bot.slack_errors import SlackUnreachable

LOCAL = SlackSettings("xoxb-1", "http://127.0.0.1:1/api/")
TEAM = Team("T0SHOP", "https://shop.slack.com/", "U0BOT", "B0BOT")


async def test_only_the_patient_client_tries_again() -> None:
    async with connect(LOCAL) as slack:
        assert {type(handler) for handler in slack.patient.retry_handlers} == {
            AsyncConnectionErrorRetryHandler,
            AsyncRateLimitErrorRetryHandler,
            AsyncServerErrorRetryHandler,
        }
        assert slack.once.retry_handlers == slack.quick.retry_handlers == []


@pytest.mark.parametrize(
    ("url", "proxy"), [(LOCAL.api_url, None), ("https://slack.com/api/", "http://proxy:3128")]
)
async def test_a_local_slack_is_reached_without_the_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with connect(SlackSettings("xoxb-1", url)) as slack:
        assert {slack.patient.proxy, slack.once.proxy, slack.quick.proxy} == {proxy}


def refusal(status: int, data: dict[str, object], headers: dict[str, str] | None = None) -> SlackApiError:
    response = AsyncSlackResponse(
        client=None,
        http_verb="POST",
        api_url="",
        req_args={},
        data=data,
        headers=headers or {},
        status_code=status,
    )
    make: Any = SlackApiError  # its constructor has no types
    return cast(SlackApiError, make("refused", response))


def test_an_error_has_slack_s_name_or_the_status() -> None:
    assert error_code(refusal(200, {"ok": False, "error": "not_in_channel"})) == "not_in_channel"
    assert error_code(refusal(502, {})) == "http_502"


SHAPES = (
    "[1]",
    '"hello"',
    "null",
    "7",
    "{}",
    '{"ok": false}',
    '{"ok": false, "error": 5}',
    '{"result": []}',
    "hello",
    "<html></html>",
    "[" * 5000,
)


async def test_what_is_no_answer_of_slack_is_an_error_of_slack_s_client_with_what_to_do() -> None:
    kinds = [(text, "application/json") for text in SHAPES] + [("hello", "text/plain"), ("x", "text/html")]
    async with Sandbox.running() as sandbox:
        settings = SlackSettings(sandbox.workspace.app.bot_token, sandbox.api_url)
        async with connect(settings) as slack:
            for text, media_type in kinds:
                sandbox.faults.add("auth.test", SlackFault.other(text, media_type))
                sentence = f"What answers at {sandbox.api_url} is no Slack Web API: check SLACK_API_URL."
                with pytest.raises(NotSlack) as raised:
                    await slack.quick.auth_test()
                assert (str(raised.value), error_code(raised.value)) == (sentence, "no_slack"), text
                sandbox.faults.add("auth.test", SlackFault.other(text, media_type))
                with pytest.raises(SlackUnreachable, match="is no Slack Web API"):
                    await slack.team()
            assert (await slack.team()).team_id == "T0SHOP"


@pytest.mark.parametrize("missing", ["team_id", "url", "user_id"])
async def test_whose_the_token_is_must_be_told_in_full(missing: str) -> None:
    whole = {"ok": True, "team_id": "T1", "url": "https://x.slack.com/", "user_id": "U1"}
    async with Sandbox.running() as sandbox, connect(SlackSettings("xoxb-1", sandbox.api_url)) as slack:
        for wrong in (None, ["x"], 7, ""):
            sandbox.faults.add("auth.test", SlackFault.other(json.dumps({**whole, missing: wrong})))
            with pytest.raises(SlackUnreachable, match="is no Slack Web API"):
                await slack.team()
        sandbox.faults.add("auth.test", SlackFault.other(json.dumps(whole)))
        assert (await slack.team()).bot_id is None


@pytest.mark.parametrize("answer", ["{}", '{"user": null}', '{"user": [1]}', '{"user": {"id": 7}}'])
async def test_a_user_of_another_shape_is_no_user(answer: str) -> None:
    async with Sandbox.running() as sandbox, connect(SlackSettings("xoxb-1", sandbox.api_url)) as slack:
        sandbox.faults.add("users.info", SlackFault.other(json.dumps({"ok": True, **json.loads(answer)})))
        with pytest.raises(NotSlack):
            await ask_for(slack.quick, "U0MARTA", "T0SHOP")


@pytest.mark.parametrize("wrong", ["null", "[1]", '"C0SUPPORT"'])
async def test_a_channel_of_another_shape_is_no_channel(wrong: str) -> None:
    async with Sandbox.running() as sandbox, connect(SlackSettings("xoxb-1", sandbox.api_url)) as slack:
        sandbox.faults.add("conversations.info", SlackFault.other(f'{{"ok": true, "channel": {wrong}}}'))
        with pytest.raises(NotSlack):
            await channel_of(slack.quick, "C0SUPPORT")


def test_whether_a_message_was_posted_is_not_known_where_the_answer_is_no_answer() -> None:
    fault = Fault.of(NotSlack("http://127.0.0.1:1/api/chat.postMessage"))
    assert (fault.code, fault.unanswered) == ("no_slack", True)
    assert "SLACK_API_URL" in advice(fault.code)


def test_a_pause_that_slack_asks_for_is_kept_and_others_grow() -> None:
    hasty = Fault.of(refusal(429, {}, {"Retry-After": "7"}))
    assert hasty.retry_in(9) == 7.0
    assert retry_after(refusal(200, {"error": "x"})) is None
    assert [Fault.of(TimeoutError()).retry_in(n) for n in (0, 1, 2, 50)] == [2.0, 4.0, 8.0, 300.0]


@pytest.mark.parametrize("code", ["not_in_channel", "is_archived", "token_revoked", "missing_scope"])
def test_what_the_operator_can_mend_comes_with_advice(code: str) -> None:
    assert advice(code) != advice("internal_error")


def test_a_permalink_is_that_of_chat_get_permalink() -> None:
    assert message_link(TEAM, "C1", "1.000002") == "https://shop.slack.com/archives/C1/p1000002"
    assert message_link(TEAM, "C1", "1.000002", "1.000001").endswith("?thread_ts=1.000001&cid=C1")


def test_a_name_has_no_marks_that_could_deceive() -> None:
    assert clean_name("  Mar\u202eta\u200b \n (admin)\x00 ") == "Mar ta (admin)"
    assert len(clean_name("x" * 300)) == 80


@pytest.mark.parametrize(
    ("fields", "flag"),
    [
        ({"is_bot": True}, "is_bot"),
        ({"is_workflow_bot": True}, "is_bot"),
        ({"deleted": True}, "deleted"),
        ({"is_restricted": True}, "restricted"),
        ({"is_ultra_restricted": True}, "restricted"),
        ({"is_stranger": True}, "stranger"),
        ({"team_id": "T0OTHER"}, "stranger"),
    ],
)
def test_whatever_bars_a_user_is_read(fields: dict[str, object], flag: str) -> None:
    user = {"id": "U1", "team_id": "T0SHOP", "name": "marta", "profile": {"display_name": ""}}
    assert not getattr(read_user(user, "T0SHOP"), flag)
    assert getattr(read_user({**user, **fields}, "T0SHOP"), flag)
