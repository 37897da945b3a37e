"""Block Kit as HTML (docs.slack.dev/reference/block-kit/blocks)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from bot.sandbox.elements import Placed, placed_elements
from bot.sandbox.errors import Json
from bot.sandbox.page.elements import Surface, element, field_id
from bot.sandbox.page.html import Child, Html, joined, tag, text
from bot.sandbox.page.mrkdwn import mrkdwn
from bot.sandbox.page.rich_text import BREAK, rich_text
from bot.sandbox.workspace import Message, View

WARNS = "⚠"
SHORT = 16  # characters of a cell that is never broken into lines, such as a date
MANY_COLUMNS = 5  # more than a phone shows as they are

Writer = Callable[[Json, Surface], Html]


def blocks(shown: list[Json], surface: Surface) -> Html:
    """The blocks, one under the other; what a window warns of is read out."""
    return text(_block(block, surface, at) for at, block in enumerate(shown))


def _block(block: Json, surface: Surface, at: int) -> Html:
    written = WRITERS.get(block["type"], _words)(block, surface)
    view = surface.shown
    alert: dict[str, str] = {}
    if isinstance(view, View) and view.type == "modal" and _plain(block, surface).startswith(WARNS):
        # an element of its own in each version of the window: one that only changes may stay unheard
        alert = {"role": "alert", "id": f"alert-{view.id}-{view.hash}-{at}"}
    return tag("div", written, class_=f"block {block['type']}", **alert)


def words(made: Json, surface: Surface) -> Html:
    """A text object."""
    if made["type"] == "mrkdwn":
        return mrkdwn(str(made["text"]), surface.sight)
    return joined(surface.sight.reader.plain(made).split("\n"), BREAK)


def _header(block: Json, surface: Surface) -> Html:
    return tag("h3", words(block["text"], surface))


def _section(block: Json, surface: Surface) -> Html:
    body: list[Child] = []
    if "text" in block:
        body.append(tag("div", words(block["text"], surface)))
    if "fields" in block:
        body.append(tag("ul", [tag("li", words(f, surface)) for f in block["fields"]], class_="fields"))
    accessory = block.get("accessory")
    if accessory is None:
        return text(body)
    return text(tag("div", body, class_="beside"), _any(block, accessory, surface))


def _context(block: Json, surface: Surface) -> Html:
    return text(tag("span", _any(block, one, surface)) for one in block["elements"])


def _actions(block: Json, surface: Surface) -> Html:
    return text(_any(block, one, surface) for one in block["elements"])


def _any(block: Json, made: Json, surface: Surface) -> Html:
    if made["type"] in {"plain_text", "mrkdwn"}:
        return words(made, surface)
    if made["type"] == "image":
        return _image(made, surface)
    return element(Placed(block, made), surface) if "action_id" in made else Html("")


def _divider(block: Json, surface: Surface) -> Html:
    return tag("hr")


def _image(block: Json, surface: Surface) -> Html:
    # nothing is fetched from elsewhere: the words that describe it stand for the picture
    url = str(block.get("image_url") or "")
    return tag("span", "🖼 ", surface.sight.link(url, str(block["alt_text"])), class_="picture")


def _rich_text(block: Json, surface: Surface) -> Html:
    return rich_text(block, surface.sight)


def _table(block: Json, surface: Surface) -> Html:
    settings = block.get("column_settings") or []
    headed = surface.sight.unsettled.table_first_row_is_header or block["type"] == "data_table"
    caption = tag("caption", str(block["caption"])) if block.get("caption") else None
    rows = [_row(row, settings, surface, head=headed and not at) for at, row in enumerate(block["rows"])]
    head = tag("thead", rows[0]) if headed else None
    wide = "wide" if max(map(len, block["rows"])) >= MANY_COLUMNS else None
    return tag("table", caption, head, tag("tbody", rows[1:] if headed else rows), class_=wide)


def _row(row: list[Json], settings: list[Json], surface: Surface, *, head: bool) -> Html:
    cells = []
    for at, cell in enumerate(row):
        look = (settings[at] if at < len(settings) else None) or {}
        name, scope = ("th", "col") if head else ("td", None)
        shown = _cell(cell, surface)
        classes = [look.get("align"), "short" if isinstance(shown, str) and len(shown) <= SHORT else None]
        class_ = " ".join(filter(None, classes)) or None
        cells.append(tag(name, shown, class_=class_, scope=scope))
    return tag("tr", cells)


def _cell(cell: Json, surface: Surface) -> Child:
    if cell["type"] == "rich_text":
        return rich_text(cell, surface.sight)
    return str(cell.get("text") or cell.get("value") or "")


def _input(block: Json, surface: Surface) -> Html:
    placed = Placed(block, block["element"])
    base = field_id(placed)
    error = surface.errors().get(block["block_id"])
    hint = block.get("hint")
    ids = [f"{base}-{what}" for what, there in (("error", error), ("hint", hint)) if there]
    label = [words(block["label"], surface), _optional(block)]
    return text(
        tag("label", label, for_=base),
        element(placed, surface, described_by=" ".join(ids)),
        tag("p", error, id=f"{base}-error", class_="error", role="alert") if error else None,
        tag("p", words(hint, surface), id=f"{base}-hint", class_="hint") if hint else None,
    )


def _optional(block: Json) -> Html | None:
    return tag("small", " (optional)") if block.get("optional") else None


def _markdown(block: Json, surface: Surface) -> Html:
    return tag("div", str(block["text"]), class_="as-written")


def _words(block: Json, surface: Surface) -> Html:
    """The words of a block of another kind, one text a line, then what can be pressed in it."""
    read = _plain(block, surface)
    pressed = [element(placed, surface) for placed in placed_elements([block])]
    return text(joined(read.split("\n"), BREAK), tag("div", pressed) if pressed else None)


def _plain(block: Json, surface: Surface) -> str:
    return surface.sight.reader.read(Message("", "", "", "", blocks=[block]))


WRITERS: Mapping[str, Writer] = MappingProxyType(
    {
        "header": _header,
        "section": _section,
        "context": _context,
        "actions": _actions,
        "context_actions": _actions,
        "divider": _divider,
        "image": _image,
        "rich_text": _rich_text,
        "table": _table,
        "data_table": _table,
        "input": _input,
        "markdown": _markdown,
    }
)
