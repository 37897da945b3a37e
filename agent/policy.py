"""The house's policy: policy.toml, checked against the tools, and the verdict on a call."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agent.approvers import Person, Refusal, acting_role, may_decide, same_person, votes_after
from agent.canonical import digest
from agent.facts import Facts
from agent.judge import judge
from agent.policy_file import PolicyError, Section, nearest, read_text, read_toml
from agent.tool import Risk, Tool
from agent.verdict import Verdict
from agent.why import Why
from store.records import Actor, Rule

__all__ = [
    "AgentPolicy",
    "Person",
    "Policy",
    "PolicyError",
    "Refusal",
    "acting_role",
    "load_policy",
    "may_decide",
    "same_person",
    "verdict_of",
    "votes_after",
    "warnings",
]

_RULE_KEYS = frozenset(
    {
        "approvers",
        "channel",
        "claim_within",
        "escalate_after",
        "escalate_to",
        "expires_after",
        "four_eyes",
        "quorum",
    }
)
_AGENT_KEYS = frozenset({"name", "instructions", "max_steps", "max_tokens", "model"})
# Slack's ids: https://docs.slack.dev/reference/objects/user-object and …/conversation-object
_USER_ID = re.compile(r"[UW][A-Z0-9]{2,}")
_CHANNEL_ID = re.compile(r"[CG][A-Z0-9]{2,}")
_MOST_STEPS = 1000
_MOST_TOKENS = 10**9
_LONGEST_NAME = 80


@dataclass(frozen=True)
class AgentPolicy:
    """The [agent] table; `instructions` is the text, `max_steps` and `max_tokens` are budgets of a run."""

    name: str
    instructions: str
    max_steps: int
    max_tokens: int | None
    model: str | None


@dataclass(frozen=True)
class Policy:
    """What policy.toml says, checked against the tools.

    `digest` is the SHA-256 of the file's values and the instructions; `asking` are the tools that can ask.
    Without `home_team` nobody has a role.
    """

    file: str
    agent: AgentPolicy
    roles: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, Rule]
    asking: tuple[str, ...]
    digest: str
    home_team: str | None = None

    def at_home(self, team_id: str) -> "Policy":
        """Give the policy for the workspace that `auth.test` names: roles hold there and nowhere else."""
        return replace(self, home_team=team_id)

    def rule_for(self, tool_name: str) -> Rule:
        """Give who decides the tool's calls and how long they wait; KeyError for an unknown tool.

        Its `four_eyes` is already false for a reversible tool, unless the tool's own table says otherwise.
        """
        return self.rules[tool_name]

    def roles_of(self, team_id: str, user_id: str) -> frozenset[str]:
        """Give the roles of a Slack user: none for anybody unknown or of another workspace."""
        if self.home_team is None or team_id != self.home_team:
            return frozenset()
        return frozenset(role for role, users in self.roles.items() if user_id in users)

    def users_of(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Give the user ids that have any of the roles, each once, in the file's order."""
        return _people(self.roles, roles)

    def deciders(self, rule: Rule, requester: Actor, roles: Iterable[str]) -> tuple[str, ...]:
        """Give the user ids of the roles without the requester, who decides nothing under four eyes."""
        barred = requester.user_id if rule.four_eyes else None
        return tuple(user for user in self.users_of(roles) if user != barred)

    def deciding_roles(self, tool_name: str) -> tuple[str, ...]:
        """Give the roles that may ever decide the tool's calls, those of an escalation in time included."""
        return _deciding(self.rule_for(tool_name))

    def without(self, users: Collection[str]) -> "Policy":
        """Give the policy as it works when these user ids decide nothing: roles may be empty in it."""
        left = {role: tuple(u for u in all_ if u not in users) for role, all_ in self.roles.items()}
        return replace(self, roles=MappingProxyType(left))


def load_policy(path: str | Path, tools: Mapping[str, Tool], *, home_team: str | None = None) -> Policy:
    """Read and check the policy and the instructions it names; PolicyError is one sentence for a person."""
    top = read_toml(Path(path)).only({"agent", "defaults", "roles", "tools"})
    roles = {name: _read_role(top.table("roles"), name) for name in top.table("roles").values}
    defaults = top.table("defaults").only(_RULE_KEYS)
    _read_rule(defaults, defaults, roles)  # the defaults must hold by themselves, even with no tool at all
    for name in top.table("tools").values:
        _check_tool_table(top.table("tools"), name, tools)
    rules = {
        name: _rule_of_tool(defaults, top.table("tools").table(name), roles, tool)
        for name, tool in tools.items()
    }
    agent = _read_agent(top.table("agent"), Path(path))
    return Policy(
        file=str(path),
        agent=agent,
        roles=MappingProxyType(roles),
        rules=MappingProxyType(rules),
        asking=tuple(name for name, tool in tools.items() if tool.can_ask),
        digest=digest({"policy": top.values, "instructions": agent.instructions}),
        home_team=home_team,
    )


def verdict_of(tool: Tool, input: Any, facts: Facts) -> tuple[Verdict, Why | None]:
    """Give the verdict on a call, and why where a rule says so.

    It applies the tool's predicates, which are user code: run it where user code runs.
    """
    return judge(tool, input, facts)


def warnings(policy: Policy) -> tuple[str, ...]:
    """Give a sentence for each rule that is allowed but may leave a call with nobody to decide it."""
    told: dict[str, list[str]] = {}
    for tool in policy.asking:
        for warning in _warnings_of(policy.roles, policy.rule_for(tool)):
            told.setdefault(warning, []).append(tool)
    return tuple(f"{policy.file}: {', '.join(tools)}: {warning}" for warning, tools in told.items())


