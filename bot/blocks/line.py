"""The line: the first message of the answer to a run, which says what the run is doing and how it ended."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from agent.gaps import Lack
from bot.blocks.bounded import Message, lines, message
from bot.blocks.card import title
from bot.blocks.details import is_edited
from bot.blocks.lacking import lacking
from bot.blocks.limits import LINE
from bot.blocks.people import deciding_roles, moment, roles, who
from bot.blocks.phrases import Phrase, fill, joined, words
from bot.blocks.values import list_counts, number_text
from bot.texts import Texts
from store.records import Approval, Call
from store.records import Line as Rows
from store.transitions import OPEN_APPROVALS, ApprovalStatus, CallStatus, RunStatus

Count = tuple[int, int | None]

_MOST_NAMED = 5
_SOON = timedelta(minutes=1)
_REFUSED = frozenset({CallStatus.REJECTED, CallStatus.EXPIRED, CallStatus.VETOED})


@dataclass(frozen=True)
class LineContext:
    """What a line needs beside its rows.

    `doing` are the tools' own words by name; `names` the people who may decide, by approval, where all are
    known and few; `lacks` says where too few may, by approval; `count` how far the tool that executes says
    that it is.
    """

    texts: Texts
    doing: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Collection[str]] = field(default_factory=dict)
    lacks: Mapping[str, Lack] = field(default_factory=dict)
    count: Count | None = None


def line(rows: Rows, context: LineContext) -> Message:
    """The line of a run that was begun, as its rows are now."""
    said = _said(rows, context)
    return message(joined(said), [lines(said)])


def _said(rows: Rows, context: LineContext) -> list[Phrase]:
    said = context.texts.line
    match rows.run.status:
        case RunStatus.QUEUED:
            return [_queued(rows, context)]
        case RunStatus.RUNNING | RunStatus.AWAITING_APPROVAL:
            return [*_executing(rows, context), *_open(rows, context)] or [_thinking(rows, context)]
        case RunStatus.COMPLETED:
            return [fill(said.completed), *_outcomes(rows, context.texts)]
        case RunStatus.EXHAUSTED:
            return [fill(said.exhausted), *_outcomes(rows, context.texts)]
        case RunStatus.FAILED:
            return [fill(said.failed), *_outcomes(rows, context.texts)]
        case RunStatus.CANCELLED:
            return [_cancelled(rows, context.texts), *_outcomes(rows, context.texts)]
        case _ as never:
            assert_never(never)


def _queued(rows: Rows, context: LineContext) -> Phrase:
    texts = context.texts
    if rows.run.not_before is None:
        return fill(texts.line.queued)
    if (following := _next(rows, context)) is not None:
        return following
    if rows.run.not_before - rows.now < _SOON:
        return fill(texts.line.again_soon)
    # no seconds: the same words for every try of the same minute
    after = rows.run.not_before.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return fill(texts.line.again, when=moment(after, texts))


# --- while it works ---


def _executing(rows: Rows, context: LineContext) -> list[Phrase]:
    asked = {approval.call_id for approval in rows.approvals}
    executing = (call for call in rows.calls if call.status is CallStatus.EXECUTING)
    return [_running(call, context, asked=call.id in asked) for call in executing]


def _running(call: Call, context: LineContext, *, asked: bool) -> Phrase:
    said = context.texts.line
    what = _tool_words(call.tool, context)
    if call.attempts == 0 and asked:
        return fill(said.checking_again, what=what)
    if context.count is None:
        return fill(said.running, what=what)
    done, total = (None if n is None else number_text(n, context.texts.locale) for n in context.count)
    if total is None:
        return fill(said.counted, what=what, done=done or "")
    return fill(said.counted_of, what=what, done=done or "", total=total)


def _tool_words(name: str, context: LineContext) -> Phrase:
    own = context.doing.get(name)
    return words(own, LINE) if own else fill(context.texts.line.tool, tool=name)


def _next(rows: Rows, context: LineContext) -> Phrase | None:
    # the same words while it is tried and until it is tried again: every few seconds, perhaps for hours
    allowed = (call for call in rows.calls if call.status is CallStatus.ALLOWED and call.attempts == 0)
    call = next(allowed, None)
    return None if call is None else fill(context.texts.line.next, what=_tool_words(call.tool, context))


def _thinking(rows: Rows, context: LineContext) -> Phrase:
    said = context.texts.line
    statuses = {call.status for call in rows.calls}
    unjudged = next((call for call in rows.calls if call.status is CallStatus.PROPOSED), None)
    if unjudged is not None:
        return fill(said.measuring, what=_tool_words(unjudged.tool, context))
    if (following := _next(rows, context)) is not None:
        return following
    if CallStatus.SUPERSEDED in statuses:
        return fill(said.looking_again if any(map(_has_moved, rows.calls)) else said.no_longer_valid)
    if statuses & _REFUSED:
        return fill(said.refused)
    return fill(said.reading if rows.calls else said.thinking)


def _has_moved(call: Call) -> bool:
    """Whether it did not run because the facts moved, and not for a reason that lies in the house."""
    return call.status is CallStatus.SUPERSEDED and "reason" not in (call.result or {}).get("content", {})


# --- while it waits ---


def _open(rows: Rows, context: LineContext) -> list[Phrase]:
    texts = context.texts
    alone = sum(approval.status in OPEN_APPROVALS for approval in rows.approvals) == 1
    said: Mapping[ApprovalStatus, Callable[[Approval], Phrase]] = {
        ApprovalStatus.PENDING: lambda approval: _waiting(approval, context, alone=alone),
        ApprovalStatus.APPROVED: lambda approval: _named(texts.line.approved, approval, texts),
        ApprovalStatus.UNKNOWN: lambda approval: _named(texts.line.unknown, approval, texts),
    }
    return _listed([said[a.status](a) for a in rows.approvals if a.status in said], texts)


def _waiting(approval: Approval, context: LineContext, *, alone: bool) -> Phrase:
    texts = context.texts
    names, lack = context.names.get(approval.id), context.lacks.get(approval.id)
    # for what it waits stands right below, in the notice that it was asked, unless it was edited since
    told = alone and not is_edited(approval)
    if lack is not None and not lack.people:
        nobody = lacking(approval, lack, texts)
        return nobody if told else fill(texts.line.about, title=_title(approval, texts), said=nobody)
    waits = fill(
        texts.line.waiting if told else texts.line.waiting_of,
        who=words(texts.line.either.join(names) if names else roles(deciding_roles(approval)), LINE),
        when=moment(approval.expires_at, texts),
        title=_title(approval, texts),
    )
    return waits if lack is None else joined([waits, lacking(approval, lack, texts)], "\n")


def _title(approval: Approval, texts: Texts) -> Phrase:
    """What the call would do, and by whom it was edited: whoever asked reads it nowhere else."""
    said, named = texts.line, words(title(approval), LINE)
    if not is_edited(approval):
        return named
    by = who(approval.author, texts)
    counts = list_counts(approval.original_input, approval.shown.input)
    told = [
        plural.of(n, texts.locale).format(n=number_text(n, texts.locale))
        for plural, n in zip((said.added, said.left_out), counts, strict=True)
        if n
    ]
    if not told:
        return fill(said.edited, title=named, who=by)
    return fill(said.edited_items, title=named, who=by, difference=", ".join(told))


# --- when it has ended ---


def _cancelled(rows: Rows, texts: Texts) -> Phrase:
    if rows.stopped_by is None:
        return fill(texts.line.cancelled)
    return fill(texts.line.cancelled_by, who=who(rows.stopped_by, texts))


def _outcomes(rows: Rows, texts: Texts) -> list[Phrase]:
    said: Mapping[ApprovalStatus, str] = {
        ApprovalStatus.SUPERSEDED: texts.line.superseded,
        ApprovalStatus.EXECUTING: texts.line.still_running,
        ApprovalStatus.EXECUTED: texts.line.executed,
        ApprovalStatus.FAILED: texts.line.call_failed,
        ApprovalStatus.REJECTED: texts.line.rejected,
        ApprovalStatus.EXPIRED: texts.line.expired,
        ApprovalStatus.CANCELLED: texts.line.call_cancelled,
        ApprovalStatus.UNKNOWN: texts.line.unknown,
    }
    return _listed([_named(said[a.status], a, texts) for a in rows.approvals if a.status in said], texts)


def _named(template: str, approval: Approval, texts: Texts) -> Phrase:
    return fill(template, title=_title(approval, texts))


def _listed(said: list[Phrase], texts: Texts) -> list[Phrase]:
    more = len(said) - _MOST_NAMED
    return said if more <= 0 else [*said[:_MOST_NAMED], fill(texts.list.more, n=str(more))]
