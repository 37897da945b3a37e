"""chat.*: lengths, attachments, metadata, and every refusal Slack documents for messages."""

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Sandbox
from tests.sandbox.drive import answer, error_of
from tests.sandbox.parts import container, data_table, header, markdown, section, table

HERE = {"channel": "C0SUPPORT"}


async def post(client: AsyncWebClient, **args: object) -> str:
    return str((await answer(client, "chat.postMessage", **{**HERE, "text": "x", **args}))["ts"])


async def test_a_posted_text_is_cut_at_40_000_characters(client: AsyncWebClient, sandbox: Sandbox) -> None:
    await post(client, text="x" * 40_000)
    await post(client, text="y" * 40_001)
    assert [len(m.text) for m in sandbox.channel("C0SUPPORT").messages] == [40_000, 40_000]


async def test_an_update_takes_4_000_characters_of_text(client: AsyncWebClient) -> None:
    ts = await post(client)
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x" * 4_000) is None
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x" * 4_001) == "msg_too_long"


@pytest.mark.parametrize(("count", "error"), [(100, None), (101, "too_many_attachments")])
@pytest.mark.parametrize("method", ["chat.postMessage", "chat.postEphemeral", "chat.update"])
async def test_a_message_takes_100_attachments(
    client: AsyncWebClient, method: str, count: int, error: str | None
) -> None:
    ts = await post(client)
    attachments = [{"text": "x"}] * count
    found = await error_of(client, method, **HERE, ts=ts, user="U0MARTA", text="x", attachments=attachments)
    assert found == error


async def test_bad_blocks_of_an_attachment_are_invalid_attachments(client: AsyncWebClient) -> None:
    bad = [{"blocks": [header("")]}]
    assert await error_of(client, "chat.postMessage", **HERE, attachments=bad) == "invalid_attachments"


@pytest.mark.parametrize("blocks", ["[not json", {"type": "section"}, ["section"], [{"text": "x"}]])
async def test_blocks_that_are_no_list_of_blocks_have_an_invalid_format(
    client: AsyncWebClient, blocks: object
) -> None:
    assert await error_of(client, "chat.postMessage", **HERE, blocks=blocks) == "invalid_blocks_format"


@pytest.mark.parametrize(
    "blocks",
    [[table(), table()], [table(), data_table()], [table(), container(table())]],
    ids=["two", "data_table", "in a container"],
)
async def test_a_second_table_is_refused_wherever_it_stands(client: AsyncWebClient, blocks: object) -> None:
    refused = await answer(client, "chat.postMessage", **HERE, blocks=blocks)
    assert refused["error"] == "invalid_attachments"
    assert refused["response_metadata"]["messages"] == ["only_one_table_allowed"]


async def test_a_message_needs_text_blocks_or_attachments(client: AsyncWebClient) -> None:
    ts = await post(client)
    for method in ("chat.postMessage", "chat.postEphemeral", "chat.update"):
        assert await error_of(client, method, **HERE, ts=ts, user="U0MARTA") == "no_text"
    assert await error_of(client, "chat.postMessage", **HERE, text="", blocks=[section()]) is None


async def test_markdown_text_excludes_text_and_has_its_own_limit(client: AsyncWebClient) -> None:
    both = await error_of(client, "chat.postMessage", **HERE, text="x", markdown_text="x")
    long = await error_of(client, "chat.postMessage", **HERE, markdown_text="x" * 12_001)
    assert (both, long) == ("markdown_text_conflict", "msg_too_long")
    assert await error_of(client, "chat.postMessage", **HERE, markdown_text="x" * 12_000) is None


async def test_the_block_id_of_a_markdown_block_is_not_kept(client: AsyncWebClient, sandbox: Sandbox) -> None:
    await post(client, blocks=[markdown(block_id="mine"), section(block_id="kept")])
    ids = [b["block_id"] for b in sandbox.channel("C0SUPPORT").last.blocks]
    assert ids[0] != "mine"
    assert ids[1] == "kept"


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"event_type": "card", "event_payload": {"id": "1"}}, None),
        ("card", "invalid_metadata_format"),
        ({"event_type": "card"}, "invalid_metadata_schema"),
        ({"event_type": 1, "event_payload": {}}, "invalid_metadata_schema"),
    ],
)
async def test_metadata_has_a_type_and_a_payload(
    client: AsyncWebClient, metadata: object, error: str | None
) -> None:
    assert await error_of(client, "chat.postMessage", **HERE, text="x", metadata=metadata) == error


