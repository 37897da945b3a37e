"""What the bot says in a thread or a direct message: one function for every kind of notice."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, assert_never

from agent.gaps import Lack, waited_for
from bot.blocks import limits
from bot.blocks.bounded import Block, Message, lines, message, sentence
from bot.blocks.card import title
from bot.blocks.characters import clean, clusters, width
from bot.blocks.lacking import lacking
from bot.blocks.people import deciding_roles, moment, roles, who
from bot.blocks.phrases import Channel, Link, Phrase, fill, joined, paragraph, plain, words
from bot.blocks.status import what_moved
from bot.blocks.values import number_text
from bot.blocks.why import stored_why
from bot.texts import Texts
from store.records import Actor, Approval, NobodyKnows, Run
from store.transitions import ApprovalStatus

Links = Mapping[str, str]
Lacks = Mapping[str, Lack]

_MOST_NAMED = 10


class NoticeKind(StrEnum):
    """The kinds that the store keeps."""

    RUN_RECEIVED = "run_received"
    CALL_ASKED = "call_asked"
    CALL_RAN = "call_ran"
    RUN_COMPLETED = "run_completed"
    RUN_EXHAUSTED = "run_exhausted"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"
    APPROVAL_EXPIRED = "approval_expired"
    SUPERSEDED_THRICE = "superseded_thrice"
    UNKNOWN_OUTCOME = "unknown_outcome"
    OUTCOME_REMINDER = "outcome_reminder"
    OUTCOME_SETTLED = "outcome_settled"


WAITS_OR_ENDED = frozenset(
    {
        NoticeKind.CALL_ASKED,
        NoticeKind.UNKNOWN_OUTCOME,
        NoticeKind.OUTCOME_SETTLED,
        NoticeKind.RUN_COMPLETED,
        NoticeKind.RUN_EXHAUSTED,
        NoticeKind.RUN_FAILED,
        NoticeKind.RUN_CANCELLED,
    }
)
"""What is said when a run waits for people or has ended: nothing need happen after it for a long time."""


class UnknownNotice(ValueError):
    """A notice of a kind that this version does not know."""


def approvals_of(kind: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the approvals whose rows a notice needs."""
    if "approval_ids" in data:
        return tuple(data["approval_ids"])
    return (data["approval_id"],) if "approval_id" in data else ()


def notice(
    kind: str,
    data: Mapping[str, Any],
    texts: Texts,
    *,
    approvals: Mapping[str, Approval] | None = None,
    in_the_way: tuple[Run, Sequence[Approval]] | None = None,
    lacks: Lacks | None = None,
    links: Links | None = None,
) -> Message:
    """The message of a notice; UnknownNotice for a kind that is not one of `NoticeKind`.

    `approvals` are rows by id, also of what they replace, and `links` the permalinks of their cards; what is
    missing is left out.
    `in_the_way` is the earlier run that a new one waits for, with its open approvals, and `lacks` says, by
    approval, where too few people may decide.
    """
    try:
        known = NoticeKind(kind)
    except ValueError:
        raise UnknownNotice(f"there is no notice of the kind {kind!r}") from None
    rows = [(approvals or {})[i] for i in approvals_of(kind, data) if i in (approvals or {})]
    match known:
        case NoticeKind.RUN_RECEIVED:
            return _received(in_the_way, lacks or {}, texts)
        case NoticeKind.CALL_ASKED:
            return _asked(rows, approvals or {}, data.get("deferred") or 0, texts, links or {})
        case (
            NoticeKind.APPROVAL_EXPIRED
            | NoticeKind.SUPERSEDED_THRICE
            | NoticeKind.UNKNOWN_OUTCOME
            | NoticeKind.OUTCOME_REMINDER
            | NoticeKind.OUTCOME_SETTLED
        ):
            return _about(known, rows, approvals_of(kind, data), texts, links or {})
        case NoticeKind.CALL_RAN:
            return _ran(data, texts)
        case NoticeKind.RUN_COMPLETED | NoticeKind.RUN_EXHAUSTED:
            after = fill(texts.notice.exhausted) if known is NoticeKind.RUN_EXHAUSTED else ()
            return _answer(data.get("text") or "", after, texts)
        case NoticeKind.RUN_FAILED:
            return _failed(data, texts)
        case NoticeKind.RUN_CANCELLED:
            return sentence(_cancelled(data, texts))
        case _ as never:
            assert_never(never)


def _failed(data: Mapping[str, Any], texts: Texts) -> Message:
    error = words(stored_why(data, texts, otherwise="error"), limits.OUTCOME)
    said = [fill(texts.notice.failed, error=error)]
    if "run_id" in data:
        said.append(fill(texts.notice.failed_retry, run=data["run_id"]))
    return message(joined(said), [lines(said)])


def _cancelled(data: Mapping[str, Any], texts: Texts) -> Phrase:
    if data.get("by") is None:  # an earlier release did not keep it
        return fill(texts.notice.cancelled)
    return fill(texts.notice.cancelled_by, who=who(Actor.from_json(data["by"]), texts))


def _received(in_the_way: tuple[Run, Sequence[Approval]] | None, lacks: Lacks, texts: Texts) -> Message:
    if in_the_way is None:
        return sentence(fill(texts.notice.received))
    run, asked_for = in_the_way
    said = [
        fill(texts.notice.received_behind),
        *(_waits_for(one, lacks.get(one.id), texts) for one in waited_for(run, asked_for)[:_MOST_NAMED]),
        fill(texts.notice.reads_afterwards),
    ]
    return message(joined(said), [lines(said)])


