"""The one place for what a person is told about their click: one sentence, for nobody else to see."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, assert_never

from agent.cancel import NotStopped, Stopped
from agent.decide import Recorded, RefusalKind, Refused
from agent.settle import Said, Settled
from bot.blocks import limits
from bot.blocks.bounded import Message, sentence
from bot.blocks.card import title
from bot.blocks.people import deciding_roles, moment, roles, who
from bot.blocks.phrases import Link, Phrase, bold, fill, joined, words
from bot.blocks.status import stopped_by
from bot.blocks.values import number_text
from bot.blocks.why import stored_why
from bot.texts import Texts
from store.errors import (
    DatabaseUnavailable,
    NotMigrated,
    StatementRefused,
    StoreError,
    Unconfirmed,
    UnfitServer,
)
from store.records import Actor, Approval
from store.transitions import ApprovalStatus

_POINTS_ON = frozenset(
    {
        "stale_revision",
        "superseded",
        "decided",
        "draft_outdated",
        "draft_unknown",
        "settled",
        "attempted_again",
        "too_old",
        "run_stopped",
    }
)


def recorded(recorded: Recorded, texts: Texts) -> Message:
    """The decision counts, and whether further ones are needed."""
    reply = texts.reply
    named = words(title(recorded.approval), limits.LINE)
    if recorded.verdict == "reject":
        return sentence(fill(reply.rejected, title=named))
    edited = recorded.verdict == "edit"
    if not recorded.missing:
        return sentence(fill(reply.edited if edited else reply.approved, title=named))
    counted = reply.edit_counted if edited else reply.counted
    n = number_text(recorded.missing, texts.locale)
    return sentence(fill(counted.of(recorded.missing, texts.locale), title=named, n=n))


def settled(settled: Settled, texts: Texts) -> Message:
    """What the person said became of a call counts."""
    said: Mapping[Said, str] = {
        "ran": texts.reply.ran,
        "did_not_run": texts.reply.did_not_run,
        "try_again": texts.reply.try_again_counts,
    }
    return sentence(fill(said[settled.said], title=words(title(settled.approval), limits.LINE)))


def refused(refused: Refused, texts: Texts, *, user_id: str, current_link: str | None = None) -> Message:
    """Why the click changed nothing.

    `current_link` is the permalink of the card as it is now, or of the one that took its place.
    """
    said = _why(refused, texts, user_id)
    points_on = refused.kind in _POINTS_ON
    if current_link is not None and points_on:
        said = joined([said, (Link(current_link, texts.reply.current_card),)])
    return sentence(said)


def _why(refused: Refused, texts: Texts, user_id: str) -> Phrase:
    approval = refused.approval
    if approval is None:
        template = texts.reply.draft_unknown if refused.kind == "draft_unknown" else texts.reply.unknown
        return fill(template)
    match refused.kind:
        case "decided":
            return _decided(approval, texts, user_id)
        case "cancelled" | "superseded" | "expired" as kind:
            return _closed(approval, kind, texts)
        case "not_an_approver":
            return fill(texts.reply.not_an_approver, roles=roles(deciding_roles(approval)))
        case "already_voted" | "edit_counted" as kind:
            return _counts_already(approval, kind, texts)
        case "stale_revision":
            return _stale(approval, texts)
        case "draft_outdated":
            return fill(texts.reply.draft_outdated, who=_first(approval, texts))
        case "settled":
            return _settled(approval, texts, user_id)
        case (
            "four_eyes"
            | "unknown"
            | "draft_unknown"
            | "tool_changed"
            | "attempted_again"
            | "too_old"
            | "run_stopped"
        ) as kind:
            return fill(_plain(texts)[kind])
        case _ as never:
            assert_never(never)


def _plain(texts: Texts) -> Mapping[RefusalKind, str]:
    reply = texts.reply
    return {
        "four_eyes": reply.four_eyes,
        "unknown": reply.unknown,
        "draft_unknown": reply.draft_unknown,
        "tool_changed": reply.tool_changed,
        "attempted_again": reply.attempted_again,
        "too_old": reply.too_old,
        "run_stopped": reply.run_stopped,
    }


def _closed(approval: Approval, kind: Literal["expired", "cancelled", "superseded"], texts: Texts) -> Phrase:
    match kind:
        case "cancelled":
            return _cancelled(approval, texts)
        case "superseded":
            return _superseded(approval, texts)
        case "expired":
            undecided = approval.decided_at is None or approval.ended_at is None
            when = approval.expires_at if undecided else approval.ended_at
            return fill(texts.reply.expired, when=moment(when or approval.expires_at, texts))


def _cancelled(approval: Approval, texts: Texts) -> Phrase:
    by = stopped_by(approval)
    if by is None:
        return fill(texts.reply.cancelled)
    when = moment(approval.ended_at or approval.now, texts)
    return fill(texts.reply.cancelled_by, who=who(by, texts), when=when)


def _superseded(approval: Approval, texts: Texts) -> Phrase:
    outcome = approval.outcome or {}
    reason = stored_why(outcome, texts)
    if outcome.get("moved") or not reason:
        return fill(texts.reply.superseded)
    return fill(texts.reply.superseded_unsaid, reason=words(reason, limits.OUTCOME))


def _decided(approval: Approval, texts: Texts, user_id: str) -> Phrase:
    reply, by = texts.reply, approval.decided_by
    when = moment(approval.decided_at or approval.ended_at or approval.now, texts)
    rejected = approval.status == ApprovalStatus.REJECTED
    voters = [vote.person.user_id for vote in approval.votes]
    if (by is not None and by.user_id == user_id) or user_id in voters:
        return fill(reply.already_rejected_by_you if rejected else reply.already_approved_by_you, when=when)
    return fill(reply.already_rejected if rejected else reply.already_approved, who=who(by, texts), when=when)


def _settled(approval: Approval, texts: Texts, user_id: str) -> Phrase:
    """Who was first to say what became of it, and when."""
    reply, outcome = texts.reply, approval.outcome or {}
    tried = outcome.get("tried_again_by")
    by = outcome.get("settled_by") or tried
    if by is None:
        return fill(reply.nothing_to_settle)
    by_you = by["user"] == user_id
    if outcome.get("settled_by") is None:
        template = reply.tried_again_by_you if by_you else reply.tried_again
        at = datetime.fromisoformat(outcome["tried_again_at"])
    else:
        ran = approval.status == ApprovalStatus.EXECUTED
        yours = reply.said_ran_by_you if ran else reply.said_did_not_run_by_you
        template = yours if by_you else reply.said_ran if ran else reply.said_did_not_run
        at = approval.ended_at or approval.now
    named = {} if by_you else {"who": who(Actor.from_json(by), texts)}
    return fill(template, when=moment(at, texts), **named)


def _counts_already(
    approval: Approval, kind: Literal["already_voted", "edit_counted"], texts: Texts
) -> Phrase:
    missing, reply = approval.rule.quorum - len(approval.votes), texts.reply
    n = number_text(max(missing, 1), texts.locale)
    if kind == "edit_counted":
        template = reply.edit_counted.of(max(missing, 1), texts.locale)
        return fill(template, title=words(title(approval), limits.LINE), n=n)
    if missing < 1:
        return fill(reply.already_voted)
    return fill(reply.already_voted_missing.of(missing, texts.locale), n=n)


def _stale(approval: Approval, texts: Texts) -> Phrase:
    if approval.author is None:
        return fill(texts.reply.stale_unnamed)
    return fill(texts.reply.stale, who=who(approval.author, texts))


def _first(approval: Approval, texts: Texts) -> Phrase:
    first = approval.decided_by or approval.author
    return fill(texts.common.somebody) if first is None else who(first, texts)


def stopped(stopped: Stopped, texts: Texts) -> Message:
    """The run is stopped, and what of it is not over."""
    left = {approval.status for approval in stopped.left}
    template = texts.reply.stopped
    if ApprovalStatus.EXECUTING in left or stopped.under_way:
        template = texts.reply.stopped_but_executing
    elif ApprovalStatus.UNKNOWN in left:
        template = texts.reply.stopped_but_unknown
    return sentence(fill(template, task=words(stopped.run.task, limits.LINE)))


def not_stopped(refused: NotStopped, subject: str, texts: Texts) -> Message:
    """Why `subject`, what the person typed as an id, was not stopped."""
    reply, run = texts.reply, refused.run
    if run is None:
        return sentence(fill(reply.stop_no_such, id=words(subject, limits.NAME)))
    if refused.why == "ended":
        status = vars(texts.ended).get(refused.ended or "", "")
        if refused.by is None or refused.at is None:
            return sentence(fill(reply.stop_ended, status=status))
        when = moment(refused.at, texts)
        return sentence(fill(reply.stop_ended_by, status=status, who=who(refused.by, texts), when=when))
    by = who(run.requester, texts)
    return sentence(fill(reply.stop_not_yours, requester=by, roles=roles(refused.roles)))


def no_such_approval(approval_id: str, texts: Texts) -> Message:
    """The command to show an approval that is not there, or not for this person's eyes."""
    return sentence(fill(texts.reply.no_such_approval, id=words(approval_id, limits.NAME)))


