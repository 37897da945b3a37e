"""Who may decide an approval, by which role, and when their votes suffice."""

from dataclasses import dataclass
from typing import Literal

from store.records import Actor, Approval, Rule, Verdict, Vote

Refusal = Literal["not_an_approver", "four_eyes"]


@dataclass(frozen=True)
class Person:
    """A person of the home workspace with the roles they have now."""

    team_id: str
    user_id: str
    name: str
    roles: frozenset[str]

    def actor(self, role: str | None = None) -> Actor:
        """Give the person as the record keeps them, acting by `role`."""
        return Actor("person", self.team_id, self.user_id, self.name, role)


def may_decide(rule: Rule, person: Person, requester: Actor, *, escalated: bool) -> Refusal | None:
    """Say why this person may not decide (approve, edit or reject), or None if they may.

    Those in `escalate_to` may decide once the approval is `escalated`.
    """
    if _deciding_role(rule, person, escalated=escalated) is None:
        return "not_an_approver"
    if rule.four_eyes and same_person(person.actor(), requester):
        return "four_eyes"
    return None


def acting_role(rule: Rule, person: Person) -> str:
    """Give the role by which the person decides, the first that the rule names; ValueError if none."""
    role = _deciding_role(rule, person, escalated=True)
    if role is None:
        raise ValueError(f"{person.user_id} has none of the roles that may decide")
    return role


def votes_after(
    approval: Approval, person: Person, verdict: Verdict, now_iso: str
) -> tuple[tuple[Vote, ...], int]:
    """Give the standing votes after this decision, and how many are still missing; 0 means it is decided.

    A person has one vote. An edit voids all others; a rejection needs nobody else and changes no vote.
    """
    if verdict == "reject":
        return approval.votes, 0
    standing = approval.votes if verdict == "approve" else ()
    actor = person.actor(acting_role(approval.rule, person))
    if not any(same_person(vote.person, actor) for vote in standing):
        standing = (*standing, Vote(actor, now_iso))
    return standing, max(approval.rule.quorum - len(standing), 0)


def same_person(one: Actor, other: Actor) -> bool:
    """Say whether two actors are the same Slack user; an actor without a user id is nobody's twin."""
    return one.user_id is not None and (one.team_id, one.user_id) == (other.team_id, other.user_id)


def _deciding_role(rule: Rule, person: Person, *, escalated: bool) -> str | None:
    deciding = (*rule.approvers, *rule.escalate_to) if escalated else rule.approvers
    return next((role for role in deciding if role in person.roles), None)
