"""What lies over the page: the modal on top of the person's stack, and the question before a press."""

import json
from dataclasses import dataclass

from bot.sandbox.elements import Placed
from bot.sandbox.errors import Json
from bot.sandbox.page.blocks import blocks, words
from bot.sandbox.page.elements import Surface
from bot.sandbox.page.html import Child, Html, tag
from bot.sandbox.page.sight import Sight
from bot.sandbox.workspace import View


@dataclass(frozen=True)
class Asked:
    """A press that waits for the person's answer: where, which element, which option of it."""

    where: str
    placed: Placed
    option: str | None

    @property
    def element(self) -> str:
        """The element as a form sends it."""
        return json.dumps([*self.placed.key, *([] if self.option is None else [self.option])])


def modal(view: View, sight: Sight) -> Html:
    """A modal as an open dialog: its blocks in one form, closing in another."""
    surface = Surface(sight, view)
    here = sight.place.address
    where = tag("input", type="hidden", name="where", value=view.id)
    close = _label(view.body.get("close"), "Close", surface)
    submit = view.body.get("submit")
    buttons = [
        tag("button", close, form="close-modal", class_="button", data_closes=True),
        tag("button", _label(submit, "Submit", surface), class_="button primary") if submit else None,
    ]
    banner = tag("p", view.banner, class_="banner", role="alert") if view.banner else None
    action = here("/submit")
    return tag(
        "dialog",
        tag("h2", _label(view.body.get("title"), "", surface), id="modal-title"),
        tag("form", where, method="post", action=here("/close"), id="close-modal"),
        tag(
            "form",
            where,
            _inside(blocks(view.blocks, surface), "modal-title"),
            banner,  # beside the buttons: what is above may be out of sight
            tag("div", buttons, class_="row end", id="window-buttons"),
            method="post",
            action=action,
            novalidate=True,
            id="modal-form",
        ),
        id=f"window-{view.id}",
        data_window=view.window or None,
        open=True,
        aria_labelledby="modal-title",
        aria_modal="true",
    )


def question(asked: Asked, sight: Sight) -> Html:
    """The confirmation dialog of an element."""
    confirm: Json = asked.placed.element["confirm"]
    surface = Surface(sight, sight.workspace.find_message(asked.where) or _view(sight, asked.where))
    hidden = {"where": asked.where, "element": asked.element, "confirmed": "yes"}
    fields = [tag("input", type="hidden", name=name, value=value) for name, value in hidden.items()]
    yes = f"button {confirm.get('style', 'primary')}"
    buttons = [
        tag(
            "a",
            words(confirm["deny"], surface),
            href=sight.place.address(),
            class_="button",
            data_closes=True,
        ),
        tag("button", words(confirm["confirm"], surface), class_=yes),
    ]
    return tag(
        "dialog",
        tag("h2", words(confirm["title"], surface), id="question-title"),
        tag(
            "form",
            fields,
            _inside(words(confirm["text"], surface), "question-title"),
            tag("div", buttons, class_="row end"),
            method="post",
            action=sight.place.address("/press"),
        ),
        id="window-question",
        open=True,
        aria_labelledby="question-title",
        aria_modal="true",
    )


def _inside(content: Child, title: str) -> Html:
    """What is between the title and the buttons; it scrolls, and may have the focus."""
    return tag("div", content, class_="blocks", role="group", aria_labelledby=title, tabindex=-1)


def _view(sight: Sight, view_id: str) -> View:
    view = sight.workspace.find_view(view_id)
    assert view is not None
    return view


def _label(text: Json | None, otherwise: str, surface: Surface) -> str:
    return surface.sight.reader.plain(text) if text else otherwise
