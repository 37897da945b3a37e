"""The world beside the Slack: what the page shows of it, and what a press in it does."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import Sandbox
from bot.sandbox.world import Control, DeedRefusedError, Figure, Item, Listing, Moment, Section, Step, Welcome
from tests.sandbox.browsing import Browser
from tests.sandbox.drive import Recorder, answer, answering
from tests.sandbox.parts import actions, button
from tests.sandbox.test_page_live import following

NOON = 1_790_000_000.0
EVIL = "<script>alert(1)</script>"


class Weather:
    """A world with one button and one switch."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._changes = sandbox.workspace.changes
        self.done: list[str] = []
        self.looks = 0
        self.step: Step | None = None
        self.watchers = 0
        self.about = "All of it is weather."

    def sections(self) -> Sequence[Section]:
        rained = "rain" in self.done
        rain = Control("rain", "Let it rain", "Why not.", "It rained." if rained else "", spent=rained)
        wind = Control("wind", "It is windy", "The wind is a switch.", on="wind" in self.done)
        drop = Item("A drop", "falling", "waits", ("small", Moment("until", NOON)))
        figures = (Figure("17", "Clouds", "all grey"),)
        listings = (Listing("Drops", (drop,), "", "and 3 older"), Listing("Flakes", (), "No flake yet."))
        return [
            Section("Weather", "It is what it is.", controls=(rain, wind)),
            Section("Sky", figures=figures, listings=listings),
        ]

    def welcome(self) -> Welcome:
        return Welcome(self.about, "What about rain?")

    def next_step(self) -> Step | None:
        return self.step

    async def look(self) -> None:
        self.looks += 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        self.watchers += 1
        self._changes.announce()
        try:
            yield
        finally:
            self.watchers -= 1
            self._changes.announce()

    async def do(self, deed: str) -> None:
        if deed in self.done:
            raise DeedRefusedError("It has rained enough.")
        self.done.append(deed)
        self._changes.announce()


@pytest.fixture
def weather(sandbox: Sandbox) -> Weather:
    made = Weather(sandbox)
    sandbox.surround(made)
    return made


async def test_a_slack_alone_shows_no_world(browser: Browser) -> None:
    page = await browser.open()
    assert page.text.count("Nobody has written here yet.") == 1 and "<p></p>" not in page.html
    assert "The world" not in page.text and 'id="surroundings"' not in page.html
    page = await browser.post("/world?as=U0LEO&in=C0SUPPORT", "deed=rain")
    assert (page.status, page.text.split(" Back")[0]) == (
        404,
        "Nothing called 'rain' can be made to happen here.",
    )


async def test_the_page_shows_the_world_beside_the_slack(browser: Browser, weather: Weather) -> None:
    page = await browser.open("U0LEO", "C0SUPPORT")
    for words in (
        "Weather It is what it is. Let it rain Why not. It is windy The wind is a switch.",
        "Sky Clouds 17 all grey Drops A drop falling small · until",
        "and 3 older Flakes No flake yet.",
    ):
        assert words in page.text
    assert weather.looks == 1, "what is shown is fresh"


async def test_a_control_is_described_by_its_sentence_and_its_outcome_is_read_out(
    browser: Browser, weather: Weather
) -> None:
    page = await browser.open()
    rain = next(one for one in page.buttons if one.label == "Let it rain")
    assert f'id="{rain.attributes["aria-describedby"]}" class="hint">Why not.</p>' in page.html
    assert '<p role="status" class="came-of-it"></p>' in page.html
    page = await browser.press(page, "Let it rain")
    assert '<p role="status" class="came-of-it">It rained.</p>' in page.html


async def test_a_press_is_done_and_leads_back_to_where_one_was(browser: Browser, weather: Weather) -> None:
    page = await browser.press(await browser.open("U0GUEST", "C0SUPPORT"), "Let it rain")
    assert (weather.done, page.status) == (["rain"], 200)
    assert page.url.endswith("/?as=U0GUEST&in=C0SUPPORT")


