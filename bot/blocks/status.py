"""What a card says about where its approval is: one function for every status, decided or not."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_never

from agent.why import Why
from bot.blocks.characters import one_line
from bot.blocks.limits import LINE, OUTCOME, REASON
from bot.blocks.people import moment, voters, who
from bot.blocks.phrases import Link, Phrase, bold, fill, words
from bot.blocks.unknown import what_is_known
from bot.blocks.values import difference_text, items_text, number_text
from bot.blocks.why import stored_why, why_text
from bot.texts import Texts
from store.records import Actor, Approval
from store.transitions import ApprovalStatus

_MOST_MOVED = 5


def status_lines(approval: Approval, texts: Texts, replaced_by: str | None = None) -> list[Phrase]:
    """What happened, in lines, the first in bold; none while it is pending.

    `replaced_by` is the permalink of the card that took this one's place.
    """
    found = _lines(approval, texts, replaced_by)
    return [bold(found[0]), *found[1:]] if found else []


def _lines(approval: Approval, texts: Texts, replaced_by: str | None) -> list[Phrase]:
    match approval.status:
        case ApprovalStatus.PENDING:
            return []
        case ApprovalStatus.APPROVED:
            return [*_approved(approval, texts), *_waits(approval, texts)]
        case ApprovalStatus.EXECUTING:
            return [fill(texts.outcome.running), *_tried_again(approval, texts), *_approved(approval, texts)]
        case ApprovalStatus.EXECUTED | ApprovalStatus.FAILED | ApprovalStatus.UNKNOWN:
            return [
                *_attempted(approval, texts),
                *_went_through(approval, texts),
                *_approved(approval, texts),
            ]
        case ApprovalStatus.REJECTED | ApprovalStatus.EXPIRED | ApprovalStatus.CANCELLED:
            return [*_given_up(approval, texts), fill(texts.outcome.nothing_ran)]
        case ApprovalStatus.SUPERSEDED:
            return _superseded(approval, texts, replaced_by)
        case _ as never:
            assert_never(never)


def _approved(approval: Approval, texts: Texts) -> list[Phrase]:
    if approval.decided_at is None:
        return []
    when = moment(approval.decided_at, texts)
    if approval.decided_by is not None and approval.decided_by.kind == "policy" and not approval.votes:
        return [fill(texts.outcome.approved_by_policy, when=when)]
    approved = fill(texts.outcome.approved, people=voters(approval, texts), when=when)
    return [approved, *_reason(approval, texts.outcome.reason_approved)]


def _waits(approval: Approval, texts: Texts) -> list[Phrase]:
    tried_again = _tried_again(approval, texts)
    if tried_again:
        return tried_again
    if approval.attempted:
        return [fill(texts.outcome.tried_before)]
    if approval.claim_by is None:
        return [fill(texts.outcome.waits_to_run)]
    return [fill(texts.outcome.waits_until, when=moment(approval.claim_by, texts))]


def _tried_again(approval: Approval, texts: Texts) -> list[Phrase]:
    if _outcome(approval, "tried_again_by") is None:
        return []
    by = who(Actor.from_json(_outcome(approval, "tried_again_by")), texts)
    at = datetime.fromisoformat(_outcome(approval, "tried_again_at"))
    return [fill(texts.outcome.tried_again, who=by, when=moment(at, texts))]


def _attempted(approval: Approval, texts: Texts) -> list[Phrase]:
    settled_by = _outcome(approval, "settled_by")
    if settled_by is not None:
        ran = approval.status == ApprovalStatus.EXECUTED
        template = texts.outcome.settled_ran if ran else texts.outcome.settled_did_not_run
        by = who(Actor.from_json(settled_by), texts)
        return [fill(template, who=by, when=_ended(approval, texts))]
    text, when = stored_why(approval.outcome or {}, texts), _ended(approval, texts)
    if approval.status == ApprovalStatus.FAILED:
        return [fill(texts.outcome.failed, when=when, reason=words(text, OUTCOME))]
    said = [words(text, OUTCOME)] if one_line(text) else []
    if approval.status == ApprovalStatus.EXECUTED:
        return [fill(texts.outcome.executed, when=when), *said]
    return [
        fill(texts.outcome.unknown),
        fill(texts.outcome.look_first),
        *said,
        *what_is_known(approval, texts),
    ]


def _given_up(approval: Approval, texts: Texts) -> list[Phrase]:
    when = _ended(approval, texts)
    if approval.status == ApprovalStatus.REJECTED:
        by = who(approval.decided_by, texts)
        when = moment(approval.decided_at or approval.now, texts)
        return [fill(texts.outcome.rejected, who=by, when=when), *_reason(approval, texts.outcome.reason)]
    if approval.status == ApprovalStatus.CANCELLED:
        return [_cancelled(approval, texts, when), *_approved(approval, texts)]
    if approval.decided_at is None:
        return [fill(texts.outcome.expired, when=moment(approval.expires_at, texts))]
    return [fill(texts.outcome.expired_approved, when=when), *_approved(approval, texts)]


def _cancelled(approval: Approval, texts: Texts, when: Phrase) -> Phrase:
    by = stopped_by(approval)
    if by is None:
        return fill(texts.outcome.cancelled, when=when)
    return fill(texts.outcome.cancelled_by, when=when, who=who(by, texts))


def stopped_by(approval: Approval) -> Actor | None:
    """Who stopped the run of a cancelled approval; None: that is not known."""
    by = _outcome(approval, "by")
    return None if by is None or by["kind"] == "system" else Actor.from_json(by)


def _superseded(approval: Approval, texts: Texts, replaced_by: str | None) -> list[Phrase]:
    link = [(Link(replaced_by, texts.outcome.replaced_by),)] if replaced_by else []
    rest = [*_approved(approval, texts), *link]
    differences = what_moved(approval, texts)
    text = words(stored_why(approval.outcome or {}, texts), OUTCOME)
    unsaid = fill(texts.outcome.superseded_unsaid, reason=text)
    first = fill(texts.outcome.superseded) if differences else unsaid
    asked_anew = approval.replaced_by is not None or replaced_by is not None
    nothing_ran = texts.outcome.nothing_ran if asked_anew else texts.outcome.looking_again
    return [first, *differences, fill(nothing_ran), *rest]


def what_moved(approval: Approval, texts: Texts) -> list[Phrase]:
    """What differed when it was to run, a line each: "failed payments: 38 → 41"; [] if nothing did."""
    return [words(moved_text(one, texts), LINE) for one in (_outcome(approval, "moved") or [])[:_MOST_MOVED]]


def moved_text(moved: Any, texts: Texts) -> str:
    """What moved of one value: "failed payments: 38 → 41"; `moved` is {"kind", "name", "was", "is"}.

    With a "why" it is no value: the tool said, measured again, that it cannot be as it was shown.
    """
    said = texts.outcome
    if (why := Why.from_json(moved.get("why"))) is not None:
        return difference_text(said.check, said.as_shown, why_text(why, texts), texts)
    measured = {"count": said.count, "amount": said.amount, "items": said.items}
    name = measured.get(moved.get("kind"), moved["name"])
    return difference_text(name, moved["was"], moved["is"], texts)


def _went_through(approval: Approval, texts: Texts) -> list[Phrase]:
    done: Sequence[str] | None = _outcome(approval, "done")
    if done is None:
        return []
    if not done:
        return [fill(texts.outcome.nothing_done)] if approval.status == ApprovalStatus.FAILED else []
    template = texts.outcome.went_through.of(len(done), texts.locale)
    items = words(items_text(done, texts), LINE)
    return [fill(template, n=number_text(len(done), texts.locale), items=items)]


def _reason(approval: Approval, template: str) -> list[Phrase]:
    reason = one_line(approval.reason or "")
    return [fill(template, reason=words(reason, REASON))] if reason else []


def _ended(approval: Approval, texts: Texts) -> Phrase:
    return moment(approval.ended_at or approval.now, texts)


def _outcome(approval: Approval, part: str) -> Any:
    return (approval.outcome or {}).get(part)
