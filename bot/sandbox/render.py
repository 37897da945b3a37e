"""What people see: text with Slack's markup resolved, tables, and whom a message pings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.sandbox.elements import placed_elements
from bot.sandbox.errors import Json
from bot.sandbox.unsettled import Unsettled
from bot.sandbox.workspace import Message, View, Workspace

CONTROL = re.compile(r"<([^<>\n]+)>")
EMOJI = re.compile(r":[a-z0-9_+'-]+:")
INTERACTIVE = frozenset({"button", "confirm", "overflow", "options", "placeholder", "workflow_button"})


@dataclass(frozen=True)
class ShownTable:
    """A table as people see it: the header row, if the first row is one, and the other rows."""

    header: tuple[str, ...] | None
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Reader:
    """Reads messages and views with the eyes of a person."""

    workspace: Workspace
    unsettled: Unsettled

    def read(self, shown: Message | View) -> str:
        """All text that is shown, one text object a line; blocks replace `text` as in Slack."""
        nodes: list[Any] = []
        if isinstance(shown, View):
            nodes = [shown.body.get("title", {}), shown.blocks, shown.body.get("submit", {})]
        else:
            nodes = [shown.blocks or {"type": "mrkdwn", "text": shown.text}, shown.attachments]
        return "\n".join(line for node in nodes for line in self._lines(node))

    def tables(self, shown: Message | View) -> list[ShownTable]:
        """The tables that are shown."""
        found = _blocks_of_type(_all_blocks(shown), {"table", "data_table"})
        tables = []
        for block in found:
            rows = tuple(tuple(" ".join(self._lines(cell)) for cell in row) for row in block["rows"])
            headed = self.unsettled.table_first_row_is_header or block["type"] == "data_table"
            tables.append(ShownTable(rows[0] if headed else None, rows[1:] if headed else rows))
        return tables

    def buttons(self, shown: Message | View, user_id: str) -> list[str]:
        """The labels of the buttons this person sees, in reading order."""
        placed = placed_elements(_all_blocks(shown))
        everybody = self.unsettled.old_clients_ignore_visible_to
        return [
            self.plain(p.element["text"])
            for p in placed
            if p.element["type"] == "button" and (everybody or p.seen_by(user_id))
        ]

    def plain(self, text: Json) -> str:
        """A plain_text object as it is shown."""
        shown = str(text["text"])
        if self.unsettled.plain_text_decodes_entities:
            shown = decode(shown)
        if text.get("emoji", self.unsettled.plain_text_renders_emoji):
            shown = EMOJI.sub(
                lambda m: f"\N{LEFT-POINTING ANGLE BRACKET}{m[0][1:-1]}\N{RIGHT-POINTING ANGLE BRACKET}",
                shown,
            )
        return shown

    def markup(self, text: str) -> str:
        """A mrkdwn text as it is shown: names for ids, labels for links, entities decoded."""
        return decode(CONTROL.sub(lambda match: self._resolved(match[1]), text))

    def _lines(self, node: Any) -> Iterator[str]:
        if isinstance(node, list):
            for item in node:
                yield from self._lines(item)
        elif isinstance(node, dict) and node.get("type") not in INTERACTIVE:
            yield from self._lines_of_object(node)

    def _lines_of_object(self, node: Json) -> Iterator[str]:
        kind, text = node.get("type"), node.get("text")
        if kind == "plain_text":
            yield self.plain(node)
        elif kind == "rich_text_section" or kind == "rich_text_preformatted" or kind == "rich_text_quote":
            yield "".join(self._inline(e) for e in node["elements"])
        elif kind == "raw_number":
            yield str(text or node["value"])
        elif isinstance(text, str):
            yield text if kind in {"raw_text", "markdown"} else self.markup(text)
        else:
            for name, value in node.items():
                if name not in INTERACTIVE:
                    yield from self._lines(value)

    def _inline(self, element: Json) -> str:
        kind = element["type"]
        if kind == "link":
            return str(element.get("text") or element["url"])
        if kind in {"user", "usergroup", "channel"}:
            sigil = {"user": "@", "usergroup": "!subteam^", "channel": "#"}[kind]
            return self._resolved(sigil + str(element[f"{kind}_id"]))
        words = (element.get(name) for name in ("text", "name", "range", "fallback"))
        return str(next((word for word in words if word), ""))

    def _resolved(self, control: str) -> str:
        target, _, label = control.partition("|")
        workspace = self.workspace
        if target.startswith("@"):
            user = workspace.users.get(target[1:])
            return "@" + (user.real_name if user else label or target[1:])
        if target.startswith("#"):
            channel = workspace.channels.get(target[1:])
            return "#" + (channel.name if channel else label or target[1:])
        if target.startswith("!subteam^"):
            group = workspace.groups.get(target[9:])
            return "@" + (group.handle if group else label or target[9:])
        if target.startswith("!date"):
            return label
        return "@" + target[1:] if target.startswith("!") else label or target


def decode(text: str) -> str:
    """Slack's three entities (docs.slack.dev/messaging/formatting-message-text)."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def pings_of(content: Any, unsettled: Unsettled) -> frozenset[str]:
    """Whom unescaped markup and rich text mention: ids, and "channel", "here", "everyone"."""
    return frozenset(_pings(content, unsettled))


def _pings(node: Any, unsettled: Unsettled) -> Iterator[str]:
    if isinstance(node, str):
        yield from _pings_of_text(node)
    elif isinstance(node, list):
        for item in node:
            yield from _pings(item, unsettled)
    elif isinstance(node, dict):
        yield from _pings_of_object(node, unsettled)


def _pings_of_object(node: Json, unsettled: Unsettled) -> Iterator[str]:
    kind = node.get("type")
    if kind in {"user", "usergroup"}:
        yield str(node[f"{kind}_id"])
    elif kind == "broadcast":
        yield str(node["range"])
    elif kind == "mrkdwn":
        if not (node.get("verbatim") and unsettled.verbatim_is_an_escape):
            yield from _pings_of_text(str(node["text"]))
    elif kind not in {"plain_text", "raw_text", "raw_number", "text", "markdown"}:
        for name, value in node.items():
            # of bare strings only an attachment's old-style texts are parsed
            if not isinstance(value, str) or (kind is None and name in {"text", "pretext"}):
                yield from _pings(value, unsettled)


def _pings_of_text(text: str) -> Iterator[str]:
    for match in CONTROL.finditer(text):
        target = match[1].split("|")[0]
        if target.startswith("!subteam^"):
            yield target[9:]
        elif target in {"!channel", "!here", "!everyone"} or target.startswith("@"):
            yield target[1:]


def _all_blocks(shown: Message | View) -> list[Json]:
    attached = shown.attachments if isinstance(shown, Message) else []
    return [*shown.blocks, *(b for a in attached for b in a.get("blocks", []))]


def _blocks_of_type(blocks: list[Json], kinds: set[str]) -> Iterator[Json]:
    for block in blocks:
        if block["type"] in kinds:
            yield block
        yield from _blocks_of_type(block.get("child_blocks", []), kinds)


def elements_shown(shown: Message | View, user_id: str, unsettled: Unsettled) -> list[Any]:
    """The interactive elements this person sees, with their blocks."""
    placed = list(placed_elements(_all_blocks(shown)))
    return placed if unsettled.old_clients_ignore_visible_to else [p for p in placed if p.seen_by(user_id)]
