"""The lines of a card about the call itself: impact, facts, precondition, who asked, what to beware of."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from agent.gaps import Lack
from bot.blocks.bounded import Block, lines, table
from bot.blocks.limits import LINE, OUTCOME, REASON
from bot.blocks.people import place, who
from bot.blocks.phrases import Link, Phrase, bold, fill, joined, words
from bot.blocks.values import (
    amount_text,
    facts_text,
    input_changes,
    items_text,
    list_difference,
    named_values,
    number_text,
    value_text,
)
from bot.texts import Texts
from store.records import Approval, Measured, Overlap, Veto
from store.transitions import ApprovalStatus

_IMPACT_LINE = 300

_MOST_CHANGES = 8
_BEFORE_IT_RAN = frozenset({ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.EXECUTING})


Repeat = Literal["safe", "risky", "no"]


@dataclass(frozen=True)
class CardContext:
    """What a card needs beside its row, read by the caller.

    `deciders` are the ids of the people to mention when the card is posted, who may decide it; `lack` says
    where these are too few; `replaced` is the approval that `approval.replaces` names; links are permalinks;
    `field_titles` maps input fields to their titles; `repeat` says what another attempt with the same key
    would be, of a call whose outcome nobody knows.
    """

    texts: Texts
    irreversible: bool = False
    deciders: Sequence[str] = ()
    lack: Lack | None = None
    overlaps: Sequence[Overlap] = ()
    earlier_refusal: Veto | None = None
    replaced: Approval | None = None
    replaced_link: str | None = None
    replaced_by_link: str | None = None
    thread_link: str | None = None
    field_titles: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    repeat: Repeat = "no"


def impact(shown: Measured, texts: Texts) -> list[Phrase]:
    """The preview's own lines, and the counted facts where its title does not say them."""
    told = [words(f"• {line}", _IMPACT_LINE) for line in shown.preview["impact"]]
    if _nothing_counted(shown) or _title_says(shown, texts.locale):
        return told
    return [*told, fill(texts.card.measured, facts=facts_text(shown.facts, texts))]


def _nothing_counted(shown: Measured) -> bool:
    # what a tool without facts of its own has: one call
    facts = shown.facts
    return facts["count"] == 1 and not (facts.get("amount") or facts["items"] or facts.get("more"))


def _title_says(shown: Measured, locale: str) -> bool:
    count, amount, title = shown.facts["count"], shown.facts.get("amount"), shown.preview["title"]
    counted = [str(count), number_text(count, locale), *(shown.items if count == 1 else ())]
    says_count = any(_stands_in(title, said) for said in counted)
    return says_count and (not amount or _stands_in(title, amount_text(amount, locale)))


def _stands_in(title: str, said: str) -> bool:
    # as a word of its own: neither "6" in "365 days" nor "204" in "1 204", as French writes it
    ends = r"(?:[.,:;!?)”…]+(?!\S)|(?!\S)(?!\s\d))"
    return re.search(rf"(?<!\S)(?<!\d\s)[(“]?{re.escape(said)}{ends}", title) is not None


def essentials(approval: Approval, context: CardContext) -> list[Phrase]:
    """What a decision rests on beside the impact: no way back, what is checked again, who asked and where."""
    asked = _asked(approval, context)
    if approval.status in _BEFORE_IT_RAN:
        return [*rests_on(approval.shown, context.texts, irreversible=context.irreversible), asked]
    said = context.texts.card
    then = said.precondition_then if approval.revision == 1 else said.precondition_edited
    return [*_values(approval.shown, context.texts, then), asked]


def rests_on(shown: Measured, texts: Texts, *, irreversible: bool) -> list[Phrase]:
    """Whether there is a way back, and the values that are compared again before it runs."""
    no_way_back = [bold(fill(texts.card.irreversible))] if irreversible else []
    return [*no_way_back, *_values(shown, texts, texts.card.precondition)]


def _values(shown: Measured, texts: Texts, template: str) -> list[Phrase]:
    values = named_values(shown.precondition, texts)
    return [fill(template, values=words(values, OUTCOME))] if values else []


def warnings(approval: Approval, context: CardContext) -> list[Phrase]:
    """What to beware of: an edit, what this replaces, overlaps, an earlier refusal."""
    return [
        *_edited(approval, context),
        *_replaces(approval, context),
        *_overlaps(approval, context),
        *_refused_before(context),
    ]


