"""The documented limits of blocks: for each row the largest thing Slack takes and the smallest it refuses."""

from dataclasses import dataclass, field
from typing import Any

from tests.sandbox import parts as p

Json = dict[str, Any]
MESSAGE, MODAL, HOME = "message", "modal", "home"


@dataclass(frozen=True)
class Limit:
    """`good` passes and `bad` is refused with a problem at `pointer` (below /blocks or /view)."""

    row: str
    name: str
    good: list[Json]
    bad: list[Json]
    pointer: str
    surface: str = MESSAGE
    frame_good: Json = field(default_factory=dict)
    frame_bad: Json = field(default_factory=dict)


def text_limit(row: str, most: int, make: Any, pointer: str, surface: str = MESSAGE) -> list[Limit]:
    """A text of `most` characters against one more, and one character against none."""
    full = Limit(row, f"{row}_{most}", [make("x" * most)], [make("x" * (most + 1))], pointer, surface)
    return [full, Limit(row, f"{row}_empty", [make("x")], [make("")], pointer, surface)]


def count_limit(
    row: str, most: int, make: Any, pointer: str, surface: str = MESSAGE, least: int = 1
) -> list[Limit]:
    """`most` items against one more, and `least` against one less."""
    full = Limit(row, f"{row}_{most}", [make(most)], [make(most + 1)], pointer, surface)
    return [full, Limit(row, f"{row}_least", [make(least)], [make(least - 1)], pointer, surface)]


def _fields(text: str) -> Json:
    return {"type": "section", "fields": [p.mrkdwn(text)]}


def _confirm(**texts: str) -> Json:
    return p.actions(p.button(confirm=p.confirm(**texts)))


def _grouped(**group: Any) -> Json:
    chosen = {"label": p.plain(), "options": p.options(1), **group}
    return p.actions(p.select(option_groups=[chosen]))


def _feedback(text: str) -> Json:
    one = {"text": p.plain(text), "value": "v"}
    element = {"type": "feedback_buttons", "positive_button": one, "negative_button": one}
    return {"type": "context_actions", "elements": [element]}


def icons(count: int) -> Json:
    icon = {"type": "icon_button", "icon": "trash", "text": p.plain()}
    return {"type": "context_actions", "elements": [icon] * count}


def _image(**more: Any) -> Json:
    return {"type": "image", "image_url": "https://x.example/x.png", "alt_text": "x", **more}


def _video(**more: Any) -> Json:
    address = "https://x.example/v"
    return {
        "type": "video",
        "title": p.plain(),
        "alt_text": "x",
        "video_url": address,
        "thumbnail_url": address,
        **more,
    }