def show_which(texts: Texts) -> Message:
    """Which one the command should show is not said."""
    return sentence(fill(texts.reply.show_which))


def stop_which(texts: Texts) -> Message:
    """The command to stop something, without an id."""
    return sentence(fill(texts.reply.stop_which))


def store_error(error: StoreError, texts: Texts) -> Message:
    """What a fault of the database means for the click: only an unconfirmed one may have been recorded."""
    match error:
        case Unconfirmed():
            return sentence(fill(texts.reply.not_confirmed))
        case NotMigrated() | UnfitServer():
            return sentence(fill(texts.reply.not_migrated))
        case DatabaseUnavailable() | StatementRefused():
            return sentence(fill(texts.reply.not_recorded))
        case _:
            # an error of the store that says nothing about what was recorded
            return sentence(fill(texts.reply.not_confirmed))


def stranger(texts: Texts) -> Message:
    """A click of somebody of another workspace, a guest or a bot."""
    return sentence(fill(texts.reply.stranger))


def not_for_you(texts: Texts) -> Message:
    """A command or a message of somebody it is not for."""
    return sentence(fill(texts.reply.not_for_you))


def try_again(texts: Texts) -> Message:
    """The person's rights could not be read in time, so nothing counts."""
    return sentence(fill(texts.reply.try_again))


def unreadable(texts: Texts) -> Message:
    """A payload that is not known, like a button of another version."""
    return sentence(fill(texts.reply.unreadable))


def trigger_dead(texts: Texts) -> Message:
    """Slack's trigger died before the window opened."""
    return sentence(fill(texts.reply.trigger_dead))


def cannot_preview(message: str, texts: Texts) -> Message:
    """An edit could not be previewed; `message` says why."""
    return sentence(bold(fill(texts.reply.cannot_preview, message=words(message, limits.OUTCOME))))


def task_too_long(limit: int, texts: Texts) -> Message:
    """A task of more than `limit` characters."""
    return sentence(fill(texts.reply.task_too_long, n=number_text(limit, texts.locale)))


def task_empty(texts: Texts) -> Message:
    """A mention without a word beside it."""
    return sentence(fill(texts.reply.task_empty))
