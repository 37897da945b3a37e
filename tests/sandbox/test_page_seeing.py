"""The page: what each person sees, and what an address that names nothing answers."""

import html
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Channel, Sandbox
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import answer
from tests.sandbox.parts import actions, button, section

Json = dict[str, Any]
EVIL = '<script>alert(1)</script><img src=x onerror="x">'


async def post(client: AsyncWebClient, text: str, **more: Any) -> str:
    answered = await answer(client, "chat.postMessage", **{"channel": "C0APPROVALS", "text": text, **more})
    assert answered["ok"], answered
    return str(answered["ts"])


async def test_the_first_page_is_of_the_colleague_who_may_ask(browser: Browser) -> None:
    page = await browser.get("/")
    assert page.status == 200
    assert "# support as Leo, Colleague" in page.text
    for words in ("Marta Support lead", "Ana Admin", "Leo Colleague", "Gwen Guest"):
        assert words in page.text
    assert "Nobody has written here yet." in page.text


async def test_the_page_fetches_nothing_from_elsewhere(browser: Browser) -> None:
    page = await browser.get("/")
    assert "://" not in page.html
    for path, kind in (("/page.css", "text/css"), ("/page.js", "text/javascript")):
        async with browser.http.get(browser.sandbox.base_url + path) as file:
            assert (file.status, file.content_type) == (200, kind)
            assert "://" not in await file.text()


async def test_a_person_sees_only_channels_they_are_in(browser: Browser) -> None:
    workspace = browser.sandbox.workspace
    workspace.add_channel(Channel("C0LEADS", "leads", {"U0MARTA", "U0BOT"}, is_private=True))
    assert "# leads" in (await browser.open("U0MARTA")).text
    assert "leads" not in (await browser.open("U0LEO")).text
    page = await browser.open("U0LEO", "C0LEADS")
    assert (page.status, page.text.split(" Back")[0]) == (404, "Leo sees no channel 'C0LEADS' here.")


async def test_switching_the_person_keeps_the_channel_if_they_are_in_it(browser: Browser) -> None:
    workspace = browser.sandbox.workspace
    workspace.add_channel(Channel("C0LEADS", "leads", {"U0MARTA", "U0BOT"}, is_private=True))
    page = await browser.open("U0MARTA", "C0LEADS")
    assert (await browser.get(page.link("LLeoColleague"))).status == 200
    page = await browser.open("U0MARTA", "C0APPROVALS")
    assert page.link("LLeoColleague") == "/?as=U0LEO&in=C0APPROVALS"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/?as=U0NOBODY", "Nobody in this workspace has the id 'U0NOBODY'."),
        ("/?as=U0BOT", "Nobody in this workspace has the id 'U0BOT'."),
        ("/?as=U0LEO&in=C0NONE", "Leo sees no channel 'C0NONE' here."),
        ("/?as=U0LEO&in=C0SUPPORT&thread=1.2", "There is no message '1.2' here."),
        ("/?as=U0LEO&in=home&thread=1.2", "There is no message '1.2' here."),
        ("/?as=U0LEO&in=C0SUPPORT&ask=%5B%5D&where=1.2", "Leo sees no message or window '1.2' here."),
        ("/?as=%3Cscript%3E", "Nobody in this workspace has the id '<script>'."),
        ("/live?as=U0NOBODY", "Nobody in this workspace has the id 'U0NOBODY'."),
    ],
)
async def test_an_unknown_id_is_one_clear_sentence(browser: Browser, address: str, sentence: str) -> None:
    page = await browser.get(address)
    assert (page.status, page.text) == (404, f"{sentence} Back to the workspace")
    assert "<script>" not in page.html


async def test_everything_that_is_shown_is_escaped(
    browser: Browser, sandbox: Sandbox, client: AsyncWebClient
) -> None:
    sandbox.add_person("U0EVIL", EVIL)
    await sandbox.person("U0EVIL").say("C0APPROVALS", EVIL)
    await post(client, "x", blocks=[section(EVIL), actions(button(EVIL[:75], accessibility_label=EVIL[:75]))])
    await answer(client, "chat.postEphemeral", channel="C0APPROVALS", user="U0MARTA", text=EVIL)
    await answer(
        client, "chat.postMessage", channel="C0APPROVALS", text=f"<https://x.example/{EVIL[:9]}|{EVIL}>"
    )
    page = await browser.open()
    assert EVIL[:25] not in page.html
    assert html.escape(EVIL[:25]) in page.html