ELEMENT = "/blocks/0/elements/0"
TEXTS = [
    *text_limit("button_text", 75, lambda t: p.actions(p.button(t)), f"{ELEMENT}/text/text"),
    *text_limit("button_value", 2_000, lambda t: p.actions(p.button(value=t)), f"{ELEMENT}/value"),
    *text_limit("button_url", 3_000, lambda t: p.actions(p.button(url=t)), f"{ELEMENT}/url"),
    *text_limit(
        "accessibility_label",
        75,
        lambda t: p.actions(p.button(accessibility_label=t)),
        f"{ELEMENT}/accessibility_label",
    ),
    *text_limit(
        "agent_prompt", 4_000, lambda t: p.actions(p.button(agent_prompt=t)), f"{ELEMENT}/agent_prompt"
    ),
    *text_limit("action_id", 255, lambda t: p.actions(p.button(action_id=t)), f"{ELEMENT}/action_id"),
    *text_limit("block_id", 255, lambda t: p.section(block_id=t), "/blocks/0/block_id"),
    *text_limit("section_text", 3_000, p.section, "/blocks/0/text/text"),
    *text_limit("section_field", 2_000, _fields, "/blocks/0/fields/0/text"),
    *text_limit("header_text", 150, p.header, "/blocks/0/text/text"),
    *text_limit("context_text", 3_000, lambda t: p.context(p.plain(t)), f"{ELEMENT}/text"),
    *text_limit("input_label", 2_000, lambda t: p.field(label=t), "/blocks/0/label/text"),
    *text_limit("input_hint", 2_000, lambda t: p.field(hint=p.plain(t)), "/blocks/0/hint/text"),
    *text_limit(
        "placeholder",
        150,
        lambda t: p.field(p.text_input(placeholder=p.plain(t))),
        "/blocks/0/element/placeholder/text",
    ),
    *text_limit(
        "option_text",
        75,
        lambda t: p.actions(p.select(p.option(t))),
        f"{ELEMENT}/options/0/text/text",
    ),
    *text_limit(
        "option_value",
        150,
        lambda t: p.actions(p.select(p.option(value=t))),
        f"{ELEMENT}/options/0/value",
    ),
    *text_limit(
        "option_group_label",
        75,
        lambda t: _grouped(label=p.plain(t)),
        f"{ELEMENT}/option_groups/0/label/text",
    ),
    *text_limit("confirm_title", 100, lambda t: _confirm(title=t), f"{ELEMENT}/confirm/title/text"),
    *text_limit("confirm_text", 300, lambda t: _confirm(text=t), f"{ELEMENT}/confirm/text/text"),
    *text_limit("confirm_button", 30, lambda t: _confirm(yes=t), f"{ELEMENT}/confirm/confirm/text"),
    *text_limit("confirm_button", 30, lambda t: _confirm(no=t), f"{ELEMENT}/confirm/deny/text"),
    *text_limit("alert_text", 200, p.alert, "/blocks/0/text/text", MODAL),
    *text_limit("card_title", 150, lambda t: p.card(title=p.plain(t)), "/blocks/0/title/text"),
    *text_limit(
        "card_title", 150, lambda t: p.card(body=p.plain(), subtitle=p.plain(t)), "/blocks/0/subtitle"
    ),
    *text_limit("card_body", 200, lambda t: p.card(body=p.plain(t)), "/blocks/0/body/text"),
    *text_limit("container_title", 150, lambda t: p.container(title=p.plain(t)), "/blocks/0/title/text"),
    *text_limit(
        "container_title", 150, lambda t: p.container(subtitle=p.plain(t)), "/blocks/0/subtitle/text"
    ),
    *text_limit("feedback_text", 75, _feedback, f"{ELEMENT}/positive_button/text/text"),
    *text_limit(
        "option_description",
        75,
        lambda t: p.actions(p.select(p.option(description=p.plain(t)))),
        f"{ELEMENT}/options/0/description",
    ),
    *text_limit("image_url", 3_000, lambda t: _image(image_url=t), "/blocks/0/image_url"),
    *text_limit("alt_text", 2_000, lambda t: _image(alt_text=t), "/blocks/0/alt_text"),
    *text_limit("image_title", 2_000, lambda t: _image(title=p.plain(t)), "/blocks/0/title/text"),
    *text_limit("video_title", 199, lambda t: _video(title=p.plain(t)), "/blocks/0/title/text"),
    *text_limit("video_author", 49, lambda t: _video(author_name=t), "/blocks/0/author_name"),
    *text_limit("markdown_total", 12_000, p.markdown, "/blocks/0/text"),
]
COUNTS = [
    *count_limit(
        "section_fields", 10, lambda n: {**_fields("x"), "fields": [p.plain()] * n}, "/blocks/0/fields"
    ),
    *count_limit("actions_elements", 25, lambda n: p.actions(*[p.button()] * n), "/blocks/0/elements"),
    *count_limit("context_elements", 10, lambda n: p.context(*[p.plain()] * n), "/blocks/0/elements"),
    *count_limit("context_actions_elements", 5, icons, "/blocks/0/elements"),
    *count_limit("options", 100, lambda n: p.actions({**p.select(), "options": p.options(n)}), "/options"),
    *count_limit(
        "option_groups",
        100,
        lambda n: p.actions(p.select(option_groups=[{"label": p.plain(), "options": p.options(1)}] * n)),
        f"{ELEMENT}/option_groups",
    ),
    *count_limit(
        "overflow_options",
        5,
        lambda n: p.actions({"type": "overflow", "options": p.options(n)}),
        f"{ELEMENT}/options",
    ),
    *count_limit(
        "input_length", 3_000, lambda n: p.field(p.text_input(max_length=n)), "/blocks/0/element/max_length"
    ),
    *count_limit("carousel_cards", 10, p.carousel, "/blocks/0/elements"),
    *count_limit(
        "container_children",
        10,
        lambda n: {**p.container(), "child_blocks": [p.section()] * n},
        "/blocks/0/child_blocks",
    ),
    *count_limit("table_rows", 100, p.table, "/blocks/0/rows"),
    *count_limit("table_columns", 20, lambda n: p.table(columns=n), "/blocks/0/rows/0"),
    *count_limit("data_table_rows", 101, p.data_table, "/blocks/0/rows", least=2),
    *count_limit("data_table_page", 100, lambda n: p.data_table(page_size=n), "/blocks/0/page_size"),
]