async def test_a_channel_the_bot_is_not_in_refuses_by_its_kind(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    support = sandbox.channel("C0SUPPORT")
    support.members.discard("U0BOT")
    assert await error_of(client, "chat.postMessage", **HERE, text="x") == "not_in_channel"
    assert await error_of(client, "chat.postEphemeral", **HERE, user="U0MARTA", text="x") == "not_in_channel"
    support.is_private = True
    assert await error_of(client, "chat.postMessage", **HERE, text="x") == "channel_not_found"
    assert await error_of(client, "chat.postMessage", channel="C0NONE", text="x") == "channel_not_found"


async def test_chat_write_public_opens_public_channels_only(client: AsyncWebClient, sandbox: Sandbox) -> None:
    support = sandbox.channel("C0SUPPORT")
    support.members.discard("U0BOT")
    sandbox.workspace.app.scopes.add("chat:write.public")
    assert await error_of(client, "chat.postMessage", **HERE, text="x") is None
    support.is_private = True
    assert await error_of(client, "chat.postMessage", **HERE, text="x") == "channel_not_found"


async def test_an_archived_channel_refuses_posts_and_freezes_messages(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    ts = await post(client)
    sandbox.channel("C0SUPPORT").is_archived = True
    assert await error_of(client, "chat.postMessage", **HERE, text="x") == "is_archived"
    assert await error_of(client, "chat.postEphemeral", **HERE, user="U0MARTA", text="x") == "is_archived"
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="y") == "is_inactive"


async def test_a_deleted_channel_freezes_messages(client: AsyncWebClient, sandbox: Sandbox) -> None:
    ts = await post(client)
    sandbox.channel("C0SUPPORT").deleted = True
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="y") == "is_inactive"
    assert await error_of(client, "chat.postMessage", **HERE, text="y") == "channel_not_found"


async def test_a_restricted_channel_answers_with_its_restriction(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    sandbox.channel("C0SUPPORT").posting_refused = "restricted_action_read_only_channel"
    assert (
        await error_of(client, "chat.postMessage", **HERE, text="x") == "restricted_action_read_only_channel"
    )


async def test_a_disabled_messages_tab_refuses_direct_messages(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    assert await error_of(client, "chat.postMessage", channel="U0MARTA", text="x") is None
    assert sandbox.dm("U0MARTA").last.text == "x"
    sandbox.workspace.app.messages_tab_enabled = False
    for channel in ("U0MARTA", sandbox.dm("U0MARTA").id):
        assert (
            await error_of(client, "chat.postMessage", channel=channel, text="x") == "messages_tab_disabled"
        )


async def test_only_the_bots_own_messages_can_be_changed(client: AsyncWebClient, sandbox: Sandbox) -> None:
    theirs = await sandbox.person("U0MARTA").say("C0SUPPORT", "hello")
    assert await error_of(client, "chat.update", **HERE, ts=theirs.ts, text="x") == "cant_update_message"
    assert await error_of(client, "chat.delete", **HERE, ts=theirs.ts) == "cant_delete_message"


async def test_a_message_that_is_gone_is_not_found(client: AsyncWebClient, sandbox: Sandbox) -> None:
    ts = await post(client)
    sandbox.admin.delete_message("C0SUPPORT", ts)
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x") == "message_not_found"
    assert await error_of(client, "chat.delete", **HERE, ts=ts) == "message_not_found"
    assert await error_of(client, "chat.getPermalink", **HERE, message_ts=ts) == "message_not_found"
    assert sandbox.deliveries == []


async def test_a_closed_edit_window_refuses_the_update(client: AsyncWebClient, sandbox: Sandbox) -> None:
    sandbox.workspace.edit_window = 60
    sandbox.clock.freeze()
    ts = await post(client)
    sandbox.clock.advance(59)
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x") is None
    sandbox.clock.advance(2)
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x") == "edit_window_closed"


async def test_blocks_stay_unless_text_or_blocks_replace_them(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    ts = await post(client, blocks=[section()])
    message = sandbox.channel("C0SUPPORT").last
    await answer(client, "chat.update", **HERE, ts=ts, attachments=[{"text": "a"}])
    assert len(message.blocks) == 1
    await client.chat_update(channel="C0SUPPORT", ts=ts, text="only text")
    assert (message.blocks, message.text, len(message.attachments)) == ([], "only text", 1)


async def test_an_ephemeral_reaches_members_only_and_cannot_be_updated(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    shown = await answer(client, "chat.postEphemeral", **HERE, user="U0MARTA", text="psst")
    assert [m.text for m in sandbox.ephemerals_for("U0MARTA")] == ["psst"]
    assert sandbox.channel("C0SUPPORT").messages == []
    ts = shown["message_ts"]
    assert await error_of(client, "chat.update", **HERE, ts=ts, text="x") == "message_not_found"
    sandbox.channel("C0SUPPORT").members.discard("U0LEO")
    assert (
        await error_of(client, "chat.postEphemeral", **HERE, user="U0LEO", text="x") == "user_not_in_channel"
    )


async def test_an_ephemeral_is_lost_on_absent_people_and_on_reload(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    sandbox.workspace.users["U0LEO"].active = False
    for user in ("U0LEO", "U0MARTA"):
        assert await error_of(client, "chat.postEphemeral", **HERE, user=user, text="x") is None
    assert (len(sandbox.ephemerals_for("U0LEO")), len(sandbox.ephemerals_for("U0MARTA"))) == (0, 1)
    sandbox.person("U0MARTA").reload()
    assert sandbox.ephemerals_for("U0MARTA") == []


async def test_a_reply_lands_in_the_thread_of_its_parent(client: AsyncWebClient, sandbox: Sandbox) -> None:
    parent = await post(client)
    reply = await post(client, thread_ts=parent)
    await post(client, thread_ts=reply)
    assert len(sandbox.channel("C0SUPPORT").thread(parent)) == 3


async def test_a_permalink_names_channel_and_message(client: AsyncWebClient) -> None:
    ts = await post(client)
    found = await client.chat_getPermalink(**HERE, message_ts=ts)
    assert found["permalink"] == f"https://shop.slack.com/archives/C0SUPPORT/p{ts.replace('.', '')}"
