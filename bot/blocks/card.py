"""The card of an approval: one function renders every status, so what is shown is what the row says."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

from agent.money import is_money
from bot.blocks import details, limits
from bot.blocks.bounded import (
    Block,
    Message,
    actions,
    button,
    code,
    header,
    lines,
    message,
    plain_section,
    quote,
    section,
)
from bot.blocks.bounded import context as context_line
from bot.blocks.details import CardContext
from bot.blocks.lacking import lacking
from bot.blocks.people import moment, people, roles
from bot.blocks.phrases import Link, Phrase, User, fill, joined, words
from bot.blocks.status import status_lines
from bot.blocks.target import Target
from bot.blocks.unknown import question, settling_buttons
from bot.blocks.values import items_text, value_text
from bot.texts import Texts
from store.records import Approval
from store.transitions import ApprovalStatus

__all__ = [
    "Action",
    "CardContext",
    "card",
    "plain_card",
    "rationale",
    "spent",
    "title",
    "what_happened",
    "what_is_asked",
    "who_decides",
]


_MOST_VALUES = 12


class Action(StrEnum):
    """The action ids of a card's buttons."""

    APPROVE = "approval_approve"
    EDIT = "approval_edit"
    REJECT = "approval_reject"


def card(approval: Approval, context: CardContext, *, mention: bool = False, table: bool = True) -> Message:
    """The card of an approval in any status; buttons only while a person has something to say.

    `mention` notifies `context.deciders`: set it when the card is posted and never when it is updated.
    Without `table` the sample is short lines, for a Slack that refuses the table.
    """
    texts = context.texts
    blocks = [header(title(approval)), *what_happened(approval, context)]
    blocks += [*what_is_asked(approval, context), *who_decides(approval, context, mention=mention)]
    blocks += details.sample(approval.shown, texts, as_table=table)
    blocks += rationale(approval, texts)
    blocks += _pressable(approval, context)
    return message(_text(approval, context, mention=mention), [*blocks, _small_print(approval, texts)])


def plain_card(approval: Approval, context: CardContext, *, mention: bool = False) -> Message:
    """The smallest card that can still be decided, of classic blocks: for when Slack refuses the others."""
    said = [words(title(approval), limits.TITLE_IN_TEXT), *status_lines(approval, context.texts)]
    impact = details.impact(approval.shown, context.texts)
    blocks = [plain_section(joined([*said, *impact], "\n")), *who_decides(approval, context, mention=mention)]
    return message(_text(approval, context, mention=mention), [*blocks, *_pressable(approval, context)])


def spent(pressed: Message, link: str | None, texts: Texts) -> Message:
    """A card without its buttons, for where nobody can take them away later; `link` is the way to another."""
    way: list[Phrase] = [(Link(link, texts.common.open_card),)] if link else []
    left = [block for block in pressed.blocks if block["type"] != "actions"]
    return replace(pressed, blocks=(*left, lines([joined([fill(texts.card.spent), *way])])))


def title(approval: Approval) -> str:
    """What the call would do, in one line made by code."""
    return str(approval.shown.preview["title"])


def what_happened(approval: Approval, context: CardContext) -> list[Block]:
    """What became of it and what its tool gave back; nothing while it is pending."""
    if approval.status == ApprovalStatus.PENDING:
        return []
    happened = lines(status_lines(approval, context.texts, context.replaced_by_link), limits.STATUS)
    return [happened, *_output(approval, context.texts)]


def what_is_asked(approval: Approval, context: CardContext) -> list[Block]:
    """The call itself: its impact, what a decision rests on, what to beware of."""
    # impact first and the deadline last: together one screen of a phone, before any row of the sample
    impact = details.impact(approval.shown, context.texts)
    warnings = details.warnings(approval, context)
    return [
        *([lines(impact)] if impact else []),
        lines(details.essentials(approval, context), limits.ESSENTIALS),
        *([lines(warnings, limits.WARNINGS)] if warnings else []),
    ]


def who_decides(approval: Approval, context: CardContext, *, mention: bool = False) -> list[Block]:
    """Who may say what, until when, and who has; nothing where nobody is asked any more."""
    if approval.status == ApprovalStatus.UNKNOWN:
        return question(approval, context)
    if approval.status != ApprovalStatus.PENDING:
        return []
    texts = context.texts
    said = _may_decide(approval, context)
    if approval.escalated_at is not None:
        when = moment(approval.escalated_at, texts)
        said.append(fill(texts.card.escalated, roles=roles(approval.rule.escalate_to), when=when))
    if mention and context.deciders:
        said.append(_mentions(context))
    return [section(joined(said, "\n")), *_votes(approval, texts)]


