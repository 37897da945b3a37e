"""Why something did not go as it was asked, in the words of the reader's language."""

from collections.abc import Mapping
from typing import Any

from agent.why import Part, Why, followed
from bot.blocks.values import number_text
from bot.texts import Texts
from bot.texts.words import Plural


def why_text(why: Why, texts: Texts) -> str:
    """The sentence for a reason, and those after it."""
    template: str | Plural = vars(texts.why)[why.code]
    if isinstance(template, Plural):
        n = why.parts["n"]
        template = template.of(n if isinstance(n, int) else 0, texts.locale)
    parts = {name: _part(part, texts) for name, part in why.parts.items()}
    return followed(template.format(**parts), [why_text(one, texts) for one in why.more])


def stored_why(stored: Mapping[str, Any], texts: Texts, *, otherwise: str = "text") -> str:
    """The sentence for the reason in what was stored; "" if nobody gave any.

    Where another release stored it, or nothing but a text, it is that text, which is under `otherwise`.
    """
    why = Why.from_json(stored.get("why"))
    return why_text(why, texts) if why is not None else stored.get(otherwise) or ""


def _part(part: Part, texts: Texts) -> str:
    match part:
        case Why():
            return why_text(part, texts)
        case str():
            return part
        case _:
            return number_text(part, texts.locale)
