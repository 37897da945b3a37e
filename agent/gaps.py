"""Where the policy leaves a tool with too few people to approve its calls, whatever is waited for."""

from dataclasses import dataclass

from agent.policy import Policy


@dataclass(frozen=True)
class Gap:
    """Tools whose calls can lack approvers for ever, escalated or not.

    `people` is how many have any of the `roles`, which are all that may decide. Fewer than the `quorum`:
    no call can be approved; enough for it: none that one of them asks for (four eyes).
    """

    tools: tuple[str, ...]
    roles: tuple[str, ...]
    people: int
    quorum: int


def gaps(policy: Policy) -> tuple[Gap, ...]:
    """Give the tools that can ask what nobody can approve, those with the same reason together."""
    found: dict[tuple[tuple[str, ...], int], list[str]] = {}
    for tool in policy.asking:
        rule, roles = policy.rule_for(tool), policy.deciding_roles(tool)
        if rule.quorum > len(policy.users_of(roles)) - rule.four_eyes:
            found.setdefault((roles, rule.quorum), []).append(tool)
    return tuple(
        Gap(tuple(tools), roles, len(policy.users_of(roles)), quorum)
        for (roles, quorum), tools in found.items()
    )
