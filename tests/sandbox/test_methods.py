"""Tokens, scopes, conversations, the directory, user groups, response_urls and rate limits."""

from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import RateLimits, Sandbox, UserGroup
from tests.sandbox.drive import answer, client_of, error_of
from tests.sandbox.parts import header, section


async def test_auth_test_names_the_bot_and_its_scopes(client: AsyncWebClient) -> None:
    found = await client.auth_test()
    assert (found["team_id"], found["user_id"], found["bot_id"]) == ("T0SHOP", "U0BOT", "B0BOT")
    assert "chat:write" in found.headers["x-oauth-scopes"]


async def test_a_token_is_checked_before_anything_else(sandbox: Sandbox) -> None:
    assert await error_of(client_of(sandbox, "xoxb-other"), "auth.test") == "invalid_auth"
    async with aiohttp.ClientSession() as http:
        bare = await http.post(f"{sandbox.api_url}auth.test", data={})
        assert (await bare.json())["error"] == "not_authed"
        form = await http.post(f"{sandbox.api_url}auth.test", data={"token": "xoxb-sandbox"})
        assert (await form.json())["ok"]


async def test_a_revoked_token_is_dead(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.workspace.app.token_revoked = True
    assert await error_of(client, "auth.test") == "token_revoked"


async def test_a_method_the_sandbox_does_not_speak_is_unknown(client: AsyncWebClient) -> None:
    for method in ("chat.scheduleMessage", "blocks.validate", "conversations.history", "nonsense"):
        assert await error_of(client, method) == "unknown_method"


async def test_broken_json_is_refused(sandbox: Sandbox) -> None:
    headers = {"Authorization": "Bearer xoxb-sandbox", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as http:
        answered = await http.post(f"{sandbox.api_url}auth.test", data="{")
        assert (await answered.json())["error"] == "invalid_json"


SCOPES = [
    ("chat.postMessage", "chat:write", {"channel": "C0SUPPORT", "text": "x"}),
    ("chat.update", "chat:write", {"channel": "C0SUPPORT", "ts": "1.1", "text": "x"}),
    ("chat.postEphemeral", "chat:write", {"channel": "C0SUPPORT", "user": "U0MARTA", "text": "x"}),
    ("chat.delete", "chat:write", {"channel": "C0SUPPORT", "ts": "1.1"}),
    ("conversations.open", "im:write", {"users": "U0MARTA"}),
    ("conversations.info", "channels:read", {"channel": "C0SUPPORT"}),
    ("conversations.members", "channels:read", {"channel": "C0SUPPORT"}),
    ("conversations.join", "channels:join", {"channel": "C0SUPPORT"}),
    ("users.info", "users:read", {"user": "U0MARTA"}),
    ("users.list", "users:read", {}),
    ("users.lookupByEmail", "users:read.email", {"email": "marta@shop.example"}),
    ("usergroups.list", "usergroups:read", {}),
    ("usergroups.users.list", "usergroups:read", {"usergroup": "S0LEADS"}),
]


@pytest.mark.parametrize(("method", "scope", "args"), SCOPES, ids=[s[0] for s in SCOPES])
async def test_a_method_needs_its_scope(
    client: AsyncWebClient, sandbox: Sandbox, method: str, scope: str, args: dict[str, str]
) -> None:
    scopes = sandbox.workspace.app.scopes
    scopes.discard(scope)
    refused = await answer(client, method, **args)
    assert (refused["error"], refused["needed"]) == ("missing_scope", scope)
    assert refused["provided"] == ",".join(sorted(scopes))
    scopes.add(scope)
    assert await error_of(client, method, **args) != "missing_scope"


@pytest.mark.parametrize("method", ["chat.getPermalink", "views.open", "views.publish", "auth.test"])
async def test_some_methods_need_no_scope(client: AsyncWebClient, sandbox: Sandbox, method: str) -> None:
    sandbox.workspace.app.scopes.clear()
    assert await error_of(client, method) != "missing_scope"


async def test_private_channels_and_dms_have_scopes_of_their_own(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    sandbox.channel("C0SUPPORT").is_private = True
    sandbox.workspace.app.scopes -= {"groups:read", "im:read"}
    for channel, scope in (("C0SUPPORT", "groups:read"), (sandbox.dm("U0MARTA").id, "im:read")):
        assert (await answer(client, "conversations.info", channel=channel))["needed"] == scope


async def test_a_dm_opens_with_visible_active_people_only(client: AsyncWebClient, sandbox: Sandbox) -> None:
    opened = await client.conversations_open(users=["U0MARTA"])
    assert opened["channel"]["id"] == sandbox.dm("U0MARTA").id
    sandbox.workspace.users["U0LEO"].deleted = True
    sandbox.workspace.users["U0ANA"].visible_to_bot = False
    errors = [await error_of(client, "conversations.open", users=u) for u in ("U0NONE", "U0LEO", "U0ANA")]
    assert errors == ["user_not_found", "user_disabled", "user_not_visible"]


async def test_a_conversation_tells_what_it_is(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.add_person("U0FAR", "Fay", ["C0SUPPORT"], team_id="T0OTHER")
    shown = (await client.conversations_info(channel="C0SUPPORT"))["channel"]
    assert (shown["is_ext_shared"], shown["is_member"], shown["is_private"]) == (True, True, False)
    assert (await client.conversations_info(channel=sandbox.dm("U0LEO").id))["channel"]["user"] == "U0LEO"
    for method in ("conversations.info", "conversations.members"):
        assert await error_of(client, method, channel="C0NONE") == "channel_not_found"


async def test_members_are_paged(client: AsyncWebClient, sandbox: Sandbox) -> None:
    ids: list[str] = []
    async for answered in await client.conversations_members(channel="C0SUPPORT", limit=2):
        ids += answered["members"]
    assert sorted(ids) == sorted(sandbox.channel("C0SUPPORT").members)


async def test_a_user_is_shown_with_what_a_right_depends_on(client: AsyncWebClient, sandbox: Sandbox) -> None:
    guest = (await client.users_info(user="U0GUEST"))["user"]
    assert (guest["is_restricted"], guest["is_ultra_restricted"], guest["is_bot"]) == (True, False, False)
    assert "email" not in guest["profile"]
    sandbox.workspace.users["U0ANA"].visible_to_bot = False
    assert await error_of(client, "users.info", user="U0NONE") == "user_not_found"
    assert await error_of(client, "users.info", user="U0ANA") == "user_not_visible"


async def test_an_email_is_looked_up_under_its_own_scope(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.workspace.app.scopes.add("users:read.email")
    assert (await client.users_lookupByEmail(email="MARTA@shop.example"))["user"]["id"] == "U0MARTA"
    assert (await client.users_info(user="U0MARTA"))["user"]["profile"]["email"] == "marta@shop.example"
    assert await error_of(client, "users.lookupByEmail", email="x@shop.example") == "users_not_found"


async def test_user_groups_list_their_members(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.workspace.add_group(UserGroup("S0LEADS", "leads", "Leads", ["U0MARTA"]))
    assert (await client.usergroups_users_list(usergroup="S0LEADS"))["users"] == ["U0MARTA"]
    assert (await client.usergroups_list(include_users=True))["usergroups"][0]["users"] == ["U0MARTA"]
    assert await error_of(client, "usergroups.users.list", usergroup="S0NONE") == "no_such_subteam"


async def test_a_free_plan_has_no_user_groups(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.workspace.has_user_groups = False
    for method in ("usergroups.list", "usergroups.users.list"):
        assert await error_of(client, method, usergroup="S0LEADS") == "plan_upgrade_required"


async def test_a_connection_is_refused_by_token_and_where_the_app_is_not_in_socket_mode(
    sandbox: Sandbox,
) -> None:
    bot, app = client_of(sandbox), client_of(sandbox, "xapp-sandbox")
    assert await error_of(bot, "apps.connections.open") == "not_allowed_token_type"
    assert await error_of(app, "apps.connections.open") == "forbidden_team"
    assert await error_of(client_of(sandbox, "xapp-other"), "apps.connections.open") == "invalid_auth"


async def respond(url: str, **body: object) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as answered:
        return answered.status, await answered.text()


async def test_a_response_url_works_five_times(sandbox: Sandbox) -> None:
    url = sandbox.slack.response_urls.issue("U0MARTA", "C0SUPPORT")
    statuses = [(await respond(url, text=str(i)))[0] for i in range(6)]
    assert statuses == [200] * 5 + [404]
    assert [m.text for m in sandbox.ephemerals_for("U0MARTA")] == list("01234")


async def test_a_response_url_lives_thirty_minutes(sandbox: Sandbox) -> None:
    sandbox.clock.freeze()
    url = sandbox.slack.response_urls.issue("U0MARTA", "C0SUPPORT")
    sandbox.clock.advance(30 * 60)
    assert (await respond(url, text="x"))[0] == 200
    sandbox.clock.advance(1)
    status, body = await respond(url, text="x")
    assert (status, "expired_url" in body) == (404, True)


async def test_a_response_url_answers_one_person_unless_told_otherwise(sandbox: Sandbox) -> None:
    url = sandbox.slack.response_urls.issue("U0MARTA", "C0SUPPORT")
    await respond(url, text="private")
    await respond(url, text="public", response_type="in_channel")
    assert [m.text for m in sandbox.ephemerals_for("U0MARTA")] == ["private"]
    assert [m.text for m in sandbox.channel("C0SUPPORT").messages] == ["public"]


async def test_a_response_url_replaces_and_deletes_its_source(sandbox: Sandbox) -> None:
    client = client_of(sandbox)
    await client.chat_postEphemeral(channel="C0SUPPORT", user="U0MARTA", text="first")
    note = sandbox.ephemerals_for("U0MARTA")[0]
    url = sandbox.slack.response_urls.issue("U0MARTA", "C0SUPPORT", note)
    await respond(url, text="second", replace_original=True)
    assert [m.text for m in sandbox.ephemerals_for("U0MARTA")] == ["second"]
    await respond(url, delete_original=True)
    assert sandbox.ephemerals_for("U0MARTA") == []


async def test_a_response_url_refuses_bad_content(sandbox: Sandbox) -> None:
    url = sandbox.slack.response_urls.issue("U0MARTA", "C0SUPPORT")
    for body, code in (({}, "no_text"), ({"blocks": [header("")]}, "invalid_blocks")):
        status, text = await respond(url, **body)
        assert (status, code in text) == (400, True)
    assert (await respond(f"{sandbox.base_url}/respond/none", text="x"))[0] == 404
    assert (await respond(url, blocks=[section()]))[0] == 200


TIERS = {
    "chat.update": 50,
    "chat.delete": 50,
    "chat.postEphemeral": 100,
    "chat.getPermalink": 300,
    "views.open": 100,
    "views.update": 100,
    "views.push": 100,
    "views.publish": 100,
    "conversations.open": 50,
    "conversations.info": 50,
    "conversations.members": 100,
    "users.info": 100,
    "users.lookupByEmail": 50,
    "usergroups.list": 20,
    "usergroups.users.list": 20,
}


async def strict(sandbox: Sandbox) -> AsyncWebClient:
    sandbox.slack.limiter.limits = RateLimits.documented()
    sandbox.workspace.app.scopes.add("users:read.email")
    sandbox.clock.freeze()
    return client_of(sandbox)


@pytest.mark.parametrize(("method", "tier"), TIERS.items())
async def test_a_method_is_limited_by_its_tier(sandbox: Sandbox, method: str, tier: int) -> None:
    client = await strict(sandbox)
    for _ in range(tier - 1):
        assert sandbox.slack.limiter.admit(method, {}) is None
    assert await error_of(client, method) != "ratelimited"
    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method)
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["Retry-After"] == "60"
    sandbox.clock.advance(60)
    assert await error_of(client, method) != "ratelimited"


async def test_posts_are_limited_to_one_a_second_in_each_channel(sandbox: Sandbox) -> None:
    client = await strict(sandbox)
    await client.chat_postMessage(channel="C0SUPPORT", text="1")
    await client.chat_postMessage(channel="C0APPROVALS", text="1")
    with pytest.raises(SlackApiError) as refused:
        await client.chat_postMessage(channel="C0SUPPORT", text="2")
    assert (refused.value.response["error"], refused.value.response.headers["Retry-After"]) == (
        "rate_limited",
        "1",
    )
    sandbox.clock.advance(1)
    await client.chat_postMessage(channel="C0SUPPORT", text="3")
    assert [m.text for m in sandbox.channel("C0SUPPORT").messages] == ["1", "3"]


async def test_posts_are_limited_in_the_whole_workspace(sandbox: Sandbox) -> None:
    client = await strict(sandbox)
    for i in range(300):
        assert sandbox.slack.limiter.admit("chat.postMessage", {"channel": f"C{i}"}) is None
    assert await error_of(client, "chat.postMessage", channel="C0SUPPORT", text="x") == "rate_limited"


async def test_every_answer_bears_the_date_of_slacks_clock(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.clock.freeze()
    sandbox.clock.advance(3600)
    for call in (client.auth_test(), client.api_call("api.nothing")):
        try:
            headers = (await call).headers
        except SlackApiError as error:
            headers = error.response.headers
        [date] = [value for name, value in headers.items() if name.lower() == "date"]
        assert parsedate_to_datetime(date).timestamp() == int(sandbox.clock.now())
