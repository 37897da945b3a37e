"""What a card says and asks while nobody knows whether its call ran."""

from collections.abc import Sequence
from enum import StrEnum

from bot.blocks.bounded import Block, Message, actions, asks_first, button, lines, message, section
from bot.blocks.details import CardContext
from bot.blocks.lacking import lacking
from bot.blocks.limits import LINE, MENTIONS, OUTCOME
from bot.blocks.people import deciding_roles, moment, roles
from bot.blocks.phrases import Phrase, User, fill, joined, words
from bot.blocks.target import Target
from bot.blocks.values import items_text, number_text
from bot.texts import Texts
from store.records import Approval, NobodyKnows


class Settle(StrEnum):
    """The action ids of the buttons by which a person says what happened."""

    RAN = "outcome_ran"
    DID_NOT_RUN = "outcome_did_not_run"
    TRY_AGAIN = "outcome_try_again"


def what_is_known(approval: Approval, texts: Texts) -> list[Phrase]:
    """How often it was tried, when first, under which key, and of which items nobody knows."""
    known = NobodyKnows.of(approval)
    if known is None:
        return []
    said = [
        fill(
            texts.card.tried.of(known.attempts, texts.locale),
            n=number_text(known.attempts, texts.locale),
            when=moment(known.first_attempt_at, texts),
            key=words(known.key, LINE),
        )
    ]
    items: Sequence[str] = approval.shown.items
    if items:
        template = texts.card.items_unknown.of(len(items), texts.locale)
        listed = words(items_text(items, texts), OUTCOME)
        said.append(fill(template, n=number_text(len(items), texts.locale), items=listed))
    return said


def question(approval: Approval, context: CardContext) -> list[Block]:
    """Who may say what happened, and until when it can be tried again."""
    known, texts = NobodyKnows.of(approval), context.texts
    if known is None:
        return []
    again = fill(texts.card.no_retry)
    if can_try_again(approval, context):
        again = fill(texts.card.retry_until, when=moment(known.retry_until, texts))
    if context.lack is not None:
        return [section(joined([lacking(approval, context.lack, texts), again], "\n"))]
    asked = fill(texts.card.settles, roles=roles(deciding_roles(approval)))
    return [section(joined([asked, again], texts.common.separator))]


def can_try_again(approval: Approval, context: CardContext) -> bool:
    """Whether a person may still let it be tried again."""
    known = NobodyKnows.of(approval)
    return known is not None and context.repeat != "no" and known.retry_until > approval.now


def settling_buttons(approval: Approval, context: CardContext, title: str) -> list[Block]:
    """The buttons by which it is settled; they ask first, and carry after how many attempts it was shown."""
    known, said = NobodyKnows.of(approval), context.texts.card
    if known is None:
        return []
    target = Target(approval.id, approval.revision, attempts=known.attempts)

    def made(label: str, action: Settle, asked: str, what_follows: str) -> Block:
        pressed = button(label, action, target, said.described.format(verb=label, title=title))
        return asks_first(pressed, asked, what_follows, label, said.keep_waiting)

    buttons = [
        made(said.ran, Settle.RAN, said.ran_title, said.ran_final),
        made(said.did_not_run, Settle.DID_NOT_RUN, said.did_not_run_title, said.did_not_run_final),
    ]
    if can_try_again(approval, context):
        risk = said.try_again_safe if context.repeat == "safe" else said.try_again_risky
        buttons.append(made(said.try_again, Settle.TRY_AGAIN, said.try_again_title, risk))
    return [actions(buttons)]


def reminder(approval: Approval, context: CardContext, *, again: bool) -> Message:
    """Asks those who may settle it, by name; `again` after it was asked before."""
    known, said = NobodyKnows.of(approval), context.texts.notice
    assert known is not None, "what is known is not asked"
    named = words(str(approval.shown.preview["title"]), LINE)
    asked = fill(said.please_settle, title=named)
    if again:
        asked = fill(said.still_unknown, title=named, when=moment(known.since, context.texts))
    how = fill(said.buttons)
    if can_try_again(approval, context):
        how = fill(said.buttons_retry, when=moment(known.retry_until, context.texts))
    mentioned = joined(((User(user),) for user in context.deciders[:MENTIONS]), " ")
    if context.lack is not None:
        how = lacking(approval, context.lack, context.texts)
    names = [mentioned] if mentioned else []  # apart: the title stands where no markup is parsed
    return message(joined([*names, asked, how]), [*map(section, names), lines([asked, how])])
