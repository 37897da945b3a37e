"""A browser without script: it reads the page, fills in its forms and presses what is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

import aiohttp

from bot.sandbox import Sandbox

FIELDS = {"input", "textarea", "select"}
VOID = {"br", "hr", "img", "input", "link", "meta"}
Attributes = dict[str, str | None]


@dataclass
class Button:
    """A button: its label, the form it sends, and its own attributes."""

    label: str
    form: str | None
    attributes: Attributes


class Document(HTMLParser):
    """A page as it is read: its words, links, buttons, and what stands in its forms."""

    def __init__(self, status: int, html: str, url: str) -> None:
        super().__init__()
        self.status, self.html, self.url = status, html, url
        self.buttons: list[Button] = []
        self.links: list[tuple[str, str]] = []
        self.forms: dict[str, Attributes] = {}
        self.fields: dict[str, list[tuple[str, str]]] = {}
        self.labels: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self._words: list[str] = []
        self._open: list[tuple[str, Attributes, list[str]]] = []
        self.feed(html)

    @property
    def text(self) -> str:
        """The words that are shown, with one space between them."""
        return " ".join(" ".join(self._words).split())

    @property
    def labels_of_buttons(self) -> list[str]:
        """What can be pressed, in order."""
        return [button.label for button in self.buttons]

    def link(self, label: str) -> str:
        """Where the link of that label leads."""
        return next(href for text, href in self.links if text == label)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "form":
            attributes["id"] = attributes.get("id") or f"form {len(self.forms)}"
            self.forms[attributes["id"]] = attributes
        if tag == "input" and (
            attributes.get("type") not in {"radio", "checkbox"} or "checked" in attributes
        ):
            self._hold(attributes, attributes.get("value") or "")
        if tag in FIELDS and (attributes.get("id") and attributes.get("name")):
            self.names[str(attributes["id"])] = str(attributes["name"])
        if tag == "option" and "selected" in attributes:
            _, select, _ = next(one for one in reversed(self._open) if one[0] == "select")
            self._hold(select, attributes.get("value") or "")
        if tag not in VOID:
            self._open.append((tag, attributes, []))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] not in {"title", "script", "textarea"}:
            self._words.append(data)
        for _, _, words in self._open:
            words.append(data)

    def handle_endtag(self, tag: str) -> None:
        name, attributes, words = self._open.pop()
        assert name == tag, f"<{name}> is closed by </{tag}>"
        said = "".join(words)
        if tag == "button":
            form = attributes.get("form") or self._form()
            self.buttons.append(Button(said, form, attributes))
        elif tag == "a":
            self.links.append((said, attributes.get("href") or ""))
        elif tag == "textarea":
            self._hold(attributes, said.removeprefix("\n"))
        elif tag == "label":
            self.labels[said.removesuffix(" (optional)")] = attributes.get("for") or ""

    def _hold(self, attributes: Attributes, value: str) -> None:
        form = self._form()
        if form is not None and attributes.get("name"):
            self.fields.setdefault(form, []).append((str(attributes["name"]), value))

    def _form(self) -> str | None:
        forms = [attributes for tag, attributes, _ in self._open if tag == "form"]
        assert len(forms) < 2, "a form may not stand in a form"
        return forms[0]["id"] if forms else None


@dataclass
class Browser:
    """One browser at the sandbox's page."""

    sandbox: Sandbox
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    async def open(self, user: str = "U0MARTA", inside: str = "C0APPROVALS", **more: str) -> Document:
        """The page of a person at a place."""
        return await self.get("/?" + urlencode({"as": user, "in": inside, **more}))

    async def get(self, address: str) -> Document:
        """What is at an address of the page."""
        async with self.http.get(self.sandbox.base_url + address, headers=self.headers) as answer:
            return Document(answer.status, await answer.text(), str(answer.url))

    async def post(self, address: str, body: str, headers: Mapping[str, str] | None = None) -> Document:
        """Send a form as the page's own, or with the headers given."""
        own = {"Origin": self.sandbox.base_url} if headers is None else headers
        sent = {"Content-Type": "application/x-www-form-urlencoded", **self.headers, **own}
        async with self.http.post(self.sandbox.base_url + address, data=body, headers=sent) as answer:
            return Document(answer.status, await answer.text(), str(answer.url))

    async def press(
        self, page: Document, label: str, typed: Mapping[str, str | list[str]] | None = None, *, at: int = 0
    ) -> Document:
        """Fill in the fields of these labels (or names) and press a button; `at` chooses among equal ones."""
        button = [one for one in page.buttons if one.label == label][at]
        assert button.form is not None, f"{label!r} is in no form"
        fields = list(page.fields.get(button.form, []))
        for name, value in (typed or {}).items():
            key = page.names.get(page.labels.get(name, ""), name)
            fields = [pair for pair in fields if pair[0] != key]
            fields += [(key, one) for one in ([value] if isinstance(value, str) else value)]
        if button.attributes.get("name"):
            fields.append((str(button.attributes["name"]), button.attributes.get("value") or ""))
        action = button.attributes.get("formaction") or page.forms[button.form].get("action") or ""
        return await self.post(action, urlencode(fields))