def _may_decide(approval: Approval, context: CardContext) -> list[Phrase]:
    texts, lack = context.texts, context.lack
    if lack is None:
        return [_decides(approval, texts)]
    told = lacking(approval, lack, texts)
    if lack.people or lack.voted:
        return [_decides(approval, texts), told]
    return [told, _until(approval, texts)] if lack.later else [told]


def _decides(approval: Approval, texts: Texts) -> Phrase:
    able = fill(texts.card.decides, roles=roles(approval.rule.approvers))
    return joined([able, _until(approval, texts)], texts.common.separator)


def _until(approval: Approval, texts: Texts) -> Phrase:
    missing = max(approval.rule.quorum - len(approval.votes), 1)
    needed = texts.card.missing.of(missing, texts.locale)
    parts = [
        fill(needed, n=str(missing)),
        fill(texts.card.expires, when=moment(approval.expires_at, texts)),
    ]
    return joined(parts, texts.common.separator)


def _mentions(context: CardContext) -> Phrase:
    mentioned = joined(((User(user_id),) for user_id in context.deciders[: limits.MENTIONS]), " ")
    return fill(context.texts.card.asks_you, people=mentioned)


def _votes(approval: Approval, texts: Texts) -> list[Block]:
    if not approval.votes:
        return []
    by = people((vote.person for vote in approval.votes), texts)
    return [lines([fill(texts.card.so_far, people=by)], limits.OUTCOME)]


def _output(approval: Approval, texts: Texts) -> list[Block]:
    output = (approval.outcome or {}).get("output")
    if output in (None, "", [], {}):
        return []
    shown = _output_text(output, texts)
    return [lines([fill(texts.outcome.returned)]), code(shown, limits.OUTCOME)]


def _output_text(output: Any, texts: Texts) -> str:
    if not isinstance(output, dict) or is_money(output):
        return _short(output, texts)
    shown = list(output.items())[:_MOST_VALUES]
    return "\n".join(f"{name}: {_short(value, texts)}" for name, value in shown)


def _short(value: Any, texts: Texts) -> str:
    # forty ids would push what was decided off a phone's screen
    of_ids = isinstance(value, list) and value and all(isinstance(part, str) for part in value)
    return items_text(value, texts) if of_ids else value_text(value, texts.locale)


def rationale(approval: Approval, texts: Texts) -> list[Block]:
    """Why, in the agent's own words."""
    if not approval.rationale:
        return [lines([fill(texts.card.no_rationale)])]
    label = texts.card.rationale if approval.revision == 1 else texts.card.rationale_before_edit
    return [lines([fill(label)]), quote(approval.rationale, limits.WORDS_OF_THE_AGENT)]


def _pressable(approval: Approval, context: CardContext) -> list[Block]:
    if approval.status == ApprovalStatus.UNKNOWN:
        return settling_buttons(approval, context, title(approval))
    return _buttons(approval, context.texts)


def _buttons(approval: Approval, texts: Texts) -> list[Block]:
    if approval.status != ApprovalStatus.PENDING:
        return []
    target = Target(approval.id, approval.revision)

    def made(verb: str, action: Action, style: str | None = None) -> Block:
        described = texts.card.described.format(verb=verb, title=title(approval))
        return button(verb, action, target, described, style)

    approve = made(texts.card.approve, Action.APPROVE, "primary")
    edit = made(texts.card.edit, Action.EDIT)
    return [actions([approve, edit, made(texts.card.reject, Action.REJECT, "danger")])]


def _small_print(approval: Approval, texts: Texts) -> Block:
    return context_line(
        fill(texts.card.small_print, id=approval.id, revision=str(approval.revision), tool=approval.tool)
    )


def _text(approval: Approval, context: CardContext, *, mention: bool) -> Phrase:
    # all that a notification shows; the people are mentioned here too, where only the text is read
    texts = context.texts
    named = words(title(approval), limits.TITLE_IN_TEXT)
    if approval.status == ApprovalStatus.UNKNOWN:
        named = fill(texts.card.notify_unknown, title=named)
    if approval.status != ApprovalStatus.PENDING:
        return joined([named, *status_lines(approval, texts)], "\n")
    said = [
        fill(texts.card.notify, title=named),
        joined(details.essentials(approval, replace(context, thread_link=None)), "\n"),
        *_may_decide(approval, context),
        *([_mentions(context)] if mention and context.deciders else []),
    ]
    return joined(said, "\n")
