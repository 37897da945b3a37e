"""A tool's own policy: rules over (input, facts) that say allow, ask or forbid."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

# Any: a predicate knows its own input model and which facts its tool measures
Predicate: TypeAlias = Callable[[Any, Any], bool]


class Verdict(StrEnum):
    """What a policy says about one call, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    FORBID = "forbid"


_STRICTNESS = tuple(Verdict)


@dataclass(frozen=True)
class Rule:
    """One rule of a policy: `hit` where the predicate holds (always, without one), else `miss`."""

    hit: Verdict
    when: Predicate | None = None
    miss: Verdict | None = None
    words: str | None = None

    def opinion(self, input: Any, facts: Any) -> Verdict | None:
        """Apply the rule; raises what the predicate raises, and TypeError for an answer that is no bool."""
        if self.when is None:
            return self.hit
        answer = self.when(input, facts)
        if not isinstance(answer, bool):
            # a predicate that forgot its `return` would otherwise allow everything
            raise TypeError(f"the predicate answered {answer!r} instead of True or False")
        return self.hit if answer else self.miss


always_ask = Rule(Verdict.ASK)
never_ask = Rule(Verdict.ALLOW)


def ask_when(predicate: Predicate, words: str | None = None) -> Rule:
    """Ask where predicate(input, facts) holds, allow elsewhere; `words` say why."""
    return Rule(Verdict.ASK, predicate, Verdict.ALLOW, words)


def forbid_when(predicate: Predicate, words: str | None = None) -> Rule:
    """Forbid where predicate(input, facts) holds; elsewhere the other rules, or the tool's risk, decide."""
    return Rule(Verdict.FORBID, predicate, None, words)


def strictest(*verdicts: Verdict) -> Verdict:
    """Give the strictest of one or more verdicts."""
    return max(verdicts, key=_STRICTNESS.index)
