"""A message that cannot be made, or whose blocks Slack refuses, is sent in a plainer form."""

from typing import Any, cast

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.blocks.bounded import Message
from bot.posting import Fault, first_accepted

FORMS = [lambda: Message("full", ()), lambda: Message("plainer", ()), lambda: Message("plain", ())]


def refusal(code: str) -> SlackApiError:
    """Slack's answer with an error, as its client raises it."""
    answer = AsyncSlackResponse(
        client=None,
        http_verb="POST",
        api_url="",
        req_args={},
        data={"ok": False, "error": code},
        headers={},
        status_code=200,
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


@pytest.mark.parametrize("code", ["invalid_blocks", "invalid_attachments"])
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