def _waits_for(approval: Approval, lack: Lack | None, texts: Texts) -> Phrase:
    named = words(title(approval), limits.LINE)
    if lack is not None and not lack.people:
        return fill(texts.notice.waits_in_vain, title=named, said=lacking(approval, lack, texts))
    known = NobodyKnows.of(approval)
    waits = fill(
        texts.notice.waits_for if known is None else texts.notice.waits_to_know,
        roles=roles(deciding_roles(approval)),
        title=named,
        when=moment(approval.expires_at if known is None else known.retry_until, texts),
    )
    return waits if lack is None else joined([waits, lacking(approval, lack, texts)])


def _asked(
    approvals: Sequence[Approval], known: Mapping[str, Approval], deferred: int, texts: Texts, links: Links
) -> Message:
    said: list[Phrase] = []
    for approval in approvals[:_MOST_NAMED]:
        replaced = known.get(approval.replaces or "")
        said += [*([_did_not_run(replaced, texts)] if replaced else []), _waiting(approval, texts, links)]
    if len(approvals) > _MOST_NAMED:
        said.append(fill(texts.list.more, n=str(len(approvals) - _MOST_NAMED)))
    if deferred:
        template = texts.notice.deferred.of(deferred, texts.locale)
        said.append(fill(template, n=number_text(deferred, texts.locale)))
    return message(joined(said, "\n"), [lines(said, limits.ANSWER_TEXT)])


def _waiting(approval: Approval, texts: Texts, links: Links) -> Phrase:
    phrase = fill(
        texts.notice.asked,
        place=Channel(approval.rule.channel),
        title=words(title(approval), limits.LINE),
    )
    return _with_link(phrase, links.get(approval.id), texts)


def _did_not_run(replaced: Approval, texts: Texts) -> Phrase:
    moved = what_moved(replaced, texts)
    template = texts.notice.moved if moved else texts.notice.not_run
    return fill(template, title=words(title(replaced), limits.LINE), moved=joined(moved, ", "))


def _settled(approval: Approval, texts: Texts, links: Links) -> Message:
    ran = approval.status == ApprovalStatus.EXECUTED
    template = texts.notice.settled_ran if ran else texts.notice.settled_did_not_run
    by = who(Actor.from_json(approval.outcome["settled_by"]), texts)
    said = fill(template, who=by, title=words(title(approval), limits.LINE))
    return sentence(_with_link(said, links.get(approval.id), texts))


def _ran(data: Mapping[str, Any], texts: Texts) -> Message:
    text = words(data.get("text") or "", limits.OUTCOME)
    return sentence(fill(texts.notice.ran, tool=data["tool"], text=text))


def _answer(text: str, after: Phrase, texts: Texts) -> Message:
    # the model's own words: text elements of rich text, which parse no markup
    whole = clean(text) or plain(after) or texts.notice.no_words
    pieces = _pieces(whole)
    shown = pieces[: limits.ANSWER_TEXT // limits.RICH_TEXT]
    rest = [after] if after and clean(text) else []
    if len(pieces) > len(shown):
        rest.append(fill(texts.notice.answer_cut))
    blocks: list[Block] = [lines([paragraph(piece, limits.RICH_TEXT)]) for piece in shown]
    if rest:
        blocks.append(lines(rest))
    return message(joined([paragraph(whole, limits.RICH_TEXT), *rest], "\n"), blocks)


def _pieces(text: str) -> list[str]:
    # a block holds a limited text: begin a new one at the end of a line where there is one
    pieces, piece, size = [], "", 0
    for cluster in clusters(text):
        taken = width(cluster)
        if size + taken > limits.RICH_TEXT:
            kept, _, carried = piece.rpartition("\n")
            kept, carried = (kept, carried) if kept else (piece, "")
            pieces.append(kept)
            piece, size = carried, width(carried)
        piece, size = piece + cluster, size + taken
    return [part for part in [*pieces, piece] if part.strip()]


def _about(
    kind: NoticeKind, approvals: Sequence[Approval], ids: Sequence[str], texts: Texts, links: Links
) -> Message:
    named = words(title(approvals[0]) if approvals else ", ".join(ids), limits.LINE)
    expired, decided = texts.notice.expired, bool(approvals) and approvals[0].decided_at is not None
    template = {
        NoticeKind.SUPERSEDED_THRICE: texts.notice.superseded_thrice,
        NoticeKind.UNKNOWN_OUTCOME: texts.notice.unknown,
        NoticeKind.OUTCOME_REMINDER: texts.notice.unknown,
        NoticeKind.OUTCOME_SETTLED: texts.notice.unknown,
    }.get(kind, texts.notice.expired_approved if decided else expired)
    said = fill(template, title=named)
    if not approvals:
        return sentence(said)
    approval = approvals[0]
    if kind is NoticeKind.OUTCOME_SETTLED and "settled_by" in (approval.outcome or {}):
        return _settled(approval, texts, links)
    if kind is NoticeKind.APPROVAL_EXPIRED:
        by = who(approval.requester, texts)
        said = joined([said, fill(texts.notice.not_done, agent=approval.agent, requester=by)])
    return sentence(_with_link(said, links.get(approval.id), texts))


def _with_link(phrase: Phrase, link: str | None, texts: Texts) -> Phrase:
    return joined([phrase, (Link(link, texts.common.open_card),)]) if link else phrase
