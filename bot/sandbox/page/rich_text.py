"""Rich text blocks as HTML (docs.slack.dev/reference/block-kit/blocks/rich-text-block)."""

from bot.sandbox.errors import Json
from bot.sandbox.page.dates import date_token
from bot.sandbox.page.html import Child, Html, joined, tag, text
from bot.sandbox.page.sight import Sight

BREAK = tag("br")
STYLES = (("code", "code"), ("bold", "b"), ("italic", "i"), ("strike", "s"))


def rich_text(block: Json, sight: Sight) -> Html:
    """A rich_text block."""
    return text(_part(part, sight) for part in block["elements"])


def _part(part: Json, sight: Sight) -> Html:
    kind = part["type"]
    if kind == "rich_text_list":
        items = [tag("li", _inside(item, sight)) for item in part["elements"]]
        name = "ol" if part.get("style") == "ordered" else "ul"
        return tag(name, items, class_=f"indent-{min(int(part.get('indent', 0)), 8)}")
    name = {"rich_text_preformatted": "pre", "rich_text_quote": "blockquote"}.get(kind, "p")
    return tag(name, _inside(part, sight))


def _inside(part: Json, sight: Sight) -> Html:
    return text(_styled(element, sight) for element in part.get("elements", []))


def _styled(element: Json, sight: Sight) -> Html:
    shown = text(_shown(element, sight))
    for style, name in STYLES:
        if element.get("style", {}).get(style):
            shown = tag(name, shown)
    return shown


def _shown(element: Json, sight: Sight) -> Child:
    match element["type"]:
        case "text":
            return joined(str(element["text"]).split("\n"), BREAK)
        case "link":
            return sight.link(str(element["url"]), str(element.get("text") or ""))
        case "user":
            return sight.mention(str(element["user_id"]))
        case "channel":
            return sight.channel(str(element["channel_id"]))
        case "usergroup":
            return sight.group(str(element["usergroup_id"]))
        case "broadcast":
            return tag("span", f"@{element['range']}", class_="mention")
        case "emoji":
            return _emoji(element)
        case "date":
            fallback = str(element.get("fallback") or element["timestamp"])
            now = sight.workspace.clock.now()
            return date_token(str(element["timestamp"]), str(element["format"]), fallback, sight.zone, now)
        case "color":
            return tag("code", str(element["value"]))
        case other:
            return f"[{other}]"


def _emoji(element: Json) -> str:
    try:
        return "".join(chr(int(point, 16)) for point in str(element["unicode"]).split("-"))
    except (KeyError, ValueError, OverflowError):
        return f":{element['name']}:"