async def test_a_link_that_is_no_web_address_cannot_be_followed(
    browser: Browser, client: AsyncWebClient
) -> None:
    await post(client, "<javascript:alert(1)|press me>")
    page = await browser.open()
    assert "press me" in page.text
    assert "javascript:" not in page.html


async def test_a_private_note_is_marked_and_seen_by_one_person_alone(
    browser: Browser, client: AsyncWebClient
) -> None:
    await answer(client, "chat.postEphemeral", channel="C0APPROVALS", user="U0LEO", text="for Leo")
    assert "Only visible to you Dismiss for Leo" in (await browser.open("U0LEO")).text
    assert "for Leo" not in (await browser.open("U0MARTA")).text


async def test_replies_are_in_their_thread_and_counted_below_its_message(
    browser: Browser, client: AsyncWebClient
) -> None:
    root = await post(client, "the question")
    await post(client, "first answer", thread_ts=root)
    await post(client, "second answer", thread_ts=root)
    page = await browser.open()
    assert "2 replies" in page.text
    assert "first answer" not in page.text
    page = await browser.get(page.link("V2 replies"))
    assert "first answer" in page.text and "second answer" in page.text
    assert page.url.endswith(f"?as=U0MARTA&in=C0APPROVALS&thread={root}")


async def test_what_is_new_elsewhere_is_marked_until_it_was_looked_at(
    browser: Browser, client: AsyncWebClient
) -> None:
    marked = 'aria-label="1 new for you"'
    await post(client, "<@U0MARTA>: please decide")
    assert marked in (await browser.open("U0LEO", "C0SUPPORT")).html, "at Marta's name"
    assert marked in (await browser.open("U0MARTA", "C0SUPPORT")).html, "at the channel"
    await browser.open("U0MARTA", "C0APPROVALS")
    assert marked not in (await browser.open("U0MARTA", "C0SUPPORT")).html
    assert marked not in (await browser.open("U0LEO", "C0SUPPORT")).html


async def test_the_dm_with_the_bot_is_seen_by_its_person(browser: Browser, client: AsyncWebClient) -> None:
    browser.sandbox.dm("U0LEO")
    await post(client, "hello Leo", channel="U0LEO")
    assert "hello Leo" in (await browser.open("U0LEO", "dm")).text
    assert "hello Leo" not in (await browser.open("U0MARTA", "dm")).text


async def test_a_permalink_leads_to_the_message_on_the_page(browser: Browser, client: AsyncWebClient) -> None:
    root = await post(client, "the card")
    reply = await post(client, "a reply", thread_ts=root)
    for ts, there in ((root, f"#m-{root}"), (reply, f"&thread={root}#t-{reply}")):
        link = await answer(client, "chat.getPermalink", channel="C0APPROVALS", message_ts=ts)
        await post(client, f"<{link['permalink']}|to {ts}>", channel="C0SUPPORT")
        page = await browser.open("U0LEO", "C0SUPPORT")
        address, _, anchor = f"/?as=U0LEO&in=C0APPROVALS{there}".partition("#")
        assert page.link(f"to {ts}") == f"{address}#{anchor.replace('.', '-')}"
        assert f'id="{anchor.replace(".", "-")}"' in (await browser.get(address)).html


async def test_the_page_answers_under_its_own_address_only(browser: Browser) -> None:
    browser.headers = {"Host": "evil.example"}
    page = await browser.get("/?as=U0LEO")
    assert (page.status, page.text.split(" Back")[0]) == (
        403,
        "This page answers under 127.0.0.1 and localhost only.",
    )
    browser.headers = {"Host": "localhost:8123"}
    assert (await browser.get("/?as=U0LEO")).status == 200
