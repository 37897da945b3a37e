"""What a tool's own policy says about one call."""

from typing import Any

from agent.facts import Facts
from agent.legible import error_text
from agent.tool import Risk, Tool
from agent.verdict import Rule, Verdict, strictest
from agent.why import Code, Why, because, said


def judge(tool: Tool, input: Any, facts: Facts) -> tuple[Verdict, Why | None]:
    """Give the tool's verdict on a call, and why where a rule or a fault says so.

    The predicates are user code: run this where user code runs. It raises nothing of theirs.
    """
    if tool.risk is Risk.READ_ONLY:
        return Verdict.ALLOW, None
    heard = [heard for rule in tool.rules if (heard := _hear(tool, rule, input, facts))]
    if not heard:
        return (Verdict.ASK if tool.risk is Risk.IRREVERSIBLE else Verdict.ALLOW), None
    verdict = strictest(*(verdict for verdict, _ in heard))
    return verdict, next((why for heard_verdict, why in heard if heard_verdict is verdict and why), None)


def _hear(tool: Tool, rule: Rule, input: Any, facts: Facts) -> tuple[Verdict, Why | None] | None:
    try:
        verdict = rule.opinion(input, facts)
    except BaseException as error:  # user code may raise anything, and whatever it is, a person is asked
        return Verdict.ASK, because(Code.RULE_FAILED, tool=tool.name, error=error_text(error))
    if verdict is None:
        return None
    if verdict is not rule.hit:
        return verdict, None
    if rule.words:
        return verdict, said(rule.words)
    return verdict, because(Code.RULE_FORBIDS, tool=tool.name) if verdict is Verdict.FORBID else None
