"""Freezes what a person will see of a call, hashes it, and says later what has moved since."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel

from agent.canonical import Json, canonical, digest, plain
from agent.facts import Facts
from agent.legible import all_visible, cut, is_storable, line
from agent.money import Money
from agent.sample import MOST_ROWS, Cell, Preview, pick
from agent.schema import input_json, schema_hash
from agent.tool import Tool
from store.records import Measured

TITLE_LIMIT = 150  # a header block: https://docs.slack.dev/reference/block-kit/blocks/header-block
LINE_LIMIT = 300
IMPACT_LIMIT = 2800  # all lines fit one section of 3,000 characters
MOST_LINES = 20
LONGEST_ITEM = 500  # characters: with its effect it is a key of an index, whose entries have 2,704 bytes
MOST_COLUMNS = 8
COLUMN_LIMIT = 40
CELL_LIMIT = 80


@dataclass(frozen=True)
class Moved:
    """One thing that is not as it was shown.

    `kind` says where `name` comes from: precondition, count, amount, fact (a named one) or items. Of items
    `was` and `now` are how many there are, and only they say how many were `added` and are `gone`.
    """

    kind: Literal["precondition", "count", "amount", "fact", "items"]
    name: str
    was: Json
    now: Json
    added: int | None = None
    gone: int | None = None

    def to_json(self) -> dict[str, Json]:
        """Give {"kind", "name", "was", "is"}, of items also {"added", "gone"}."""
        told: dict[str, Json] = {"kind": self.kind, "name": self.name, "was": self.was, "is": self.now}
        if self.kind == "items":
            told |= {"added": self.added, "gone": self.gone}
        return told


def freeze(
    tool: Tool,
    input: BaseModel,
    facts: Facts,
    preview: Preview | None,
    precondition: Mapping[str, Any],
    *,
    replaced: Iterable[str] | None = None,
    kept_input: dict[str, Json] | None = None,
) -> Measured:
    """Give everything that is kept and shown of a call, with its hashes.

    `kept_input` is the input as it was before any function of the tool had it; None: as it is now.

    Without a preview the exact input and the named facts are shown. `replaced` are the items of the approval
    that this one replaces: rows of items it did not have are shown first. The shown preview has, besides the
    tool's parts, "change" ({"added", "left_out"} in items, None if it replaces nothing), "added" (the
    positions of added rows), "largest" (how many of the rows after these are the largest) and "hidden" (how
    many lines, columns and rows are not shown).
    Raises TypeError or ValueError for a value that cannot be kept.
    """
    for item in facts.items:
        if not is_storable(item):
            raise ValueError(f"the item {item!r} holds a character that cannot be stored")
        if len(item) > LONGEST_ITEM:
            raise ValueError(
                f"the item {item[:40]!r}… has {len(item)} characters; an id may have {LONGEST_ITEM} at most"
            )
    kept_input = input_json(input) if kept_input is None else kept_input
    kept_facts = {**facts.to_json(), "more": all_visible(facts.to_json()["more"])}
    kept_precondition = all_visible(plain(dict(precondition)))
    change = None if replaced is None else changes(replaced, facts.items)
    shown = _shown(tool, preview or _default_preview(tool, kept_input, facts), change)
    return Measured(
        input=kept_input,
        input_hash=digest(kept_input),
        facts=kept_facts,
        items=facts.items,
        items_digest=facts.items_digest,
        precondition=kept_precondition,
        preview=shown,
        preview_hash=_preview_hash(shown, kept_facts, kept_precondition),
        schema_hash=schema_hash(tool),
    )


def verify(measured: Measured) -> bool:
    """Say whether every hash still fits what it was made from: input, items, preview, facts, precondition."""
    return (
        digest(measured.input) == measured.input_hash
        and digest(measured.items) == measured.items_digest
        and list(measured.facts["items"]) == list(measured.items)
        and _preview_hash(measured.preview, measured.facts, measured.precondition) == measured.preview_hash
    )


def moved(shown: Measured, now: Measured) -> list[Moved]:
    """Give what differs between what was shown and what is measured now; empty if nothing moved."""
    found = [
        Moved("precondition", name, was, is_now)
        for name, was, is_now in _differences(shown.precondition, now.precondition)
    ]
    counts = {"count": shown.facts["count"]}, {"count": now.facts["count"]}
    amounts = {"amount": shown.facts["amount"]}, {"amount": now.facts["amount"]}
    found += [Moved("count", *difference) for difference in _differences(*counts)]
    found += [Moved("amount", *difference) for difference in _differences(*amounts)]
    found += [Moved("fact", *d) for d in _differences(shown.facts["more"], now.facts["more"])]
    if shown.items_digest != now.items_digest:
        new, old = changes(shown.items, now.items)
        found.append(Moved("items", "items", len(shown.items), len(now.items), len(new), len(old)))
    return found


def changes(old_items: Iterable[str], new_items: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the items that an approval adds to the one it replaces, and those it leaves out, both sorted."""
    old, new = frozenset(old_items), frozenset(new_items)
    return tuple(sorted(new - old)), tuple(sorted(old - new))


