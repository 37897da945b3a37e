"""Which block, and which input, passes on which surface."""

from typing import Any

from tests.sandbox import parts as p
from tests.sandbox.block_cases import HOME, MESSAGE, MODAL, icons

Json = dict[str, Any]

# block or input → the surfaces it passes on
EVERYWHERE, ONLY_MESSAGE, ONLY_MODAL = {MESSAGE, MODAL, HOME}, {MESSAGE}, {MODAL}
SURFACES: list[tuple[str, Json, set[str]]] = [
    ("actions", p.actions(p.button()), EVERYWHERE),
    ("section", p.section(), EVERYWHERE),
    ("header", p.header(), EVERYWHERE),
    ("divider", {"type": "divider"}, EVERYWHERE),
    ("context", p.context(p.plain()), EVERYWHERE),
    ("image", {"type": "image", "image_url": "https://x.example/x.png", "alt_text": "x"}, EVERYWHERE),
    ("rich_text", p.rich_text(), EVERYWHERE),
    ("input", p.field(), EVERYWHERE),
    ("alert", p.alert(), ONLY_MODAL),
    ("card", p.card(), {MESSAGE, HOME}),
    ("carousel", p.carousel(), {MESSAGE, HOME}),
    ("container", p.container(), ONLY_MESSAGE),
    ("table", p.table(), ONLY_MESSAGE),
    ("data_table", p.data_table(), ONLY_MESSAGE),
    ("markdown", p.markdown(), ONLY_MESSAGE),
    ("task_card", p.task(), ONLY_MESSAGE),
    ("plan", {"type": "plan", "title": "x", "tasks": [p.task()]}, ONLY_MESSAGE),
    ("context_actions", icons(1), ONLY_MESSAGE),
    ("number_input", p.field(p.number_input()), ONLY_MODAL),
    ("email_text_input", p.field({"type": "email_text_input"}), ONLY_MODAL),
    ("url_text_input", p.field({"type": "url_text_input"}), ONLY_MODAL),
    ("file_input", p.field({"type": "file_input"}), ONLY_MODAL),
    ("rich_text_input", p.field({"type": "rich_text_input"}), {MODAL, HOME}),
]
