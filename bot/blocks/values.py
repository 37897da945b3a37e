"""Values of facts, previews and inputs as short texts in the reader's way of writing numbers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from babel.numbers import format_decimal

from agent.money import Money, is_money
from bot.blocks.characters import tidy_line
from bot.blocks.limits import LINE, NAME
from bot.texts import Texts

NOTHING = "—"
_SHOWN_ITEMS = 5
_MOST_PARTS = 50


def value_text(value: Any, locale: str) -> str:
    """One value of JSON as one line: amounts by `locale`, numbers as they are, nothing as a dash.

    A number is not grouped here: it may be a year or an id.
    """
    match value:
        case _ if value in (None, "", [], {}):
            return NOTHING
        case str():
            return tidy_line(value, LINE) or NOTHING
        case bool():
            return str(value).lower()
        case dict() if is_money(value):
            return amount_text(value, locale)
        case list() if all(isinstance(part, str | int) for part in value):
            # no more than a line shows
            return ", ".join(value_text(part, locale) for part in value[:_MOST_PARTS])
        case _:
            return json.dumps(value, ensure_ascii=False)


def amount_text(amount: Mapping[str, str], locale: str) -> str:
    """The JSON form of Money as people of `locale` write it."""
    return Money.from_json(amount).text(locale)


def number_text(n: float, locale: str) -> str:
    """A number as people of `locale` write it."""
    written: str = format_decimal(n, locale=locale)
    return written


def facts_text(facts: Mapping[str, Any], texts: Texts) -> str:
    """The count and the amount that code measured."""
    count = facts["count"]
    parts = [texts.card.count.of(count, texts.locale).format(n=number_text(count, texts.locale))]
    if facts.get("amount"):
        parts.append(amount_text(facts["amount"], texts.locale))
    return texts.common.separator.join(parts)


def named_values(values: Mapping[str, Any] | None, texts: Texts) -> str:
    """Named values, like those of a precondition: "failed payments = 38"."""
    return ", ".join(
        texts.common.named_value.format(name=tidy_line(name, LINE), value=value_text(value, texts.locale))
        for name, value in (values or {}).items()
    )


def items_text(items: Iterable[str], texts: Texts) -> str:
    """The first few ids and how many more there are."""
    ids = tuple(items)
    most = len(ids) if len(ids) <= _SHOWN_ITEMS + 1 else _SHOWN_ITEMS
    shown = ", ".join(tidy_line(item, NAME) for item in ids[:most])
    if most == len(ids):
        return shown
    return texts.common.and_more.format(shown=shown, n=number_text(len(ids) - _SHOWN_ITEMS, texts.locale))


def difference_text(name: str, was: Any, now: Any, texts: Texts) -> str:
    """One value before and after: "failed payments: 38 → 41"."""
    return texts.common.moved.format(
        name=tidy_line(name, LINE), was=value_text(was, texts.locale), now=value_text(now, texts.locale)
    )


def input_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], titles: Mapping[str, str], texts: Texts
) -> list[str]:
    """What an edit changed in an input, one line a field; a list as what was added and left out."""
    return [
        _change(titles.get(name, name), before.get(name), after.get(name), texts)
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def list_counts(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[int, int]:
    """How many entries the lists of `after` add to those of `before`, and how many they leave out."""
    pairs = [(before.get(name), now) for name, now in after.items()]
    lists = [(set(was), set(now)) for was, now in pairs if _is_list_of_ids(was) and _is_list_of_ids(now)]
    return sum(len(now - was) for was, now in lists), sum(len(was - now) for was, now in lists)


def _change(title: str, was: Any, now: Any, texts: Texts) -> str:
    if _is_list_of_ids(was) and _is_list_of_ids(now):
        return f"{title}: {len(was)} → {len(now)}, {list_difference(was, now, texts)}"
    return difference_text(title, was, now, texts)


def list_difference(was: Sequence[str], now: Sequence[str], texts: Texts) -> str:
    """What `now` adds to `was` and leaves out of it, in words."""
    old, new = set(was), set(now)
    added, left_out = [i for i in now if i not in old], [i for i in was if i not in new]
    parts = [
        _with_items(plural.of(len(ids), texts.locale), ids, texts)
        for plural, ids in ((texts.card.added, added), (texts.card.left_out, left_out))
        if ids
    ]
    return "; ".join(parts) or texts.card.same_items


def _with_items(template: str, ids: Sequence[str], texts: Texts) -> str:
    return template.format(n=number_text(len(ids), texts.locale), items=items_text(ids, texts))


def _is_list_of_ids(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)