def _preview_hash(preview: Json, facts: Json, precondition: Json) -> str:
    # a card shows all three, so one hash holds all three
    return digest({"preview": preview, "facts": facts, "precondition": precondition})


def _differences(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[tuple[str, Json, Json]]:
    names = dict.fromkeys((*old, *new))
    return [
        (name, old.get(name), new.get(name))
        for name in names
        if canonical(old.get(name)) != canonical(new.get(name)) or (name in old) != (name in new)
    ]


def _shown(
    tool: Tool, preview: Preview, change: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> dict[str, Json]:
    added = frozenset(change[0]) if change else frozenset[str]()
    rows, largest = pick(preview.sample, limit=MOST_ROWS, added=added) if preview.columns else ([], 0)
    impact = _lines(preview.impact)
    return {
        "title": line(preview.title, TITLE_LIMIT) or line(_words(tool.name), TITLE_LIMIT),
        "impact": cast(Json, impact),
        "columns": [line(column, COLUMN_LIMIT) for column in preview.columns[:MOST_COLUMNS]],
        "sample": [[_shown_cell(cell) for cell in row[:MOST_COLUMNS]] for row in rows],
        "change": {"added": len(change[0]), "left_out": len(change[1])} if change else None,
        "added": [at for at, row in enumerate(rows) if row[0] in added],
        "largest": largest,
        "hidden": {
            "lines": len(preview.impact) - len(impact),
            "columns": max(len(preview.columns) - MOST_COLUMNS, 0),
            "rows": len(preview.sample) - len(rows),
        },
    }


def _lines(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    room = IMPACT_LIMIT
    for text in (line(text, LINE_LIMIT) for text in lines):
        room -= len(text) + 1
        if room < 0 or len(kept) == MOST_LINES:
            break
        kept.append(text)
    return kept


def _shown_cell(cell: Cell) -> Json:
    match cell:
        case str():
            return line(cell, CELL_LIMIT)
        case Money():
            return cell.to_json()
        case _:
            return cell


def _default_preview(tool: Tool, input: Mapping[str, Json], facts: Facts) -> Preview:
    titles = {
        field.serialization_alias or field.alias or name: field.title or _words(name)
        for name, field in tool.input.model_fields.items()
    }
    impact = [f"{titles.get(name, name)}: {_value(value)}" for name, value in input.items()]
    # count and amount have a line of their own on the card
    impact += [f"{_words(name)}: {_value(plain(value))}" for name, value in facts.more.items()]
    return Preview(_words(tool.name), impact)


def _value(value: Json) -> str:
    match value:
        case str() if value:
            return value
        case list() if value and all(isinstance(part, str) for part in value):
            return ", ".join(map(str, value))
        case _:
            return json.dumps(value, ensure_ascii=False)


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    return cut(words[:1].upper() + words[1:], TITLE_LIMIT)
