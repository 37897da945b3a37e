"""What each payload carries: clicks by their place, forms, commands, messages."""

from urllib.parse import parse_qs

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import RateLimits, Sandbox
from tests.sandbox.drive import Recorder, acknowledge, answering, delivered
from tests.sandbox.parts import actions, button, field, home, modal, section


async def test_a_click_in_a_channel_tells_message_channel_and_response_url(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    blocks = [section(), actions(button("Approve", action_id="go", value="v", style="primary"), block_id="b")]
    posted = await client.chat_postMessage(channel="C0SUPPORT", text="x", blocks=blocks)
    payload = await delivered(sandbox, sandbox.person("U0MARTA").click(posted["ts"], "Approve"))
    assert payload["type"] == "block_actions"
    assert payload["user"] == {"id": "U0MARTA", "username": "marta", "name": "marta", "team_id": "T0SHOP"}
    assert payload["container"] == {
        "type": "message",
        "message_ts": posted["ts"],
        "channel_id": "C0SUPPORT",
        "is_ephemeral": False,
    }
    assert payload["channel"] == {"id": "C0SUPPORT", "name": "support"}
    assert (payload["message"]["ts"], payload["message"]["bot_id"]) == (posted["ts"], "B0BOT")
    assert (payload["enterprise"], payload["is_enterprise_install"]) == (None, False)
    assert payload["response_url"].startswith(sandbox.base_url)
    action = payload["actions"][0]
    assert (action["action_id"], action["block_id"], action["value"]) == ("go", "b", "v")
    assert action["text"]["text"] == "Approve"


async def test_a_click_on_an_ephemeral_has_no_message(sandbox: Sandbox, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(
        channel="C0SUPPORT", user="U0MARTA", text="x", blocks=[actions(button("Go"))]
    )
    note = sandbox.ephemerals_for("U0MARTA")[0]
    payload = await delivered(sandbox, sandbox.person("U0MARTA").click(note, "Go"))
    assert payload["container"]["is_ephemeral"]
    assert "message" not in payload
    assert "response_url" in payload


async def test_a_click_in_a_dm_names_the_directmessage(sandbox: Sandbox, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel="U0MARTA", text="x", blocks=[actions(button("Go"))])
    payload = await delivered(sandbox, sandbox.person("U0MARTA").click(posted["ts"], "Go"))
    assert payload["channel"]["name"] == "directmessage"
    assert payload["channel"]["id"].startswith("D")


async def test_a_click_on_home_has_a_view_and_neither_channel_nor_response_url(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    await client.views_publish(user_id="U0MARTA", view=home(actions(button("Go")), private_metadata="pm"))
    shown = sandbox.person("U0MARTA").home
    assert shown is not None
    payload = await delivered(sandbox, sandbox.person("U0MARTA").click(shown, "Go"))
    assert payload["container"] == {"type": "view", "view_id": shown.id}
    view = payload["view"]
    assert (view["type"], view["hash"], view["private_metadata"]) == ("home", shown.hash, "pm")
    assert (view["root_view_id"], view["bot_id"]) == (shown.id, "B0BOT")
    assert not {"channel", "message", "response_url"} & payload.keys()


async def test_a_submission_carries_values_hash_and_a_trigger_of_its_own(
    sandbox: Sandbox, client: AsyncWebClient
) -> None:
    marta = sandbox.person("U0MARTA")
    opener = sandbox.slack.triggers.issue("U0MARTA")
    view = modal(field(block_id="b"), private_metadata="pm", callback_id="edit")
    await client.views_open(trigger_id=opener, view=view)
    shown = marta.view
    payload = await delivered(sandbox, marta.fill({"Field": "hello"}).submit())
    assert payload["type"] == "view_submission"
    values = payload["view"]["state"]["values"]
    assert values == {"b": {"typed": {"type": "plain_text_input", "value": "hello"}}}
    assert (payload["view"]["hash"], payload["view"]["private_metadata"]) == (shown.hash, "pm")
    assert (payload["view"]["callback_id"], payload["response_urls"]) == ("edit", [])
    assert payload["trigger_id"] != opener
    assert "channel" not in payload


@pytest.mark.parametrize(("whole", "told"), [(False, True), (True, True), (False, False)])
async def test_a_closed_view_is_told_only_on_request(
    sandbox: Sandbox, client: AsyncWebClient, whole: bool, told: bool
) -> None:
    trigger_id = sandbox.slack.triggers.issue("U0MARTA")
    await client.views_open(trigger_id=trigger_id, view=modal(section(), notify_on_close=told))
    async with answering(sandbox, acknowledge):
        delivery = await sandbox.person("U0MARTA").close(all=whole)
    assert (delivery is not None) == told
    if delivery is not None:
        assert (delivery.payload["type"], delivery.payload["is_cleared"]) == ("view_closed", whole)
        assert delivery.payload["view"]["state"]["values"] == {}


async def test_a_command_is_a_plain_form(sandbox: Sandbox) -> None:
    app = Recorder()
    async with answering(sandbox, app.__call__):
        await sandbox.person("U0MARTA").slash("/approvals", "show 1")
    fields = {name: values[0] for name, values in parse_qs(app.requests[0][1].decode()).items()}
    assert (fields["command"], fields["text"], fields["user_id"]) == ("/approvals", "show 1", "U0MARTA")
    assert (fields["team_id"], fields["channel_id"]) == ("T0SHOP", "C0SUPPORT")
    assert {"trigger_id", "response_url", "api_app_id", "is_enterprise_install"} <= fields.keys()


@pytest.mark.parametrize(
    ("should_escape", "text"),
    [(False, "delegate @ana #support"), (True, "delegate <@U0ANA|ana> <#C0SUPPORT|support>")],
)
async def test_a_command_escapes_names_if_the_manifest_says_so(
    sandbox: Sandbox, should_escape: bool, text: str
) -> None:
    sandbox.workspace.app.should_escape = should_escape
    payload = await delivered(
        sandbox, sandbox.person("U0MARTA").slash("/approvals", "delegate @ana #support")
    )
    assert payload["text"] == text


async def test_a_mention_is_an_event_with_an_id_and_authorizations(sandbox: Sandbox) -> None:
    payload = await delivered(sandbox, sandbox.person("U0MARTA").mention("C0SUPPORT", "hi", thread_ts="1.1"))
    assert (payload["type"], payload["event_id"][:2]) == ("event_callback", "Ev")
    assert payload["authorizations"][0]["user_id"] == "U0BOT"
    event = payload["event"]
    assert (event["type"], event["user"], event["team"]) == ("app_mention", "U0MARTA", "T0SHOP")
    assert (event["text"], event["thread_ts"]) == ("<@U0BOT> hi", "1.1")


async def test_an_event_id_is_not_given_again_by_a_workspace_started_anew() -> None:
    ids = set()
    for _ in range(2):
        async with Sandbox.running(rate_limits=RateLimits.off()) as anew:
            ids.add((await delivered(anew, anew.person("U0LEO").mention("C0SUPPORT", "hi")))["event_id"])
    assert len(ids) == 2


async def test_a_direct_message_is_an_im_event(sandbox: Sandbox) -> None:
    event = (await delivered(sandbox, sandbox.person("U0MARTA").dm("hi")))["event"]
    assert (event["type"], event["channel_type"], event["channel"][0]) == ("message", "im", "D")


async def test_the_bot_hears_its_own_direct_messages(sandbox: Sandbox, client: AsyncWebClient) -> None:
    async with answering(sandbox, acknowledge):
        posted = await client.chat_postMessage(channel="U0MARTA", text="x")
        await client.chat_update(channel=posted["channel"], ts=posted["ts"], text="y")
        await client.chat_delete(channel=posted["channel"], ts=posted["ts"])
        await sandbox.until(lambda: len(sandbox.deliveries) == 3)
    events = [d.payload["event"] for d in sandbox.deliveries]
    assert {e.get("subtype") for e in events} == {None, "message_changed", "message_deleted"}
    assert next(e for e in events if "subtype" not in e)["bot_id"] == "B0BOT"


async def test_a_stranger_comes_with_a_team_of_their_own(sandbox: Sandbox, client: AsyncWebClient) -> None:
    far = sandbox.add_person("U0FAR", "Fay", team_id="T0OTHER")
    posted = await client.chat_postMessage(channel="C0APPROVALS", text="x", blocks=[actions(button("Go"))])
    async with answering(sandbox, acknowledge):
        click = await far.click(posted["ts"], "Go")
        await far.mention("C0APPROVALS", "hi")
    assert click.payload["user"]["team_id"] == "T0OTHER"
    mention = sandbox.deliveries[-1].payload
    assert (mention["is_ext_shared_channel"], mention["event"]["user_team"]) == (True, "T0OTHER")
