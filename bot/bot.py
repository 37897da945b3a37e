"""What every listener is given: the house, for clicks and for background work, Slack, and words."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.house import House
from bot.identity import Directory
from bot.metrics import Metrics
from bot.private import PrivateAnswers
from bot.publish import SlackPublisher
from bot.slack import Slack, Team
from bot.tasks import Tasks
from bot.texts import Texts
from bot.wake import Wake
from store.errors import Unconfirmed

ACK_SECONDS = 2.5  # of Slack's 3: what remains is for the network

T = TypeVar("T")


@dataclass(frozen=True)
class Bot:
    """The parts of a web process; frozen, but each part lives."""

    clicks: House
    """The house on a small pool, whose statements end after 2 s: for what is answered within 3 s."""
    house: House
    """The house for background work."""
    directory: Directory
    slack: Slack
    team: Team
    texts: Texts
    tasks: Tasks
    metrics: Metrics
    publisher: SlackPublisher
    private: PrivateAnswers
    publishing: Wake
    """Called when cards have fallen behind their rows, or something is to be said in a thread."""

    async def durably(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work` if it is there in time for the answer to Slack.

        Raises Unconfirmed when it is not; `work` then goes on.
        """
        try:
            return await self.tasks.in_time(work, "durable", ACK_SECONDS)
        except TimeoutError as error:
            raise Unconfirmed("The database did not answer in time for Slack.") from error
