"""What a person does on the page, done through their Slack client: write, press, fill in, close, visit."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from types import MappingProxyType

from bot.sandbox.delivery import Delivery
from bot.sandbox.elements import HOLDS, Placed, placed_elements
from bot.sandbox.errors import Json
from bot.sandbox.forms import FormIncompleteError
from bot.sandbox.page.composer import as_sent
from bot.sandbox.page.elements import name_of
from bot.sandbox.page.errors import NoLongerError, NotThereError, PageError
from bot.sandbox.page.place import DM, HOME, Place
from bot.sandbox.people import Person
from bot.sandbox.posting import note_from_slackbot
from bot.sandbox.render import elements_shown
from bot.sandbox.slack import Slack
from bot.sandbox.workspace import Message, View

Form = Mapping[str, list[str]]
GONE = "It is no longer there: what you saw has changed meanwhile."
FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "http_timeout": "Slack got no answer from the app within 3 seconds. Try again?",
        "http_error": "The app answered Slack with an error. Try again?",
        "connection_failed": "Slack could not reach the app. Try again?",
    }
)


@dataclass(frozen=True)
class Deed:
    """One post: whose Slack, from which place, and what the form holds."""

    slack: Slack
    place: Place
    form: Form

    @property
    def person(self) -> Person:
        """The person at their client."""
        return Person(self.slack, self.place.user, next(iter(self.form.get("window", [])), ""))

    @property
    def thread(self) -> str | None:
        """The thread that is written in; a thread may be open beside the channel that is."""
        return self.place.thread if "reply" in self.form else None

    def field(self, name: str) -> str:
        """A field of the form; NotThereError without it."""
        values = self.form.get(name)
        if not values:
            raise NotThereError(f"The form lacks the field {name!r}.")
        return values[0]

    def after(self, delivery: Delivery | None = None, **more: str) -> str:
        """The address to go to; it says so if the app did not answer as it must."""
        failed = delivery.failure if delivery is not None else None
        return self.place.address(**more, **({"failed": failed} if failed else {}))


async def say(deed: Deed) -> str:
    """Write a message, or give a command."""
    typed = deed.field("text").strip()
    if not typed:
        raise PageError("There is nothing to send: write something first.")
    if typed.startswith("/"):
        return await _command(deed, typed)
    text, place = as_sent(typed, deed.slack.workspace), deed.place
    if place.channel is None:
        raise NotThereError("Home takes no messages: write in a channel or to the app.")
    if place.inside == DM:
        await deed.person.dm(text, deed.thread)
    else:
        await deed.person.say(place.channel.id, text, deed.thread)
    return deed.after()


async def _command(deed: Deed, typed: str) -> str:
    command, _, text = typed.partition(" ")
    channel = deed.place.channel
    if channel is None:
        raise NotThereError("Home takes no commands: give it in a channel.")
    if deed.thread is not None:
        words = f"{command} is not supported in threads. Sorry!"
    elif command not in deed.slack.workspace.app.commands:
        words = f"{command} is not a valid command. Messages that start with “/” are commands."
    else:
        await deed.person.slash(command, text.strip(), channel.id)
        return deed.after()
    note = note_from_slackbot(deed.slack, channel.id, deed.person.id, words)
    note.thread_ts = deed.thread
    return deed.after()


async def press(deed: Deed) -> str:
    """Press a button, choose from a select or a menu; what asks for it is confirmed first."""
    shown = find_shown(deed.slack, deed.place, deed.field("where"))
    placed, option = find_element(deed.slack, deed.place, shown, deed.field("element"))
    if option is None and placed.element["type"] in HOLDS:
        option = next(iter(deed.form.get(name_of(placed), [])), "") or None
        if option is None:
            raise PageError("Choose an option first.")
    if isinstance(shown, View) and shown.type == "modal":
        _fill(deed, shown)
    if "confirm" in placed.element and "confirmed" not in deed.form:
        chosen = [*placed.key, *([option] if option else [])]
        return deed.after(where=deed.field("where"), ask=json.dumps(chosen))
    return deed.after(await _act(deed, shown, placed, option))


async def _act(deed: Deed, shown: Message | View, placed: Placed, option: str | None) -> Delivery:
    name = placed.key[1]
    named = [p for p in elements_shown(shown, deed.person.id, deed.slack.unsettled) if p.is_called(name)]
    index = next(at for at, other in enumerate(named) if other.key == placed.key)
    if option is None:
        return await deed.person.click(shown, name, index=index)
    return await deed.person.choose(shown, name, option, index=index)


async def submit(deed: Deed) -> str:
    """Submit the modal on top; what its client or the app refuses is shown under its inputs."""
    view = _top(deed)
    _fill(deed, view)
    try:
        await deed.person.submit()
    except FormIncompleteError as incomplete:
        view.errors = dict(incomplete.errors)
        deed.slack.workspace.changes.announce()
    return deed.after()


async def close(deed: Deed) -> str:
    """Close the modal on top."""
    _top(deed)
    return deed.after(await deed.person.close())


async def visit_home(deed: Deed) -> str:
    """Open the app's Home."""
    delivery = await deed.person.open_home()
    home = deed.place.at(HOME)
    return Deed(deed.slack, home, deed.form).after(delivery)