def _asked(approval: Approval, context: CardContext) -> Phrase:
    texts = context.texts
    phrase = fill(
        texts.card.asked,
        agent=approval.agent,
        requester=who(approval.requester, texts),
        place=place(approval.conversation, texts),
    )
    if context.thread_link is None:
        return phrase
    return joined([phrase, (Link(context.thread_link, texts.common.open_thread),)], texts.common.separator)


def is_edited(approval: Approval) -> bool:
    """Whether the current revision is not the model's own."""
    return approval.author is not None and approval.author.kind != "model"


def _edited(approval: Approval, context: CardContext) -> list[Phrase]:
    if not is_edited(approval):
        return []
    edits = input_changes(approval.original_input, approval.shown.input, context.field_titles, context.texts)
    by = fill(context.texts.card.edited, who=who(approval.author, context.texts))
    return [by, *(words(edit, LINE) for edit in edits[:_MOST_CHANGES])]


def _replaces(approval: Approval, context: CardContext) -> list[Phrase]:
    if approval.replaces is None:
        return []
    texts = context.texts
    replaces = fill(texts.card.replaces)
    if context.replaced_link is not None:
        replaces = (Link(context.replaced_link, texts.card.replaces),)
    if context.replaced is None:
        return [replaces]
    difference = list_difference(context.replaced.shown.items, approval.shown.items, texts)
    compared = [fill(texts.card.in_place_of, replaces=replaces, difference=words(difference, OUTCOME))]
    if is_edited(context.replaced):
        compared.append(fill(texts.card.replaced_edit, who=who(context.replaced.author, texts)))
    return compared


def _overlaps(approval: Approval, context: CardContext) -> list[Phrase]:
    shared = {item for other in context.overlaps for item in other.items}
    if not shared or approval.status not in _BEFORE_IT_RAN:
        return []
    texts = context.texts
    others = items_text((other.approval_id for other in context.overlaps), texts)
    template = texts.card.overlap.of(len(shared), texts.locale)
    return [fill(template, n=number_text(len(shared), texts.locale), others=others)]


def _refused_before(context: CardContext) -> list[Phrase]:
    veto, texts = context.earlier_refusal, context.texts
    if veto is None:
        return []
    if veto.kind == "expired":
        return [fill(texts.card.expired_before)]
    by = who(veto.denied_by, texts)
    if not veto.reason:
        return [fill(texts.card.refused_before, who=by)]
    return [fill(texts.card.refused_reason, who=by, reason=words(veto.reason, REASON))]


def sample(shown: Measured, texts: Texts, *, as_table: bool) -> list[Block]:
    """The preview's rows, as the one table of a message or as short lines, and how many are not shown."""
    preview = shown.preview
    if not preview["columns"] or not preview["sample"]:
        return []
    rows = [_row(row, at in preview.get("added", ()), texts) for at, row in enumerate(preview["sample"])]
    if as_table:
        made = table(preview["columns"], rows, right=_amount_columns(preview["sample"]))
    else:
        separator = texts.common.separator
        named = words(separator.join(preview["columns"]), bold=True)
        made = lines([named, *(words(separator.join(row)) for row in rows)])
    hidden = _hidden(shown, texts)
    return [made, lines([hidden])] if hidden else [made]


def _row(cells: Sequence[Any], is_new: bool, texts: Texts) -> list[str]:
    shown = [value_text(cell, texts.locale) for cell in cells]
    return [texts.card.new.format(item=shown[0]), *shown[1:]] if is_new else shown


def _amount_columns(rows: Sequence[Sequence[Any]]) -> list[int]:
    return [at for at in range(len(rows[0])) if all(isinstance(row[at], dict | int | None) for row in rows)]


def _hidden(shown: Measured, texts: Texts) -> Phrase:
    rows = len(shown.preview["sample"])
    more = rows + shown.preview.get("hidden", {}).get("rows", 0)
    total = max(more, shown.facts["count"])
    if total == rows:
        return ()
    counts = {"shown": number_text(rows, texts.locale), "all": number_text(total, texts.locale)}
    which = _which(shown.preview, texts) if more == total else ""
    return fill(texts.card.sample_picked if which else texts.card.sample, **counts, which=which)


def _which(preview: Mapping[str, Any], texts: Texts) -> str:
    """By what the shown rows were picked (see agent/sample.py); "" where an older release picked them."""
    if "largest" not in preview:
        return ""
    largest, added = preview["largest"], len(preview.get("added", ()))
    left = len(preview["sample"]) - added
    parts = [
        (added, texts.card.sample_new),
        (largest, texts.card.sample_largest.of(largest, texts.locale)),
        (left - largest, texts.card.sample_spread),
    ]
    return ", ".join(said.format(n=number_text(n, texts.locale)) for n, said in parts if n)
