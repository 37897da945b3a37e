"""The scripted model of the demo: it reads its results as a model would, and needs no key."""

from collections.abc import Mapping
from typing import Any

from agent.scripted import Asked, ScriptedModel, Step, call, say, script, step
from agent.tools.shop.words import counted
from bot.blocks.values import amount_text
from bot.texts.en import ENGLISH

REASON = "The payment failed after the money was taken."
FIRST_WORDS = "please refund the failed payments"  # how the story begins
GREETING = "I look after the shop's payments. Ask me to refund the failed ones."
OTHER_TOOLS = (
    "I am the scripted model of the demo and know only the tools of its shop: set ANTHROPIC_API_KEY to have "
    "yours used."
)


async def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer the JSON of a Messages request with the JSON of a response."""
    asked = Asked(system="", messages=request["messages"], tools=[], closing=_closing(request))
    answered = sum(message["role"] == "assistant" for message in asked.messages)
    # the answers before this one were made by the same rules; only the next one is asked for
    steps = [step(say("…"), optional=True)] * answered
    named = {tool["name"] for tool in request.get("tools") or ()}
    following = next_step(asked) if asked.closing or "refund_payments" in named else step(say(OTHER_TOOLS))
    return ScriptedModel(script(*steps, following)).respond(request)


def next_step(asked: Asked) -> Step:
    """What to do about the last message: look, ask for the refund, look again, or report."""
    if not asked.results:
        return _begin(asked)
    last = asked.results[-1]
    if not isinstance(last, Mapping):
        return step(say(f"The tool answered: {last}"))
    if asked.closing:
        return step(say(_report(last)))
    if last.get("superseded"):
        return step(say("What was approved is no longer all there is. I look again."), _search())
    if last.get("ok") and "ids" in (last.get("data") or {}):
        return _propose(last["data"])
    return step(say(_report(last)))


def _closing(request: Mapping[str, Any]) -> bool:
    return bool(request.get("tool_choice", {}).get("type") == "none")


def _begin(asked: Asked) -> Step:
    wanted = asked.text.casefold()
    if "refund" in wanted or "payment" in wanted:
        return step(say("I look for failed payments."), _search())
    return step(say(GREETING))


def _search() -> Any:
    return call("search_payments", {"status": "failed", "limit": 500})


def _propose(found: Mapping[str, Any]) -> Step:
    if not found["ids"]:
        return step(say("No payment has failed: there is nothing to refund."))
    rationale = f"All {found['count']} failed after the money was taken, and none of them was refunded yet."
    batch = {"payment_ids": found["ids"], "reason": REASON, "rationale": rationale}
    return step(call("refund_payments", batch))


def _report(result: Mapping[str, Any]) -> str:
    data = result.get("data")
    if result.get("ok") and isinstance(data, Mapping) and "refunded" in data:
        total = amount_text(data["total"], ENGLISH.locale)
        return f"Done: {counted(data['refunded'], 'payment')} refunded, {total} in all."
    if result.get("approvalDenied"):
        who = result.get("deniedBy") or "Nobody decided in time, so it"
        reason = f" ({result['reason']})" if result.get("reason") else ""
        return f"I wanted to refund the failed payments. {who} refused{reason}, so nothing was refunded."
    return str(result.get("error") or result.get("instruction") or "I have nothing more to say.")