async def test_a_switch_and_a_spent_control_say_how_they_stand(browser: Browser, weather: Weather) -> None:
    page = await browser.open()
    assert [one.attributes.get("aria-pressed") for one in page.buttons if "windy" in one.label] == ["false"]
    page = await browser.press(await browser.press(page, "It is windy"), "Let it rain")
    [wind] = [one for one in page.buttons if "windy" in one.label]
    [rain] = [one for one in page.buttons if "rain" in one.label]
    assert wind.attributes["aria-pressed"] == "true" and "aria-disabled" not in wind.attributes
    assert rain.attributes["aria-disabled"] == "true"
    assert "disabled" not in rain.attributes, "it keeps the focus of whoever pressed it"


async def test_what_the_world_does_not_do_is_one_sentence(browser: Browser, weather: Weather) -> None:
    page = await browser.open()
    await browser.press(page, "Let it rain")
    page = await browser.press(page, "Let it rain")
    assert (page.status, page.text.split(" Back")[0]) == (409, "It has rained enough.")


@pytest.mark.parametrize("deed", ["hail", "", EVIL])
async def test_a_deed_that_nothing_offers_is_not_done(browser: Browser, weather: Weather, deed: str) -> None:
    page = await browser.post("/world?as=U0LEO&in=C0SUPPORT", urlencode({"deed": deed}))
    assert (page.status, weather.done) == (404, [])
    assert EVIL not in page.html


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
async def test_another_sites_page_lets_nothing_happen(
    browser: Browser, weather: Weather, headers: dict[str, str]
) -> None:
    page = await browser.post("/world?as=U0LEO&in=C0SUPPORT", "deed=rain", headers)
    assert (page.status, weather.done) == (403, [])


async def test_what_changes_in_the_world_reaches_an_open_page(browser: Browser, weather: Weather) -> None:
    async with following(browser, "U0MARTA", "C0APPROVALS") as stream:
        first = await stream.next()
        assert "It rained." not in first["regions"]["surroundings"]
        await weather.do("rain")
        news = await stream.next()
    assert set(news["regions"]) == {"surroundings"}
    assert "It rained." in news["regions"]["surroundings"]


async def test_the_world_is_watched_as_long_as_a_page_is_open(browser: Browser, weather: Weather) -> None:
    assert weather.watchers == 0
    marta, leo = following(browser, "U0MARTA", "C0APPROVALS"), following(browser, "U0LEO", "C0SUPPORT")
    async with marta as one, leo as other:
        await asyncio.gather(one.next(), other.next())
        assert weather.watchers == 2
    await browser.sandbox.until(lambda: weather.watchers == 0)


async def test_times_of_the_world_are_those_of_the_reader(browser: Browser, weather: Weather) -> None:
    users = browser.sandbox.workspace.users
    users["U0LEO"].tz, users["U0MARTA"].tz = "Europe/Madrid", "America/New_York"
    assert "4:13 PM" in (await browser.open("U0LEO", "C0SUPPORT")).text
    assert "10:13 AM" in (await browser.open("U0MARTA", "C0SUPPORT")).text


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("Asia/Tokyo", "11:13 PM"), ("", "4:13 PM"), ("Europe", "4:13 PM"), ("../../etc/passwd", "4:13 PM")],
)
async def test_times_are_in_the_zone_that_the_browser_says_it_is_in(
    browser: Browser, weather: Weather, zone: str, shown: str
) -> None:
    browser.headers["Cookie"] = f"zone={zone}"
    assert shown in (await browser.open("U0LEO", "C0SUPPORT")).text


