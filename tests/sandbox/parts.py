"""Smallest valid pieces of Block Kit, to be varied by the tables."""

from typing import Any

Json = dict[str, Any]


def plain(text: str = "x", **more: Any) -> Json:
    return {"type": "plain_text", "text": text, **more}


def mrkdwn(text: str = "x", **more: Any) -> Json:
    return {"type": "mrkdwn", "text": text, **more}


def section(text: str = "x", **more: Any) -> Json:
    return {"type": "section", "text": mrkdwn(text), **more}


def button(text: str = "Go", **more: Any) -> Json:
    return {"type": "button", "text": plain(text), **more}


def actions(*elements: Json, **more: Any) -> Json:
    return {"type": "actions", "elements": list(elements), **more}


def context(*elements: Json) -> Json:
    return {"type": "context", "elements": list(elements)}


def header(text: str = "x") -> Json:
    return {"type": "header", "text": plain(text)}


def field(element: Json | None = None, label: str = "Field", **more: Any) -> Json:
    return {"type": "input", "label": plain(label), "element": element or text_input(), **more}


def text_input(**more: Any) -> Json:
    return {"type": "plain_text_input", "action_id": "typed", **more}


def number_input(**more: Any) -> Json:
    return {"type": "number_input", "is_decimal_allowed": False, **more}


def option(text: str = "one", value: str = "1", **more: Any) -> Json:
    return {"text": plain(text), "value": value, **more}


def options(count: int) -> list[Json]:
    return [option(f"o{i}", str(i)) for i in range(count)]


def select(*choices: Json, **more: Any) -> Json:
    return {"type": "static_select", **({"options": list(choices)} if choices else {}), **more}


def confirm(title: str = "Sure?", text: str = "x", yes: str = "Yes", no: str = "No") -> Json:
    return {"title": plain(title), "text": plain(text), "confirm": plain(yes), "deny": plain(no)}


def rich_text(text: str = "x") -> Json:
    part = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [part]}


def cell(text: str = "x") -> Json:
    return {"type": "raw_text", "text": text}


def table(rows: int = 1, columns: int = 1, **more: Any) -> Json:
    return {"type": "table", "rows": [[cell()] * columns for _ in range(rows)], **more}


def data_table(rows: int = 2, **more: Any) -> Json:
    return {"type": "data_table", "caption": "x", "rows": [[cell()] for _ in range(rows)], **more}


def card(**more: Any) -> Json:
    return {"type": "card", **(more or {"title": plain()})}


def carousel(cards: int = 1) -> Json:
    return {"type": "carousel", "elements": [card() for _ in range(cards)]}


def container(*children: Json, **more: Any) -> Json:
    return {"type": "container", "title": plain(), "child_blocks": list(children) or [section()], **more}


def alert(text: str = "x", **more: Any) -> Json:
    return {"type": "alert", "text": plain(text), **more}


def markdown(text: str = "x", **more: Any) -> Json:
    return {"type": "markdown", "text": text, **more}


def task(**more: Any) -> Json:
    return {"type": "task_card", "task_id": "1", "title": "x", "status": "pending", **more}


def modal(*blocks: Json, **more: Any) -> Json:
    return {"type": "modal", "title": plain("Edit"), "submit": plain("Send"), "blocks": list(blocks), **more}


def home(*blocks: Json, **more: Any) -> Json:
    return {"type": "home", "blocks": list(blocks), **more}
