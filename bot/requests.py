"""Slack's requests, whether they came over HTTP or Socket Mode: counted, and answered by their listeners."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.after import AfterAnswer
from bot.bot import Bot

log = structlog.get_logger(__name__)

RETRY_NUMBER, RETRY_REASON = "x-slack-retry-num", "x-slack-retry-reason"


@dataclass(frozen=True)
class Answer:
    """What Slack is to be told, and what is to be begun once that is on its way."""

    response: BoltResponse
    after: AfterAnswer


@dataclass(frozen=True)
class Requests:
    """Answers what Slack sends, once bot/envelope.py has taken it."""

    bot: Bot
    bolt: AsyncApp

    async def answer(self, payload: dict[str, Any], retry: Mapping[str, str]) -> Answer:
        """Slack's answer; what it stands for is committed by then.

        `retry` has Slack's headers `x-slack-retry-num` and `x-slack-retry-reason` if this comes again.
        """
        started = time.monotonic()
        after = AfterAnswer(self.bot.tasks)
        self._note_retry(payload, retry)
        # this mode takes the payload as it was read, and leaves out the signature, which has been checked
        request = AsyncBoltRequest(
            body=payload, context={"after": after}, headers=dict(retry), mode="socket_mode"
        )
        response = await self.bolt.async_dispatch(request)
        self.bot.metrics.ack(kind_of(payload), response.status, time.monotonic() - started)
        return Answer(response, after)

    def _note_retry(self, payload: Mapping[str, Any], retry: Mapping[str, str]) -> None:
        if RETRY_NUMBER in retry:
            reason = retry.get(RETRY_REASON, "")
            self.bot.metrics.retry(reason)
            log.info("slack sends a request again", kind=kind_of(payload), reason=reason)


def kind_of(body: Mapping[str, Any]) -> str:
    """What kind of request of Slack this is, for counting: few values, none from outside."""
    kind = body.get("type")
    if kind in {"event_callback", "block_actions", "view_submission", "view_closed", "url_verification"}:
        return str(kind)
    return "command" if "command" in body else "other"
