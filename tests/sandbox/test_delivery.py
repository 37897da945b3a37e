"""Deliveries: signatures, three seconds, retries, turns, subscriptions."""

import asyncio
import json

import pytest
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.sandbox import RateLimits, Sandbox, UserGroup
from tests.sandbox.drive import Recorder, acknowledge, answering, delivered, served
from tests.sandbox.parts import actions, button


async def test_every_delivery_is_signed(sandbox: Sandbox, client: AsyncWebClient) -> None:
    app = Recorder()
    posted = await client.chat_postMessage(channel="C0SUPPORT", text="x", blocks=[actions(button("Approve"))])
    async with answering(sandbox, app.__call__):
        marta = sandbox.person("U0MARTA")
        await marta.mention("C0SUPPORT", "hi")
        await marta.click(posted["ts"], "Approve")
        await marta.slash("/approvals", "all")
    verifier = SignatureVerifier("sandbox-signing-secret")
    assert len(app.requests) == 3
    assert all(verifier.is_valid_request(body, headers) for headers, body in app.requests)


async def test_the_request_url_is_verified_with_a_challenge(sandbox: Sandbox) -> None:
    async def echo(request: Request) -> Response:
        return JSONResponse({"challenge": (await request.json())["challenge"]})

    async with answering(sandbox, echo):
        delivery = await sandbox.admin.verify_request_url()
    assert json.loads(delivery.body)["challenge"] == delivery.payload["challenge"]


async def retried(sandbox: Sandbox, app: Recorder, attempts: int) -> list[int]:
    async with answering(sandbox, app.__call__):
        await sandbox.person("U0MARTA").mention("C0SUPPORT", "hi")
        await sandbox.until(lambda: len(sandbox.deliveries) == attempts)
    return [d.retry_num for d in sandbox.deliveries]


async def test_a_failed_event_is_repeated_three_times(sandbox: Sandbox) -> None:
    app = Recorder(500)
    assert await retried(sandbox, app, 4) == [0, 1, 2, 3]
    assert [h.get("x-slack-retry-reason") for h, _ in app.requests] == [None, *["http_error"] * 3]
    assert [h.get("x-slack-retry-num") for h, _ in app.requests] == [None, "1", "2", "3"]
    assert len({json.loads(body)["event_id"] for _, body in app.requests}) == 1


async def test_an_app_may_ask_for_no_retry(sandbox: Sandbox) -> None:
    app = Recorder(500, {"X-Slack-No-Retry": "1"})
    assert await retried(sandbox, app, 1) == [0]
    await sandbox.slack.deliverer.stop()
    assert len(app.requests) == 1


async def test_slack_waits_nothing_one_minute_and_five_before_it_repeats() -> None:
    async with Sandbox.running() as strict:
        assert tuple(strict.slack.deliverer.retry_delays) == (0.0, 60.0, 300.0)
        assert strict.slack.deliverer.ack_timeout == 3.0


async def test_an_app_that_is_down_fails_the_connection(sandbox: Sandbox) -> None:
    async with served(Starlette()) as url:
        pass
    sandbox.connect(url)
    delivery = await sandbox.person("U0MARTA").open_home()
    assert delivery is not None
    assert (delivery.acked, delivery.failure, delivery.status) == (False, "connection_failed", None)


async def test_a_late_answer_counts_as_none() -> None:
    release = asyncio.Event()

    async def late(request: Request) -> Response:
        await release.wait()
        return Response()

    async with Sandbox.running(ack_timeout=0.05, retry_delays=()) as sandbox, answering(sandbox, late):
        await sandbox.person("U0MARTA").mention("C0SUPPORT", "hi")
        release.set()
        assert [(d.failure, d.status) for d in sandbox.deliveries] == [("http_timeout", None)]


