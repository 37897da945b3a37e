"""The page: every kind of block as HTML, and text as the reader's client shows it."""

from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Sandbox
from bot.sandbox.page.dates import zone_of
from bot.sandbox.page.mrkdwn import mrkdwn
from bot.sandbox.page.place import read_place
from bot.sandbox.page.sight import Sight
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Workspace
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import answer
from tests.sandbox.parts import (
    actions,
    button,
    cell,
    context,
    header,
    option,
    plain,
    section,
    select,
    table,
)
from tests.sandbox.parts import (
    mrkdwn as text,
)

Json = dict[str, Any]
MOMENT = 1_796_000_000  # 2026-11-30 00:53:20 UTC


async def shown(browser: Browser, client: AsyncWebClient, *blocks: Json, user: str = "U0MARTA") -> str:
    answered = await answer(client, "chat.postMessage", channel="C0APPROVALS", text="x", blocks=list(blocks))
    assert answered["ok"], answered
    return (await browser.open(user)).html


def sight_of(user_id: str, tz: str = "Europe/Madrid") -> Sight:
    shop = Workspace.shop()
    shop.users[user_id].tz = tz
    return Sight(read_place(shop, {"as": user_id}), Unsettled())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("*bold* _it_ ~gone~", "<b>bold</b> <i>it</i> <s>gone</s>"),
        ("*_both_*", "<b><i>both</i></b>"),
        ("2*3*4 a_b_c", "2*3*4 a_b_c"),
        ("`*no*`", "<code>*no*</code>"),
        ("```a\n*b*```", "<pre>a\n*b*</pre>"),
        ("one\ntwo", "one<br>two"),
        ("&gt; said\nafter", "<blockquote>said</blockquote>after"),
        ("before\n&gt; said", "before<blockquote>said</blockquote>"),
        ("a &lt;b&gt; &amp;amp;", "a &lt;b&gt; &amp;amp;"),
        ("<@U0LEO>", '<span class="mention">@Leo</span>'),
        ("<@U0MARTA>", '<span class="mention own">@Marta</span>'),
        ("<#C0SUPPORT>", '<a class="mention" href="/?as=U0MARTA&amp;in=C0SUPPORT">#support</a>'),
        ("<!here>", '<span class="mention">@here</span>'),
        (
            "<https://x.example|there>",
            '<a href="https://x.example" target="_blank" rel="noopener noreferrer">there</a>',
        ),
        ("🎉 :tada:", "🎉 :tada:"),
    ],
)
def test_mrkdwn_is_shown_as_slack_shows_it(source: str, expected: str) -> None:
    assert mrkdwn(source, sight_of("U0MARTA")) == expected


@pytest.mark.parametrize(
    ("shape", "madrid", "new_york"),
    [
        ("{date_num} {time}", "2026-11-30 1:53 AM", "2026-11-29 7:53 PM"),
        ("{date}", "November 30th, 2026", "November 29th, 2026"),
        ("{date_short}", "Nov 30, 2026", "Nov 29, 2026"),
        ("{date_long}", "Monday, November 30th, 2026", "Sunday, November 29th, 2026"),
        ("{time_secs}", "1:53:20 AM", "7:53:20 PM"),
        ("at {nonsense}", "at {nonsense}", "at {nonsense}"),
    ],
)
def test_a_date_is_in_the_readers_own_time_zone(shape: str, madrid: str, new_york: str) -> None:
    token = f"<!date^{MOMENT}^{shape}|then>"
    assert f">{madrid}</time>" in mrkdwn(token, sight_of("U0MARTA"))
    assert f">{new_york}</time>" in mrkdwn(token, sight_of("U0MARTA", "America/New_York"))


def test_a_near_day_has_its_name() -> None:
    sight = sight_of("U0MARTA")
    now = int(sight.workspace.clock.now())
    for days, name in ((-1, "yesterday"), (0, "today"), (1, "tomorrow")):
        token = f"<!date^{now + days * 86_400}^{{date_short_pretty}} at {{time}}|then>"
        assert f">{name} at " in mrkdwn(token, sight)


def test_a_date_that_cannot_be_read_is_its_fallback_and_an_unknown_zone_is_utc() -> None:
    assert mrkdwn("<!date^soon^{date}|then>", sight_of("U0MARTA")) == "then"
    assert str(zone_of("Nowhere/Land")) == "UTC"


async def test_a_header_a_section_a_context_and_a_divider(browser: Browser, client: AsyncWebClient) -> None:
    fields = {"type": "section", "fields": [plain("a *b*"), text("c *d*")]}
    blocks = [header("Refund 38"), fields, {"type": "divider"}, context(plain("small"), text("_print_"))]
    html = await shown(browser, client, *blocks)
    assert "<h3>Refund 38</h3>" in html
    assert '<ul class="fields"><li>a *b*</li><li>c <b>d</b></li></ul>' in html
    assert "<hr>" in html
    assert "<span>small</span><span><i>print</i></span>" in html


