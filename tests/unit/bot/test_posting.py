"""A message that Slack refuses because of its blocks is sent in a plainer form."""

from typing import Any, cast

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.blocks.bounded import Message
from bot.posting import first_accepted

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
