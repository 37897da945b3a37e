"""Who and where, in words: people, the policy, roles, channels and moments."""

from collections.abc import Iterable
from datetime import datetime

from bot.blocks.limits import NAME
from bot.blocks.phrases import Channel, Phrase, When, joined, words
from bot.texts import Texts
from store.records import Actor, Approval, Conversation


def who(actor: Actor | None, texts: Texts) -> Phrase:
    """A person by name and role, never as a mention; the others by what they are."""
    if actor is None or actor.kind == "model":
        return words(texts.common.model)
    match actor.kind:
        case "person":
            name = actor.name or actor.user_id or ""
            if actor.role is None:
                return words(name, NAME)
            return words(texts.common.person.format(name=_short(name), role=_short(actor.role)), 2 * NAME)
        case "operator":
            return words(texts.common.operator)
        case "policy":
            return words(texts.common.policy)
        case "system":
            return words(texts.common.system)


def people(actors: Iterable[Actor], texts: Texts) -> Phrase:
    """Several actors, after one another."""
    return joined((who(actor, texts) for actor in actors), ", ")


def voters(approval: Approval, texts: Texts) -> Phrase:
    """Everybody whose approval stands, or else who decided."""
    if not approval.votes:
        return who(approval.decided_by, texts)
    return people((vote.person for vote in approval.votes), texts)


def roles(names: Iterable[str]) -> str:
    """Roles in the order of the policy."""
    return ", ".join(names)


def deciding_roles(approval: Approval) -> tuple[str, ...]:
    """The roles that may decide now; those of the escalation only once it has happened."""
    asked = approval.rule.approvers
    further = approval.rule.escalate_to if approval.escalated_at is not None else ()
    return tuple(dict.fromkeys((*asked, *further)))


def place(conversation: Conversation, texts: Texts) -> Phrase:
    """The channel of a conversation; a direct message has no name to show."""
    if conversation.channel_id.startswith("D"):
        return words(texts.common.direct_message)
    return (Channel(conversation.channel_id),)


def moment(at: datetime, texts: Texts) -> Phrase:
    """A moment in each reader's own time zone."""
    return (When(at, texts.common.moment),)


def _short(name: str) -> str:
    (part,) = words(name, NAME)
    return part.plain()
