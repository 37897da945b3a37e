"""The whole page: who one is, where one can go, what is there."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.sandbox.page.blocks import blocks
from bot.sandbox.page.composer import composer, place_name
from bot.sandbox.page.elements import Surface
from bot.sandbox.page.html import Child, Html, tag, text
from bot.sandbox.page.messages import avatar, seen_in, stream, thread
from bot.sandbox.page.place import DM, HOME, Place, channels_of, people_of, what_they_are
from bot.sandbox.page.seen import Seen
from bot.sandbox.page.sight import Sight
from bot.sandbox.page.surroundings import opener, surroundings, world
from bot.sandbox.page.windows import Asked, modal, question
from bot.sandbox.workspace import User
from bot.sandbox.world import Section, Step, Welcome

DOCTYPE = Html("<!doctype html>\n")
NO_WELCOME = Welcome("")
SCRIPTS = ("morph", "steady", "page")


@dataclass(frozen=True)
class Page:
    """What a person has before them; `asked` is a question to answer, `notice` a sentence to read.

    `around` is the world beside the Slack, None where there is none; `step` is what one does next, and
    `welcome` stands where nobody has written.
    """

    sight: Sight
    seen: Seen
    suggestion: str = ""
    asked: Asked | None = None
    notice: str = ""
    around: Sequence[Section] | None = None
    step: Step | None = None
    welcome: Welcome = NO_WELCOME

    def document(self) -> Html:
        """The HTML document."""
        place = self.sight.place
        name = place_name(place)
        return text(
            DOCTYPE,
            tag(
                "html",
                _head(f"{name} · {place.user.real_name} · vistobueno", *SCRIPTS),
                tag(
                    "body",
                    self.bar(),
                    None if self.around is None else opener(),
                    tag(
                        "nav",
                        self.rail(),
                        id="rail",
                        popover="auto",
                        tabindex=-1,
                        aria_label="People and channels",
                    ),
                    tag("main", self._main(), id="main"),
                    self._thread(),
                    None if self.around is None else world(self.around, self.sight),
                    tag("div", self.windows(), id="windows"),
                    _notices(self.notice),
                    data_version=place.workspace.changes.count,
                    class_=self._look(),
                ),
                lang="en",
            ),
        )

    def regions(self) -> dict[str, str]:
        """What may change while one looks, by the id of its element."""
        return {
            "bar": self._bar_inside(),
            "rail": self.rail(),
            "stream": self.stream(),
            "replies": thread(self.sight),
            "windows": self.windows(),
            **{f"next-{log}": self._next_step() for log in ("stream", "replies") if self.around is not None},
            **({} if self.around is None else {"surroundings": surroundings(self.around, self.sight)}),
        }

    def bar(self) -> Html:
        """The bar at the top of a phone."""
        return tag("header", self._bar_inside(), id="bar")

    def _bar_inside(self) -> Html:
        place = self.sight.place
        elsewhere = any(self.seen.mentions_at(other) for other in self._places_of_all())
        dot = tag("span", class_="dot", aria_label="something new for somebody") if elsewhere else None
        menu = tag("button", "☰", dot, popovertarget="rail", class_="plain menu-button", aria_label="Menu")
        user = place.user
        who = tag("span", avatar(user.id, self.sight), user.real_name, class_="me")
        return text(menu, tag("h1", self._title()), who)

    def rail(self) -> Html:
        """The people to be, and the places of the one who is."""
        place = self.sight.place
        people = [self._person(user) for user in people_of(place.workspace)]
        channels = [
            self._link(place.at(c.id), f"# {c.name}") for c in channels_of(place.workspace, place.user)
        ]
        app = place.workspace.app.name
        visit = tag(
            "form",
            tag("button", "Home", class_="entry", aria_current=_current(place.inside == HOME)),
            method="post",
            action=place.address("/home"),
        )
        return text(
            tag("h2", "You are"),
            tag("ul", people, class_="people"),
            tag("h2", "Channels"),
            tag("ul", [tag("li", link) for link in channels]),
            tag("h2", app),
            tag("ul", tag("li", self._link(place.at(DM), "Messages")), tag("li", visit)),
        )

    def stream(self) -> Html:
        """The messages, or the app's Home."""
        if self.sight.place.inside != HOME:
            return stream(self.sight, self._ready(), self.welcome.about)
        home = self.sight.workspace.homes.get(self.sight.user.id)
        if home is None:
            return tag("p", "The app has not shown a Home to you yet.", class_="empty")
        where = tag("input", type="hidden", name="where", value=home.id)
        surface = Surface(self.sight, home)
        return tag(
            "form",
            where,
            blocks(home.blocks, surface),
            method="post",
            action=surface.press_address,
            class_="blocks home",
        )

    def windows(self) -> Html:
        """The modal and the question over the page, if any."""
        open_views = self.sight.workspace.modals.get(self.sight.user.id, [])
        shown = [modal(open_views[-1], self.sight)] if open_views else []
        return text(shown, question(self.asked, self.sight) if self.asked else None)

    def _ready(self) -> str:
        """What stands ready to be sent: what comes next here, or else how one begins where nobody has."""
        place, step = self.sight.place, self.step
        if step is not None and self._is_there(step):
            return "" if self._has_said(step.ready, step.since) else step.ready
        begun = place.channel is not None and seen_in(place.channel, self.sight)
        return self.suggestion if place.is_first and not begun else ""

    def _has_said(self, words: str, since: float) -> bool:
        channel, user = self.sight.place.channel, self.sight.user
        said = channel.messages if channel is not None else []
        return any(one.user == user.id and words in one.text and float(one.ts) > since for one in said)

    def _is_there(self, step: Step) -> bool:
        return (self.sight.user.id, self.sight.place.inside) == (step.user, step.channel)

    def _main(self) -> Html:
        place = self.sight.place
        write = None
        if place.channel is not None:
            invitation = self.welcome.invitation if place.is_first else ""
            write = composer(self.sight, self._ready(), in_thread=False, invitation=invitation)
        about = tag("small", f"as {place.user.real_name}, {what_they_are(place.user)}")
        log = tag("section", self.stream(), id="stream", class_="scrolls", tabindex=0, **_log("Messages"))
        head = tag("header", tag("h1", self._title()), about)
        return text(head, log, _to_end("stream"), self._next("stream"), write)

    def _thread(self) -> Html:
        place = self.sight.place
        if place.thread is None:
            return tag("aside", id="thread", hidden=True)
        back = tag(
            "a", "✕", href=place.at(place.inside).address(), class_="plain", aria_label="Close the thread"
        )
        return tag(
            "aside",
            tag("header", tag("h2", "Thread"), back),
            tag("section", thread(self.sight), id="replies", class_="scrolls", tabindex=0, **_log("Replies")),
            _to_end("replies"),
            self._next("replies"),
            composer(self.sight, "", in_thread=True),
            id="thread",
            aria_label="Thread",
        )

    def _next(self, log: str) -> Html | None:
        """Where it says what one does next; always there, so that what appears in it is read out."""
        if self.around is None:
            return None
        return tag("p", self._next_step(), id=f"next-{log}", class_="next", role="status")

    def _next_step(self) -> Html:
        place, step = self.sight.place, self.step
        if step is None or step.user not in place.workspace.users:
            return text()
        name = tag("b", f"{step.name}: ")
        if self._is_there(step):
            return text(name, step.there)
        there = Place(place.workspace, place.workspace.users[step.user], step.channel)
        words = step.nearby if step.nearby and place.user.id == step.user else step.elsewhere
        return text(name, words, " ", tag("a", "Go there", href=there.address()))

    def _look(self) -> str | None:
        there = {"with-thread": self.sight.place.thread, "with-world": self.around is not None}
        return " ".join(name for name, is_there in there.items() if is_there) or None

    def _title(self) -> str:
        place = self.sight.place
        name = place_name(place)
        return name if place.inside in {HOME, DM} else f"# {name}"

    def _person(self, user: User) -> Html:
        there = self.sight.place.seen_by(user)
        is_me = user.id == self.sight.user.id
        new = 0 if is_me else sum(self.seen.mentions_at(place) for place in self._places_of(user))
        label = tag("span", tag("b", user.real_name), tag("small", what_they_are(user)))
        link = tag(
            "a",
            avatar(user.id, self.sight),
            label,
            _badge(new),
            href=there.address(),
            class_="entry",
            aria_current=_current(is_me),
        )
        return tag("li", link)

    def _link(self, place: Place, label: str) -> Html:
        here = self.sight.place
        is_here = place.inside == here.inside
        new = [] if is_here else self.seen.new_at(place)
        look = "entry new" if new else "entry"
        badge = _badge(self.seen.mentions_at(place)) if new else None
        return tag(
            "a", tag("span", label), badge, href=place.address(), class_=look, aria_current=_current(is_here)
        )

    def _places_of(self, user: User) -> list[Place]:
        workspace = self.sight.workspace
        there = [c.id for c in channels_of(workspace, user)]
        has_dm = any(channel.im_with == user.id for channel in workspace.channels.values())
        return [Place(workspace, user, inside) for inside in [*there, *([DM] if has_dm else [])]]

    def _places_of_all(self) -> list[Place]:
        here = self.sight.place
        places = [p for user in people_of(self.sight.workspace) for p in self._places_of(user)]
        return [p for p in places if (p.user.id, p.inside) != (here.user.id, here.inside)]