async def dismiss(deed: Deed) -> str:
    """Take a private note off the screen."""
    note = find_shown(deed.slack, deed.place, deed.field("where"))
    if isinstance(note, View) or note.only_for is None:
        raise NoLongerError("Only what you alone see can be dismissed.")
    deed.person.dismiss(note)
    return deed.after()


DEEDS: Mapping[str, Callable[[Deed], Awaitable[str]]] = MappingProxyType(
    {
        "/say": say,
        "/press": press,
        "/submit": submit,
        "/close": close,
        "/home": visit_home,
        "/dismiss": dismiss,
    }
)


def find_shown(slack: Slack, place: Place, where: str) -> Message | View:
    """The message or view of that id, if the person has it before them; NotThereError otherwise."""
    view = slack.workspace.find_view(where)
    if view is not None and view.user == place.user.id:
        return view
    message = slack.workspace.find_message(where)
    if message is not None and message.only_for in {None, place.user.id}:
        channel = slack.workspace.channels[message.channel_id]
        if place.user.id in channel.members and not channel.deleted:
            return message
    raise NotThereError(f"{place.user.real_name} sees no message or window {where!r} here.")


def find_element(slack: Slack, place: Place, shown: Message | View, name: str) -> tuple[Placed, str | None]:
    """The element a form names, and the option it names; NoLongerError if it is not there any more."""
    try:
        block_id, action_id, *options = json.loads(name)
    except (ValueError, TypeError) as error:
        raise NotThereError(f"{name!r} names no element.") from error
    for placed in elements_shown(shown, place.user.id, slack.unsettled):
        if placed.key == (block_id, action_id):
            return placed, str(options[0]) if options else None
    raise NoLongerError(GONE)


def _top(deed: Deed) -> View:
    where, open_views = deed.field("where"), deed.person.views
    if not open_views or open_views[-1].id != where:
        raise NoLongerError("This window is no longer open.")
    return open_views[-1]


def _fill(deed: Deed, view: View) -> None:
    for placed in placed_elements(view.blocks):
        if placed.element["type"] in HOLDS and not _left_alone(deed, placed):
            deed.person.fill(
                {placed.key[0]: _entered(deed, placed.element, deed.form.get(name_of(placed), []))}
            )


def _left_alone(deed: Deed, placed: Placed) -> bool:
    # a browser sends nothing for empty lists and boxes; for everything else nothing means: not on the page
    sends_nothing = placed.element["type"].startswith("multi_") or placed.element["type"] in {
        "checkboxes",
        "radio_buttons",
    }
    return placed.block["type"] != "input" or (name_of(placed) not in deed.form and not sends_nothing)


def _entered(deed: Deed, element: Json, values: list[str]) -> object:
    kind = element["type"]
    if kind.startswith("multi_") or kind == "checkboxes":
        return values
    value = values[0] if values else ""
    if not value:
        return None
    if kind == "plain_text_input":
        return value.replace("\r\n", "\n")
    return _epoch(value, deed.place.zone) if kind == "datetimepicker" else value


def _epoch(value: str, zone: tzinfo) -> int:
    try:
        return int(datetime.fromisoformat(value).replace(tzinfo=zone).timestamp())
    except ValueError as error:
        raise PageError(f"{value!r} is no date and time.") from error
