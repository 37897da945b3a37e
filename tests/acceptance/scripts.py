"""What the scripted model does in acceptance tests."""

from typing import Any

from agent.scripted import Asked, Script, call, expect_results, say, script, step


def found_ids(asked: Asked) -> list[str]:
    """The ids of the last search."""
    ids: list[str] = asked.result_of("search_payments")["data"]["ids"]
    return ids


def refund(asked: Asked) -> dict[str, Any]:
    """The whole batch that was found."""
    return {"payment_ids": found_ids(asked), "reason": "the charge failed"}


def refund_two(asked: Asked) -> dict[str, Any]:
    """Only the first two of what was found."""
    return {"payment_ids": found_ids(asked)[:2], "reason": "the charge failed"}


def refund_others(asked: Asked) -> dict[str, Any]:
    """All but the first two of what was found."""
    return {"payment_ids": found_ids(asked)[2:], "reason": "the charge failed"}


LOOK = step(call("search_payments", {"status": "failed", "limit": 500}))
LAST_WORDS = step(say("That is all."), expect=expect_results(1))


def ask_for_refunds(*after: Any) -> Script:
    """Look, propose the whole batch, and then what the test says (closing words if nothing)."""
    return script(
        LOOK, step(call("refund_payments", refund), expect=expect_results(1)), *(after or (LAST_WORDS,))
    )


# for tests that end while people are still asked
ONLY_ASK = script(LOOK, step(call("refund_payments", refund)), step(say("That is all."), optional=True))
NOTHING = script(step(say("Hello."), optional=True))
