"""Edit: a form of the call's input, checked in the answer, previewed by code, then confirmed."""

from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from agent.decide import Recorded, Refused
from agent.edit import BadInput, CannotPreview, check_edit, draft_edit
from agent.tool import Risk
from bot import replies
from bot.after import AfterAnswer
from bot.blocks.bounded import View
from bot.blocks.card import Action
from bot.blocks.modals import (
    Callback,
    confirm_edit_view,
    edit_view,
    note_of,
    opening_view,
    problem_view,
    shows_problem,
    waiting_view,
)
from bot.blocks.why import why_text
from bot.bot import Bot
from bot.copies import keep_copy, spend_copy
from bot.deciding import confirm_as, look_as, refuse_nobody, sentence
from bot.faults import fault_text
from bot.forms import errors_in_words, field_titles, form_errors, misread, read_form
from bot.identity import Nobody
from bot.modals import change_view, open_then_fill
from bot.payloads import Click, Submission, read_click, read_submission
from bot.texts import Texts
from store import approvals
from store.errors import StoreError
from store.records import Actor, Approval

Answer = dict[str, Any]  # the body of an answer to view_submission


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to Edit and to the two forms behind it."""

    async def open_form(ack: AsyncAck, body: dict[str, Any], after: AfterAnswer) -> None:
        click = read_click(body)
        if await open_then_fill(bot, click, opening_view("edit", click.target, bot.texts), _form, after):
            after.do(spend_copy, bot, click)
        after.do(keep_copy, bot, click)
        await ack()

    async def submit_form(ack: AsyncAck, body: dict[str, Any], after: AfterAnswer) -> None:
        submission = read_submission(body)
        checked = await bot.durably(_check(bot, submission))
        if isinstance(checked, _Checked):
            after.do(_preview, bot, submission, checked)
            await ack(response_action="update", view=waiting_view(submission.target, bot.texts))
        else:
            await ack(checked)

    async def confirm(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack(await bot.durably(_confirm(bot, read_submission(body))))

    app.action(Action.EDIT)(open_form)
    app.view(Callback.EDIT)(submit_form)
    app.view(Callback.CONFIRM)(confirm)


class _Checked:
    """An edit whose input fits the tool's schema, with the approval it was made from."""

    def __init__(self, approval: Approval, input: dict[str, Any]) -> None:
        self.approval = approval
        self.input = input


async def _form(bot: Bot, click: Click) -> View:
    seen = await look_as(bot, click, "edit")
    if isinstance(seen, Approval):
        tool = bot.house.tools.get(seen.tool)
        if tool is not None:
            author = Actor("person", team_id=click.user_team_id, user_id=click.user_id)
            draft = await approvals.draft_of(bot.house.db, seen, author)
            typed = None if draft is None else draft.content.input
            return edit_view(seen, tool.input, bot.texts, typed=typed)
        seen = Refused("tool_changed", seen)
    return problem_view("edit", await sentence(bot, seen, click.user_id), bot.texts)


async def _check(bot: Bot, submission: Submission) -> _Checked | Answer:
    """The edit if it fits the schema, else the answer that shows what does not."""
    target = submission.target
    approval = await approvals.read(bot.clicks.db, target.approval_id)
    tool = bot.clicks.tools.get(approval.tool) if approval is not None else None
    if approval is None or tool is None:
        return await _refusal(
            bot, Refused("unknown" if approval is None else "tool_changed", approval), submission
        )
    if approval.revision != target.revision:
        return await _refusal(bot, Refused("stale_revision", approval), submission)
    stored = approval.shown.input
    raw = read_form(tool.input, stored, target.revision, submission.values)
    checked = await check_edit(bot.clicks, approval, raw)
    wrong = misread(tool.input, stored, target.revision, submission.values, bot.texts)
    if isinstance(checked, dict) and not wrong:
        return _Checked(approval, checked)
    if not isinstance(checked, dict):
        named = {path for path, _ in wrong}
        wrong += [(path, said) for path, said in _wrong(checked, bot.texts) if path not in named]
    errors = form_errors(tool.input, stored, target.revision, wrong, bot.texts)
    if errors and not shows_problem(submission.blocks):
        return {"response_action": "errors", "errors": errors}
    if errors:
        words = errors_in_words(tool.input, stored, target.revision, errors, bot.texts)
        problem = replies.cannot_preview(words, bot.texts)
        return _updated(edit_view(approval, tool.input, bot.texts, typed=raw, problem=problem))
    words = "; ".join(message for _, message in wrong)
    return _updated(problem_view("edit", replies.cannot_preview(words, bot.texts), bot.texts))


def _wrong(checked: BadInput | CannotPreview, texts: Texts) -> list[tuple[str, str]]:
    """What is wrong with an edit: (path, message) each, the path "" for the whole input."""
    if isinstance(checked, CannotPreview):
        return [("", why_text(checked.why, texts))]
    return [(fault.path, fault_text(fault, texts)) for fault in checked.faults]


async def _preview(bot: Bot, submission: Submission, checked: _Checked) -> None:
    """Measure the edit with the tool's own code and show what would be approved, or why it cannot be."""
    try:
        view = await _previewed(bot, submission, checked)
    except StoreError as error:
        view = problem_view("edit", replies.store_error(error, bot.texts), bot.texts)
    await change_view(bot, submission.view_id, view)


async def _previewed(bot: Bot, submission: Submission, checked: _Checked) -> View:
    person = await bot.directory.person(submission.user_team_id, submission.user_id)
    if isinstance(person, Nobody):
        nobody = await refuse_nobody(bot, submission, person)
        return problem_view("edit", await sentence(bot, nobody, submission.user_id), bot.texts)
    target = submission.target
    made = await draft_edit(bot.house, target.approval_id, target.revision, person, checked.input)
    if isinstance(made, Refused):
        return problem_view("edit", await sentence(bot, made, submission.user_id), bot.texts)
    tool = bot.house.tools[checked.approval.tool]
    if isinstance(made, BadInput | CannotPreview):
        words = "; ".join(f"{path}: {said}" if path else said for path, said in _wrong(made, bot.texts))
        problem = replies.cannot_preview(words, bot.texts)
        return edit_view(checked.approval, tool.input, bot.texts, typed=checked.input, problem=problem)
    return confirm_edit_view(
        checked.approval,
        made,
        bot.texts,
        irreversible=tool.risk is Risk.IRREVERSIBLE,
        note=True,
        titles=field_titles(tool.input),
    )


async def _confirm(bot: Bot, submission: Submission) -> Answer:
    draft_id = submission.target.draft_id or ""
    outcome = await confirm_as(bot, submission, draft_id, note_of(submission.values))
    return (
        {"response_action": "clear"}
        if isinstance(outcome, Recorded)
        else await _refusal(bot, outcome, submission)
    )


async def _refusal(bot: Bot, outcome: Refused | Nobody, submission: Submission) -> Answer:
    return _updated(problem_view("edit", await sentence(bot, outcome, submission.user_id), bot.texts))


def _updated(view: View) -> Answer:
    return {"response_action": "update", "view": view}
