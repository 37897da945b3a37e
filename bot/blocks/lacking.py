"""What is said where too few people are left to decide, and what can be done about it."""

from agent.gaps import Lack
from bot.blocks.people import deciding_roles, moment, who
from bot.blocks.phrases import Phrase, bold, fill, joined
from bot.texts import Texts
from store.records import Approval
from store.transitions import ApprovalStatus


def lacking(approval: Approval, lack: Lack, texts: Texts) -> Phrase:
    """Who is missing, why, and until when what is to be done."""
    return joined([*(bold(why) for why in _why(approval, lack, texts)), _what_helps(approval, lack, texts)])


def _why(approval: Approval, lack: Lack, texts: Texts) -> list[Phrase]:
    said, asked = texts.card, who(approval.requester, texts)
    if lack.people == 0 and lack.four_eyes:
        nobody = said.nobody_else if lack.voted else said.nobody
        pending = approval.status is ApprovalStatus.PENDING
        return [fill(nobody if pending else said.nobody_settles, who=asked)]
    if lack.people == 0:
        nobody = said.nobody_else_has if lack.voted else said.nobody_has
        return [fill(nobody, roles=_either(deciding_roles(approval), texts))]
    template = said.too_few.of(lack.people, texts.locale)
    few = fill(template, n=str(lack.people), missing=str(lack.missing))
    return [few, *([fill(said.not_themselves, who=asked)] if lack.four_eyes else [])]


def _what_helps(approval: Approval, lack: Lack, texts: Texts) -> Phrase:
    if lack.later is not None:
        further = _either(approval.rule.escalate_to, texts)
        return fill(texts.card.then_too, when=moment(lack.later, texts), roles=further)
    able = _either(deciding_roles(approval), texts)
    if approval.status is not ApprovalStatus.PENDING:
        return fill(texts.card.unless_settled, roles=able)
    return fill(texts.card.unless, when=moment(approval.expires_at, texts), roles=able)


def _either(roles: tuple[str, ...], texts: Texts) -> str:
    return texts.line.either.join(roles)