async def test_deliveries_take_turns_or_go_where_they_are_told(sandbox: Sandbox) -> None:
    first, second = Recorder(), Recorder()

    async with answering(sandbox, first.__call__):
        one = sandbox.slack.deliverer.urls[0]
        async with answering(sandbox, second.__call__):
            sandbox.connect(one, *sandbox.slack.deliverer.urls)
            for to in (None, None, 1, 1, one):
                await sandbox.person("U0MARTA").open_home(to=to)
    assert (len(first.requests), len(second.requests)) == (2, 3)


async def test_one_signed_request_can_arrive_many_times(sandbox: Sandbox, client: AsyncWebClient) -> None:
    app = Recorder()
    posted = await client.chat_postMessage(channel="C0SUPPORT", text="x", blocks=[actions(button("Approve"))])
    async with answering(sandbox, app.__call__):
        request = sandbox.person("U0MARTA").prepare_click(posted["ts"], "Approve")
        await sandbox.send_identical(request, 3, to=[0])
    assert len({(headers["x-slack-signature"], body) for headers, body in app.requests}) == 1


@pytest.mark.parametrize("same", [True, False])
async def test_repeated_clicks_share_an_action_ts_only_on_demand(
    sandbox: Sandbox, client: AsyncWebClient, same: bool
) -> None:
    posted = await client.chat_postMessage(channel="C0SUPPORT", text="x", blocks=[actions(button("Approve"))])
    async with answering(sandbox, acknowledge):
        clicks = await sandbox.person("U0MARTA").clicks(posted["ts"], "Approve", 50, same_action_ts=same)
    assert len({c.payload["actions"][0]["action_ts"] for c in clicks}) == (1 if same else 50)
    assert len({c.payload["trigger_id"] for c in clicks}) == 50


LIFECYCLE = {
    "member_left_channel": lambda admin: admin.kick("C0SUPPORT"),
    "channel_archive": lambda admin: admin.archive("C0SUPPORT"),
    "channel_unarchive": lambda admin: admin.unarchive("C0SUPPORT"),
    "channel_deleted": lambda admin: admin.delete_channel("C0SUPPORT"),
    "subteam_members_changed": lambda admin: admin.set_group("S0LEADS", ["U0ANA"]),
    "subteam_updated": lambda admin: admin.disable_group("S0LEADS"),
    "user_change": lambda admin: admin.deactivate("U0LEO"),
    "app_uninstalled": lambda admin: admin.uninstall(),
    "tokens_revoked": lambda admin: admin.revoke_token(),
}


@pytest.mark.parametrize("kind", LIFECYCLE)
async def test_the_app_hears_what_happens_to_its_surroundings(sandbox: Sandbox, kind: str) -> None:
    sandbox.workspace.add_group(UserGroup("S0LEADS", "leads", "Leads", ["U0MARTA"]))
    payload = await delivered(sandbox, LIFECYCLE[kind](sandbox.admin))
    assert payload["event"]["type"] == kind


async def test_an_event_needs_a_subscription_and_a_scope(sandbox: Sandbox) -> None:
    async with answering(sandbox, acknowledge):
        sandbox.workspace.app.events.discard("app_mention")
        await sandbox.person("U0MARTA").mention("C0SUPPORT", "hi")
        sandbox.workspace.app.scopes.discard("im:history")
        await sandbox.person("U0MARTA").dm("hi")
        sandbox.channel("C0APPROVALS").members.discard("U0BOT")
        sandbox.workspace.app.events.add("app_mention")
        await sandbox.person("U0MARTA").mention("C0APPROVALS", "hi")
    assert sandbox.deliveries == []


async def test_events_beyond_the_hour_share_are_replaced_by_a_notice() -> None:
    async with Sandbox.running(rate_limits=RateLimits({}, None, 1)) as sandbox:
        async with answering(sandbox, acknowledge):
            await sandbox.person("U0MARTA").mention("C0SUPPORT", "1")
            await sandbox.person("U0MARTA").mention("C0SUPPORT", "2")
        assert [d.kind for d in sandbox.deliveries] == ["event_callback", "app_rate_limited"]