async def test_what_the_world_says_is_escaped(
    browser: Browser, weather: Weather, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = Section(
        EVIL,
        EVIL,
        (Control(EVIL, EVIL, EVIL, EVIL),),
        (Figure(EVIL, EVIL, EVIL),),
        (Listing(EVIL, (Item(EVIL, EVIL, "", (EVIL, Moment(EVIL, NOON))),), EVIL, EVIL),),
    )
    monkeypatch.setattr(weather, "sections", lambda: [evil])
    page = await browser.open()
    assert "<script>alert" not in page.html
    assert page.text.count(EVIL) == 14


async def test_while_clicks_are_repeated_the_same_request_comes_twice(
    browser: Browser, sandbox: Sandbox, client: AsyncWebClient
) -> None:
    blocks = [actions(button("Approve"))]
    await answer(client, "chat.postMessage", channel="C0APPROVALS", text="x", blocks=blocks)
    recorder = Recorder()
    async with answering(sandbox, recorder.__call__):
        page = await browser.open()
        sandbox.slack.repeats_clicks = True
        await browser.press(page, "Approve")
        await sandbox.until(lambda: len(recorder.requests) == 2)
        sandbox.slack.repeats_clicks = False
        await browser.press(page, "Approve")
        await sandbox.until(lambda: len(recorder.requests) == 3)
    first, again, later = recorder.requests
    assert first == again != later
    assert [delivery.request for delivery in sandbox.deliveries[:2]] == [sandbox.deliveries[0].request] * 2


async def test_what_one_does_next_stands_where_one_writes_with_the_way_there(
    browser: Browser, weather: Weather
) -> None:
    weather.step = Step("U0LEO", "C0SUPPORT", f"Ask as Leo {EVIL}.", "Ask: press Send.")
    page = await browser.open("U0MARTA", "C0APPROVALS")
    assert f"Next: Ask as Leo {EVIL}. Go there" in page.text and EVIL not in page.html
    assert page.link("Go there") == "/?as=U0LEO&in=C0SUPPORT"
    page = await browser.get(page.link("Go there"))
    assert "Next: Ask: press Send." in page.text and "Go there" not in page.text
    weather.step = Step("U0LEO", "C0SUPPORT", "All is said.", "", name="The end")
    assert "The end: All is said." in (await browser.open()).text
    weather.step = Step("U0NOBODY", "C0SUPPORT", "Ask as nobody.", "Ask.")
    assert "Next:" not in (await browser.open()).text


async def test_who_has_to_do_the_next_thing_themselves_is_not_told_to_be_who_they_are(
    browser: Browser, weather: Weather
) -> None:
    weather.step = Step("U0LEO", "C0SUPPORT", "Be Leo: ask.", "Press Send.", nearby="Ask in #support.")
    for place in ("home", "C0APPROVALS"):
        page = await browser.open("U0LEO", place)
        assert "Next: Ask in #support. Go there" in page.text
    assert "Next: Be Leo: ask. Go there" in (await browser.open("U0MARTA", "home")).text


async def test_what_stands_ready_is_for_who_has_to_say_it_until_they_have(
    browser: Browser, weather: Weather
) -> None:
    weather.step = Step("U0LEO", "C0SUPPORT", "Ask as Leo.", "Press Send.", ready="let it rain")
    page = await browser.open("U0MARTA", "C0SUPPORT")
    assert "stand ready" not in page.text and "let it rain" not in str(page.fields)
    await browser.press(page, "Send", {"Message #support": "I come first"})
    page = await browser.open("U0LEO", "C0SUPPORT")
    assert page.fields["composer-here"] == [("text", "@vistobueno let it rain")]
    page = await browser.press(page, "Send")
    assert "let it rain" in page.text and "let it rain" not in str(page.fields)


async def test_what_one_does_next_changes_while_one_looks(browser: Browser, weather: Weather) -> None:
    async with following(browser, "U0LEO", "C0SUPPORT") as stream:
        first = await stream.next()
        assert first["regions"]["next-stream"] == first["regions"]["next-replies"] == ""
        weather.step = Step("U0LEO", "C0SUPPORT", "Ask as Leo.", "Ask: press Send.")
        browser.sandbox.workspace.changes.announce()
        news = await stream.next()
    assert news["regions"]["next-stream"] == "<b>Next: </b>Ask: press Send."


async def test_what_all_this_is_stands_where_nobody_has_written_and_invites_once(
    browser: Browser, weather: Weather
) -> None:
    weather.about = f"All of it is {EVIL}."
    first = await browser.open("U0LEO", "C0SUPPORT")
    assert f"All of it is {EVIL}. Nobody has written here yet." in first.text
    assert EVIL not in first.html and 'placeholder="What about rain?"' in first.html
    elsewhere = await browser.open("U0LEO", "C0APPROVALS")
    assert "All of it is" in elsewhere.text and 'placeholder="Message #approvals"' in elsewhere.html
    written = await browser.press(first, "Send", {"Message #support": "hello"})
    assert "All of it is" not in written.text
