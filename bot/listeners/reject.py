"""Reject: a form that asks for the reason, and the decision when it is submitted."""

from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp

from agent.decide import Recorded
from bot.after import AfterAnswer
from bot.blocks.bounded import View
from bot.blocks.card import Action
from bot.blocks.modals import Callback, problem_view, reason_block, reason_of, reject_view
from bot.bot import Bot
from bot.copies import keep_copy, spend_copy
from bot.deciding import decide_as, look_as, sentence
from bot.modals import open_then_fill
from bot.payloads import Click, Submission, read_click, read_submission
from store.records import Approval


def register(app: AsyncApp, bot: Bot) -> None:
    """Listen to Reject and to its form."""

    async def open_form(ack: AsyncAck, body: dict[str, Any], after: AfterAnswer) -> None:
        click = read_click(body)
        if await open_then_fill(bot, click, reject_view(click.target, bot.texts), _form, after):
            after.do(spend_copy, bot, click)
        after.do(keep_copy, bot, click)
        await ack()

    async def submit(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack(await bot.durably(_reject(bot, read_submission(body))))

    app.action(Action.REJECT)(open_form)
    app.view(Callback.REJECT)(submit)


async def _form(bot: Bot, click: Click) -> View:
    seen = await look_as(bot, click, "reject")
    if isinstance(seen, Approval):
        return reject_view(click.target, bot.texts, seen)
    return problem_view("reject", await sentence(bot, seen, click.user_id), bot.texts)


async def _reject(bot: Bot, submission: Submission) -> dict[str, Any]:
    """Record the rejection; the answer closes the form, or shows why nothing was recorded."""
    reason = reason_of(submission.values).strip()
    if not reason:  # Slack's client lets blanks through
        errors = {reason_block(submission.target): bot.texts.modal.reason_missing}
        return {"response_action": "errors", "errors": errors}
    outcome = await decide_as(bot, submission, "reject", reason)
    if isinstance(outcome, Recorded):
        return {"response_action": "clear"}
    said = await sentence(bot, outcome, submission.user_id)
    return {"response_action": "update", "view": problem_view("reject", said, bot.texts)}
