"""What would become of a call if the agent made it now, with the card that people would see of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent.gaps import deciders, lack
from agent.policy import Policy
from agent.propose import Judged, Refused
from agent.rehearse import approval_to_be, rehearse_call
from agent.schema import InvalidInput
from agent.tool import Risk, Tool
from agent.verdict import Verdict
from bot.blocks import details
from bot.blocks.bounded import Message, header, lines, message
from bot.blocks.card import CardContext, card, title
from bot.blocks.phrases import words
from bot.commands.output import CommandFailed
from bot.databases import existing
from bot.fields import field_titles
from bot.house import build_house
from bot.settings import Settings
from bot.texts import Texts, texts
from store import approvals, directory
from store.engine import Database
from store.records import Actor, Approval
from store.transitions import CallStatus


@dataclass(frozen=True)
class Foreseen:
    """What would become of a call; only a forbidden one has no `approval` and no `shown`.

    `approval` is what asking would make of it, asked or not; `shown` is the card where people are asked, and
    else the same words about what would run.
    """

    tool: Tool
    verdict: Verdict
    why: str | None
    policy: Policy
    requester: Actor
    told: Mapping[str, Any] | None = None
    approval: Approval | None = None
    shown: Message | None = None

    @property
    def asked(self) -> Approval | None:
        """The approval, if people would be asked."""
        return self.approval if self.verdict is Verdict.ASK else None

    @property
    def escalates_at(self) -> datetime | None:
        """When further people are asked, if that is before there is nothing left to decide."""
        asked = self.asked
        if asked is None or asked.rule.escalate_after >= asked.rule.expires_after:
            return None
        return asked.escalate_at

    @property
    def requester_is_named(self) -> bool:
        """Whether the card has the requester's name; if not, the id, because Slack was never asked."""
        return self.requester.name != self.requester.user_id

    def deciders(self, roles: tuple[str, ...]) -> list[str]:
        """The ids of those in the roles who may decide what this requester asks for."""
        return list(self.policy.deciders(self.policy.rule_for(self.tool.name), self.requester, roles))


async def foresee(settings: Settings, tool: Tool, raw: object, requester: Actor) -> Foreseen:
    """What would become of the call now; raises CommandFailed for one that comes to no verdict."""
    async with existing(settings) as db:
        os.environ["DATABASE_URL"] = db.url  # the tools are user code and look there
        async with build_house(settings, db.url) as house:
            now = await db.now()
            requester = await _named(db, requester)
            try:
                judged = await rehearse_call(house, tool, raw, requester, now)
            except InvalidInput as error:
                raise _invalid(tool, error.fields) from error
            if isinstance(judged, Refused):
                return _refused(house.policy, tool, requester, judged)
            approval = approval_to_be(house, judged, requester, now)
            shown = await _shown(db, house.policy, texts(settings.locale), judged, approval)
            weighed = judged.weighed
            why = weighed.why.text if weighed.why else None
            return Foreseen(
                tool, weighed.verdict, why, house.policy, requester, approval=approval, shown=shown
            )


async def _named(db: Database, requester: Actor) -> Actor:
    """The requester with the name that a card would have, as far as Slack has been asked for it."""
    if requester.user_id is None:
        return requester
    name = await directory.name_of(db, requester.user_id)
    return requester if name is None else replace(requester, name=name)


def _refused(policy: Policy, tool: Tool, requester: Actor, refused: Refused) -> Foreseen:
    told: Mapping[str, Any] = refused.result.content
    if refused.status is CallStatus.INVALID:
        raise _invalid(tool, [(str(wrong["field"]), str(wrong["problem"])) for wrong in told["fields"]])
    if refused.status is not CallStatus.FORBIDDEN:
        error = str(told["error"]).strip()
        end = "" if error.endswith((".", "?", "!")) else "."
        raise CommandFailed(f"Nobody would be asked, and the agent would be told: {error}{end}")
    return Foreseen(tool, Verdict.FORBID, str(told["rule"]), policy, requester, told=told)


def _invalid(tool: Tool, fields: list[tuple[str, str]]) -> CommandFailed:
    what = "this field" if len(fields) == 1 else f"these {len(fields)} fields"
    wrong = [f"{path}: {problem}" if path else problem for path, problem in fields]
    return CommandFailed(f"The input does not fit {tool.name}: correct {what}.", wrong)


async def _shown(
    db: Database, policy: Policy, language: Texts, judged: Judged, approval: Approval
) -> Message:
    irreversible = judged.tool.risk is Risk.IRREVERSIBLE
    if judged.asks:
        context = CardContext(
            texts=language,
            irreversible=irreversible,
            deciders=deciders(policy, approval, approval.rule.approvers),
            lack=lack(policy, approval),
            overlaps=tuple(await approvals.overlaps(db, approval)),
            field_titles=field_titles(judged.tool.input),
        )
        return card(approval, context, mention=True)
    about = details.impact(approval.shown, language)
    rests_on = details.rests_on(approval.shown, language, irreversible=irreversible)
    blocks = [header(title(approval)), *(lines(said) for said in (about, rests_on) if said)]
    blocks += details.sample(approval.shown, language, as_table=True)
    return message(words(title(approval)), blocks)
