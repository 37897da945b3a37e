"""The windows of Edit and Reject: what stands in them while they open, wait, ask, confirm and end."""

from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel

from bot.blocks import details, limits
from bot.blocks.bounded import (
    Block,
    Message,
    View,
    divider,
    header,
    input_block,
    lines,
    modal,
    text_input,
)
from bot.blocks.card import title
from bot.blocks.phrases import Phrase, bold, fill, words
from bot.blocks.target import Target
from bot.blocks.values import facts_text, input_changes, named_values
from bot.fields import FormValues
from bot.forms import form_blocks
from bot.texts import Texts
from store.records import Approval, Draft

Verb = Literal["approve", "edit", "reject"]

_REASON = "reason"
_NOTE = "note"
_PROBLEM = "problem"
_LONGEST_REASON = 2_000


class Callback(StrEnum):
    """The callback ids of the windows; NOTHING marks those that cannot be submitted."""

    EDIT = "approval_edit_form"
    CONFIRM = "approval_edit_confirm"
    REJECT = "approval_reject_form"
    NOTHING = "approval_nothing"


def opening_view(verb: Verb, target: Target, texts: Texts) -> View:
    """The window at once, before anything is read."""
    return _still(verb, target, [lines([fill(texts.modal.opening)])], texts)


def waiting_view(target: Target, texts: Texts) -> View:
    """The window while an edit is measured."""
    return _still("edit", target, [lines([fill(texts.modal.waiting)])], texts)


def problem_view(verb: Verb, message: Message, texts: Texts) -> View:
    """The window with one sentence in it, a reply, and Close."""
    return _still(verb, None, message.blocks, texts)


def reject_view(target: Target, texts: Texts, approval: Approval | None = None) -> View:
    """The window that asks for the reason; it is complete without the row, and names the call with it.

    Opened without the row and updated with it, it keeps what was typed meanwhile.
    """
    named = [header(title(approval))] if approval is not None else []
    reason = input_block(
        reason_block(target),
        _REASON,
        text_input(multiline=True, longest=_LONGEST_REASON, shortest=1),
        texts.modal.reason,
        texts.modal.reason_hint,
    )
    blocks = [*named, lines([fill(texts.modal.reject_intro)]), reason]
    return _form(texts.modal.reject, texts.modal.submit_reject, Callback.REJECT, target, blocks, texts)


def reason_block(target: Target) -> str:
    """The block id of the reason, where an error about it belongs."""
    return f"{_REASON}.{target.revision}"


def reason_of(values: FormValues) -> str:
    """The reason from the values of a submitted window; "" where there is none."""
    return _typed(values, _REASON)


def note_of(values: FormValues) -> str | None:
    """The note from the values of a submitted window; None where there is none."""
    return _typed(values, _NOTE) or None


def edit_view(
    approval: Approval,
    model: type[BaseModel],
    texts: Texts,
    *,
    typed: Mapping[str, Any] | None = None,
    problem: Message | None = None,
) -> View:
    """The form of the input that the current revision shows, or of the one that was `typed` already.

    A tool without a field that can be edited gets a window that says so. `problem` is why what was typed
    could not be shown; it stands first, in a block that `shows_problem` knows again. Without one, what was
    typed is said to be an earlier edit.
    """
    target = Target(approval.id, approval.revision)
    given = approval.shown.input if typed is None else typed
    form = form_blocks(model, given, approval.revision, texts)
    hint = texts.modal.edit_intro if typed is None else texts.modal.edit_again
    intro = [lines([fill(hint)])] if problem is None else _marked(problem.blocks)
    blocks = [header(title(approval)), *intro, *form]
    if not any(block["type"] == "input" for block in form):
        nothing = [header(title(approval)), lines([fill(texts.modal.nothing_to_edit)]), *form]
        return _still("edit", target, nothing, texts)
    return _form(texts.modal.edit, texts.modal.submit_edit, Callback.EDIT, target, blocks, texts)


def shows_problem(block_ids: Container[str]) -> bool:
    """Whether a window with these blocks says why something that was typed before could not be shown.

    Slack's answer `errors` leaves a window as it is, so there the words of an earlier try would stay.
    """
    return _PROBLEM in block_ids


def _marked(blocks: Iterable[Block]) -> list[Block]:
    first, *more = blocks
    return [{**first, "block_id": _PROBLEM}, *more]


def confirm_edit_view(
    approval: Approval,
    draft: Draft,
    texts: Texts,
    *,
    irreversible: bool = False,
    note: bool = False,
    titles: Mapping[str, str] | None = None,
) -> View:
    """The window that shows what a draft would do, next to what it changes, and approves it.

    `note` adds an optional note; ask for it only where it is kept. `titles` are the tool's field titles.
    """
    target = Target(approval.id, approval.revision, draft.id)
    content = draft.content
    blocks = [
        header(content.preview["title"]),
        lines([fill(texts.modal.confirm_intro)]),
        lines(
            [*details.impact(content, texts), *details.rests_on(content, texts, irreversible=irreversible)]
        ),
        *details.sample(content, texts, as_table=False),
        divider(),
        lines(_difference(approval, draft, titles or {}, texts)),
        *([_note_input(target, texts)] if note else []),
    ]
    return _form(texts.modal.edit, texts.modal.submit_confirm, Callback.CONFIRM, target, blocks, texts)


def _difference(approval: Approval, draft: Draft, titles: Mapping[str, str], texts: Texts) -> list[Phrase]:
    before, after = approval.shown, draft.content
    edits = input_changes(before.input, after.input, titles, texts)
    if not edits:
        return [fill(texts.modal.no_difference)]
    pairs = (
        (facts_text(before.facts, texts), facts_text(after.facts, texts)),
        (named_values(before.precondition, texts), named_values(after.precondition, texts)),
    )
    measured = [f"{was} → {now}" for was, now in pairs if was != now]
    return [
        bold(fill(texts.modal.difference)),
        *(words(line, limits.LINE) for line in [*measured, *edits]),
        fill(texts.modal.instead_of, title=title(approval)),
    ]


def _note_input(target: Target, texts: Texts) -> Block:
    element = text_input(multiline=True, longest=_LONGEST_REASON)
    block_id = f"{_NOTE}.{target.draft_id}"
    return input_block(block_id, _NOTE, element, texts.modal.note, texts.modal.note_hint, optional=True)


def _typed(values: FormValues, name: str) -> str:
    found = next((value for block_id, value in values.items() if block_id.partition(".")[0] == name), None)
    return found.strip() if isinstance(found, str) else ""


def _form(
    name: str, submit: str, callback: Callback, target: Target, blocks: Iterable[Block], texts: Texts
) -> View:
    return modal(
        name,
        blocks,
        callback_id=callback,
        target=target,
        close=texts.modal.cancel,
        submit=submit,
    )


def _still(verb: Verb, target: Target | None, blocks: Iterable[Block], texts: Texts) -> View:
    name = {"approve": texts.card.approve, "edit": texts.modal.edit, "reject": texts.modal.reject}[verb]
    return modal(name, blocks, callback_id=Callback.NOTHING, target=target, close=texts.modal.close)
