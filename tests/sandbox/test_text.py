"""Markup in text: what is shown, whom it pings, and what the three entities hold back."""

from collections.abc import Callable
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Sandbox, UserGroup
from tests.sandbox.drive import answer
from tests.sandbox.parts import cell, context, header, mrkdwn, plain, rich_text, section, table

Place = Callable[[str], dict[str, Any]]
EVIL = {
    "<!channel>": "channel",
    "<!here>": "here",
    "<!everyone>": "everyone",
    "<@U0ANA>": "U0ANA",
    "<!subteam^S0LEADS>": "S0LEADS",
    "<!subteam^S0LEADS|@x>": "S0LEADS",
}
PLACES: dict[str, Place] = {
    "text": lambda text: {"text": text},
    "section": lambda text: {"blocks": [section(text)]},
    "context": lambda text: {"blocks": [context(mrkdwn(text))]},
    "attachment": lambda text: {"text": "x", "attachments": [{"text": text}]},
    "attachment_blocks": lambda text: {"text": "x", "attachments": [{"blocks": [section(text)]}]},
}
SAFE_PLACES: dict[str, Place] = {
    "plain_text": lambda text: {"text": "x", "blocks": [context(plain(text))]},
    "header": lambda text: {"text": "x", "blocks": [header(text)]},
    "raw_text": lambda text: {"text": "x", "blocks": [table() | {"rows": [[cell(text)]]}]},
    "rich_text": lambda text: {"text": "x", "blocks": [rich_text(text)]},
}


@pytest.fixture(autouse=True)
def leads(sandbox: Sandbox) -> None:
    sandbox.workspace.add_group(UserGroup("S0LEADS", "leads", "Leads", ["U0MARTA"]))


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize("place", PLACES)
async def test_unescaped_input_pings_and_escaped_input_does_not(
    client: AsyncWebClient, sandbox: Sandbox, place: str
) -> None:
    support = sandbox.channel("C0SUPPORT")
    for text, pinged in EVIL.items():
        await answer(client, "chat.postMessage", channel="C0SUPPORT", **PLACES[place](text))
        assert support.last.pings == {pinged}
        await answer(client, "chat.postMessage", channel="C0SUPPORT", **PLACES[place](escaped(text)))
        assert support.last.pings == frozenset()
        assert text in sandbox.person("U0MARTA").read(support.last)


@pytest.mark.parametrize("place", SAFE_PLACES)
async def test_places_without_markup_never_ping(client: AsyncWebClient, sandbox: Sandbox, place: str) -> None:
    for text in EVIL:
        await answer(client, "chat.postMessage", channel="C0SUPPORT", **SAFE_PLACES[place](text))
        assert sandbox.channel("C0SUPPORT").last.pings == frozenset()
        assert text in sandbox.person("U0MARTA").read(sandbox.channel("C0SUPPORT").last)


async def test_a_link_shows_its_label_and_not_where_it_goes(client: AsyncWebClient, sandbox: Sandbox) -> None:
    spoof = "<https://evil.example|Approve>"
    await answer(client, "chat.postMessage", channel="C0SUPPORT", text=spoof)
    assert sandbox.person("U0MARTA").read(sandbox.channel("C0SUPPORT").last) == "Approve"


async def test_ids_are_shown_as_names(client: AsyncWebClient, sandbox: Sandbox) -> None:
    text = "<@U0ANA> <#C0SUPPORT> <!subteam^S0LEADS> <!here> <!date^1^{date}|today>"
    await answer(client, "chat.postMessage", channel="C0SUPPORT", text=text)
    shown = sandbox.person("U0MARTA").read(sandbox.channel("C0SUPPORT").last)
    assert shown == "@Ana #support @leads @here today"


async def test_rich_text_mentions_ping(client: AsyncWebClient, sandbox: Sandbox) -> None:
    mention = rich_text()
    mention["elements"][0]["elements"] = [
        {"type": "user", "user_id": "U0ANA"},
        {"type": "usergroup", "usergroup_id": "S0LEADS"},
        {"type": "broadcast", "range": "here"},
    ]
    await answer(client, "chat.postMessage", channel="C0SUPPORT", text="x", blocks=[mention])
    assert sandbox.channel("C0SUPPORT").last.pings == {"U0ANA", "S0LEADS", "here"}


async def test_link_names_turns_a_typed_group_into_a_mention(
    client: AsyncWebClient, sandbox: Sandbox
) -> None:
    for link_names, pings in ((False, set()), (True, {"S0LEADS"})):
        args = {"channel": "C0SUPPORT", "text": "@leads", "link_names": link_names}
        await answer(client, "chat.postMessage", **args)
        assert sandbox.channel("C0SUPPORT").last.pings == pings
