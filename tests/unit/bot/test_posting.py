"""A message that cannot be made, or whose blocks Slack refuses, is sent in a plainer form."""

from typing import Any, cast

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.blocks.bounded import Message
from bot.posting import GROWS_UNTIL, Fault, Held, first_accepted
from store.records import UPDATES

FORMS = [lambda: Message("full", ()), lambda: Message("plainer", ()), lambda: Message("plain", ())]


def refusal(code: str, status: int = 200, **headers: str) -> SlackApiError:
    """Slack's answer with an error, as its client raises it; without a code, of something in between."""
    answer = AsyncSlackResponse(
        client=None,
        http_verb="POST",
        api_url="",
        req_args={},
        data={"ok": False, "error": code} if code else {},
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        status_code=status,
    )
    make: Any = SlackApiError  # its constructor has no types
    return cast(SlackApiError, make("refused", answer))


class Refusing:
    """Slack refuses the first messages, each with its error."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.sent: list[str] = []

    async def __call__(self, message: Message) -> str:
        self.sent.append(message.text)
        if self.errors:
            raise refusal(self.errors.pop(0))
        return message.text


@pytest.mark.parametrize("code", ["invalid_blocks", "invalid_attachments", "msg_too_long"])
async def test_a_message_whose_blocks_are_refused_is_sent_in_its_next_form(code: str) -> None:
    assert await first_accepted(Refusing(code), FORMS) == "plainer"
    assert await first_accepted(Refusing(code, code), FORMS) == "plain"


async def test_another_refusal_is_not_met_with_another_form() -> None:
    slack = Refusing("channel_not_found")
    with pytest.raises(SlackApiError):
        await first_accepted(slack, FORMS)
    assert slack.sent == ["full"]


def broken() -> Message:
    """A form that cannot be made."""
    raise ValueError("no such colour")


async def test_a_form_that_cannot_be_made_gives_way_to_the_next_and_the_log_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await first_accepted(Refusing(), [broken, *FORMS]) == "full"
    assert await first_accepted(Refusing("invalid_blocks"), [FORMS[0], broken, FORMS[2]]) == "plain"
    assert "no such colour" in "".join(capsys.readouterr())


async def test_when_no_form_can_be_made_the_fault_is_raised_and_nothing_is_sent() -> None:
    slack = Refusing()
    with pytest.raises(ValueError, match="no such colour"):
        await first_accepted(slack, [broken, broken])
    assert slack.sent == []


async def test_when_the_only_form_that_can_be_made_is_refused_the_refusal_is_raised() -> None:
    with pytest.raises(SlackApiError):
        await first_accepted(Refusing("invalid_blocks"), [FORMS[0], broken])


def test_a_fault_of_ours_is_not_called_a_silence_of_slack() -> None:
    assert Fault.of(ValueError("x")).code == "a fault of the bot's own (ValueError)"
    assert Fault.of(TimeoutError()).code == "no answer from Slack (TimeoutError)"


LIMITED = refusal("ratelimited", 429, Retry_After="7")
UNANSWERED = [TimeoutError(), refusal("", 502), refusal("", 504), refusal("internal_error", 500)]
OUTAGES = [*UNANSWERED, refusal("fatal_error"), refusal("invalid_auth"), refusal("token_revoked")]


def failures_after(error: Exception, times: int) -> int:
    """How many failures count once it has gone wrong so often."""
    failures = 0
    for _ in range(times):
        failures += Fault.of(error).counts(failures)
    return failures


def test_what_slack_asks_to_wait_for_is_no_failure() -> None:
    assert failures_after(LIMITED, 100) == 0
    assert failures_after(refusal("rate_limited"), 100) == 0


@pytest.mark.parametrize("error", OUTAGES)
def test_an_outage_makes_the_pauses_grow_and_uses_up_no_more_tries(error: Exception) -> None:
    assert failures_after(error, 100) == GROWS_UNTIL
    assert Fault.of(error).retry_in(GROWS_UNTIL) == Fault.of(error).retry_in(100) == 300.0
    assert Fault.of(refusal("channel_not_found")).counts(GROWS_UNTIL)


@pytest.mark.parametrize("error", UNANSWERED)
def test_what_stands_between_us_and_slack_has_not_spoken_for_slack(error: Exception) -> None:
    assert Fault.of(error).unanswered


@pytest.mark.parametrize("error", [LIMITED, refusal("is_archived"), refusal("", 413), ValueError("x")])
def test_what_slack_has_refused_it_does_not_do_later(error: Exception) -> None:
    assert not Fault.of(error).unanswered


def test_where_slack_wants_nothing_sent_is_held_for_as_long_as_it_asks() -> None:
    now = 0.0
    held = Held(lambda: now)
    for place, error in (("C1", LIMITED), (UPDATES, LIMITED), ("C2", refusal("is_archived"))):
        with pytest.raises(SlackApiError), held.told(place):
            raise error
    with held.told("C3"):
        pass
    assert held.places() == ["C1", UPDATES]
    now = 6.9
    with pytest.raises(SlackApiError), held.told("C1"):
        raise refusal("ratelimited", 429, Retry_After="1")
    assert held.places() == ["C1", UPDATES]
    now = 7.95
    assert held.places() == []