def failure(sentence: str, address: str) -> Html:
    """A document that says in one sentence what could not be done."""
    said = tag("p", sentence, role="alert")
    back = tag("p", tag("a", "Back to the workspace", href=address))
    return text(
        DOCTYPE,
        tag("html", _head("vistobueno"), tag("body", tag("main", said, back), class_="bare"), lang="en"),
    )


def _head(title: str, *scripts: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/page.css"),
        [tag("script", src=f"/{name}.js", defer=True) for name in scripts],
    )


def _notices(notice: str) -> Html:
    said: Child = None
    if notice:
        said = tag("p", notice)
    return tag("div", said, id="notices", role="alert")


def _to_end(log: str) -> Html:
    """Where somebody is at work in a log, it leads on to what is new; the script shows it then."""
    words = text(tag("span", "New messages", class_="what"), " ", tag("span", "↓", aria_hidden="true"))
    return tag("button", words, type="button", class_="button to-end", data_log=log, hidden=True)


def _log(label: str) -> dict[str, str]:
    return {"role": "log", "aria_live": "polite", "aria_label": label}


def _current(is_here: bool) -> str | None:
    return "page" if is_here else None


def _badge(count: int) -> Html | None:
    return tag("span", str(count), class_="badge", aria_label=f"{count} new for you") if count else None