def _warnings_of(roles: Mapping[str, tuple[str, ...]], rule: Rule) -> list[str]:
    approvers, quorum = len(_people(roles, rule.approvers)), rule.quorum
    if quorum > approvers:
        return [f"the quorum of {quorum} is reached only after the escalation; name more approvers."]
    if rule.four_eyes and quorum > approvers - 1:
        who = "the only approver" if approvers == 1 else "one of the approvers"
        return [
            f"four_eyes is on, so what {who} asks for cannot be approved"
            + (" before the escalation" if _can_escalate(rule) else "")
            + "; name more approvers."
        ]
    return []


def _can_escalate(rule: Rule) -> bool:
    # an escalation at expiry only tells people: there is nothing left to decide
    return bool(rule.escalate_to) and rule.escalate_after < rule.expires_after


def _deciding(rule: Rule) -> tuple[str, ...]:
    named = (*rule.approvers, *rule.escalate_to) if _can_escalate(rule) else rule.approvers
    return tuple(dict.fromkeys(named))


def _people(roles: Mapping[str, tuple[str, ...]], wanted: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(user for role in wanted for user in roles.get(role, ())))


def _read_agent(section: Section, policy_path: Path) -> AgentPolicy:
    section.only(_AGENT_KEYS)
    name = section.text("name")
    if name is None:
        raise section.fault("name", 'is missing; write it like name = "Refund helper"')
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise section.fault("name", f"must be one line of at most {_LONGEST_NAME} characters")
    max_steps = section.whole("max_steps", 12, least=1, most=_MOST_STEPS)
    assert max_steps is not None, "it has a default"
    return AgentPolicy(
        name=name.strip(),
        instructions=_read_instructions(section, policy_path),
        max_steps=max_steps,
        max_tokens=section.whole("max_tokens", least=1, most=_MOST_TOKENS),
        model=section.text("model"),
    )


def _read_instructions(section: Section, policy_path: Path) -> str:
    named = section.text("instructions")
    if named is None:
        return ""
    path = policy_path.parent / named
    text = read_text(path, f"instructions in [agent] of {policy_path}").strip()
    if not text:
        raise section.fault("instructions", f"names {path}, which is empty; write there what the agent does")
    return text


def _read_role(roles: Section, name: str) -> tuple[str, ...]:
    if not name.strip() or not name.isprintable():
        raise roles.fault(repr(name), "is no name of a role; write it like [roles.support_lead]")
    section = roles.table(name).only({"users"})
    users = section.texts("users", '"U0MARTA"')
    for user in users:
        if not _USER_ID.fullmatch(user):
            raise section.fault(
                "users",
                f"has {user!r}; write the member ID that Slack shows in the person's profile, like U0MARTA",
            )
    return users


def _check_tool_table(section: Section, name: str, tools: Mapping[str, Tool]) -> None:
    if name not in tools:
        raise section.fault(f'"{name}"', f"is not a tool; {nearest(name, tools)}")
    section.table(name).only(_RULE_KEYS)
    if not tools[name].can_ask:
        raise section.fault(f'"{name}"', f"is a read-only tool, which never asks; remove [tools.{name}]")


def _rule_of_tool(defaults: Section, own: Section, roles: Mapping[str, tuple[str, ...]], tool: Tool) -> Rule:
    rule = _read_rule(defaults, own, roles)
    if own.has("four_eyes") or tool.risk is Risk.IRREVERSIBLE:
        return rule
    return replace(rule, four_eyes=False)


def _read_rule(defaults: Section, own: Section, roles: Mapping[str, tuple[str, ...]]) -> Rule:
    def of(key: str) -> Section:
        return own if own.has(key) else defaults

    quorum = of("quorum").whole("quorum", 1, least=1, most=1000)
    assert quorum is not None, "it has a default"
    rule = Rule(
        approvers=_read_roles(of("approvers"), "approvers", roles),
        escalate_to=_read_roles(of("escalate_to"), "escalate_to", roles, optional=True),
        quorum=quorum,
        four_eyes=of("four_eyes").flag("four_eyes", True),
        expires_after=of("expires_after").seconds("expires_after", "24h", most="7d"),
        escalate_after=of("escalate_after").seconds("escalate_after", "4h", most="7d"),
        claim_within=of("claim_within").seconds("claim_within", "1h", most="24h"),
        channel=_read_channel(of("channel")),
    )
    people = len(_people(roles, _deciding(rule)))
    if quorum > people:
        whose = f" ([{own.name}])" if own is not of("quorum") else ""
        raise of("quorum").fault(
            "quorum",
            f"is {quorum}, but only {people} {'person' if people == 1 else 'people'} could decide{whose}; "
            "lower it, or give the approvers' roles more users",
        )
    return rule


def _read_roles(
    section: Section, key: str, roles: Mapping[str, tuple[str, ...]], optional: bool = False
) -> tuple[str, ...]:
    # nobody to escalate to is a choice, nobody to approve is a fault
    if optional and section.values.get(key, []) == []:
        return ()
    named = section.texts(key, '"support_lead"')
    for role in named:
        if role not in roles:
            raise section.fault(
                key, f"names the role {role!r}, which has no [roles.{role}]; {nearest(role, roles)}"
            )
    return named


def _read_channel(section: Section) -> str:
    channel = section.text("channel")
    if channel is None:
        raise section.fault("channel", 'is missing; write the channel\'s ID, like channel = "C0APPROVALS"')
    if not _CHANNEL_ID.fullmatch(channel):
        raise section.fault(
            "channel", f"is {channel!r}; write the ID from the channel's details, like C0APPROVALS"
        )
    return channel