async def test_rich_text(browser: Browser, client: AsyncWebClient) -> None:
    def part(kind: str, *elements: Json, **more: Any) -> Json:
        return {"type": kind, "elements": list(elements), **more}

    words = [
        {"type": "text", "text": "a\nb", "style": {"bold": True}},
        {"type": "user", "user_id": "U0LEO"},
        {"type": "channel", "channel_id": "C0SUPPORT"},
        {"type": "link", "url": "https://x.example", "text": "there"},
        {"type": "emoji", "name": "tada", "unicode": "1f389"},
        {"type": "date", "timestamp": MOMENT, "format": "{date_num} {time}", "fallback": "then"},
    ]
    item = part("rich_text_section", {"type": "text", "text": "<item>"})
    html = await shown(
        browser,
        client,
        part(
            "rich_text",
            part("rich_text_section", *words),
            part("rich_text_quote", {"type": "text", "text": "said"}),
            part("rich_text_preformatted", {"type": "text", "text": "total: 1"}),
            part("rich_text_list", item, style="ordered"),
        ),
    )
    assert "<p><b>a<br>b</b>" in html
    assert '<span class="mention">@Leo</span>' in html
    assert ">#support</a>" in html and ">there</a>🎉" in html
    assert ">2026-11-30 1:53 AM</time></p>" in html
    assert "<blockquote>said</blockquote><pre>total: 1</pre>" in html
    assert '<ol class="indent-0"><li>&lt;item&gt;</li></ol>' in html


async def test_a_table_has_a_head_and_sets_amounts_to_the_right(
    browser: Browser, client: AsyncWebClient
) -> None:
    rows = [[cell("Payment"), cell("Amount")], [cell("p<1>"), cell("€5.00")]]
    settings = [{"align": "left"}, {"align": "right"}]
    html = await shown(browser, client, {**table(), "rows": rows, "column_settings": settings})
    assert (
        '<th class="left short" scope="col">Payment</th><th class="right short" scope="col">Amount</th>'
        in html
    )
    assert '<td class="left short">p&lt;1&gt;</td><td class="right short">€5.00</td>' in html


@pytest.mark.parametrize(("columns", "tag"), [(4, "<table>"), (5, '<table class="wide">')])
async def test_a_table_of_many_columns_is_set_smaller_on_a_phone(
    browser: Browser, client: AsyncWebClient, columns: int, tag: str
) -> None:
    rows = [[cell(f"C{n}") for n in range(columns)]]
    assert tag in await shown(browser, client, {**table(), "rows": rows, "column_settings": []})


async def test_a_page_that_says_what_could_not_be_done_has_no_script(browser: Browser) -> None:
    said = await browser.get("/?as=nobody")
    assert said.status == 404 and "<script" not in said.html


async def test_buttons_have_their_style_and_what_a_screen_reader_says(
    browser: Browser, client: AsyncWebClient
) -> None:
    approve = button("Approve", style="primary", accessibility_label="Approve: Refund 38")
    html = await shown(browser, client, actions(approve, button("Reject", style="danger"), button("Edit")))
    assert '<button class="button primary" aria-label="Approve: Refund 38" type="submit"' in html
    assert '<button class="button danger" type="submit"' in html
    assert '<button class="button" type="submit"' in html


async def test_a_button_for_some_is_not_shown_to_others(browser: Browser, client: AsyncWebClient) -> None:
    only_marta = actions(button("Approve", visible_to_user_ids=["U0MARTA"]), button("Details"))
    await shown(browser, client, only_marta)
    assert "Approve" in (await browser.open("U0MARTA")).labels_of_buttons
    page = await browser.open("U0LEO")
    assert "Approve" not in page.labels_of_buttons
    assert "Details" in page.labels_of_buttons


async def test_selects_and_menus_show_their_options(browser: Browser, client: AsyncWebClient) -> None:
    menu = {"type": "overflow", "options": [option("Details", "d"), option("History", "h")]}
    chosen = select(option("Later", "4h"), option("Now", "0h"), initial_option=option("Now", "0h"))
    html = await shown(browser, client, actions(chosen, menu), section("beside", accessory=button("Open")))
    assert '<option value="4h">Later</option><option value="0h" selected>Now</option>' in html
    assert '<summary aria-label="More actions" class="button">⋯</summary>' in html
    assert ">Details</button>" in html and ">History</button>" in html
    assert '<div class="beside"><div>beside</div></div><button class="button"' in html


async def test_other_blocks_show_their_words(browser: Browser, client: AsyncWebClient) -> None:
    image = {"type": "image", "image_url": "https://x.example/i.png", "alt_text": "a chart"}
    html = await shown(
        browser,
        client,
        image,
        {"type": "card", "title": plain("Careful <b>"), "actions": [button("Undo")]},
        {"type": "markdown", "text": "**as written**"},
    )
    assert "a chart</a>" in html and "<img" not in html
    assert "Careful &lt;b&gt;" in html and ">Undo</button>" in html
    assert "**as written**" in html


async def test_text_is_shown_where_there_are_no_blocks(browser: Browser, client: AsyncWebClient) -> None:
    await answer(client, "chat.postMessage", channel="C0APPROVALS", text="*only* text")
    assert "<b>only</b> text" in (await browser.open()).html


async def test_an_attachments_blocks_are_shown(
    browser: Browser, sandbox: Sandbox, client: AsyncWebClient
) -> None:
    attached = [{"blocks": [section("inside")]}]
    await answer(client, "chat.postMessage", channel="C0APPROVALS", text="x", attachments=attached)
    assert "inside" in (await browser.open()).text
