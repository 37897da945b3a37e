"""What a listener leaves to be done once its answer to Slack is on the way."""

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from bot.tasks import Tasks

P = ParamSpec("P")


class AfterAnswer:
    """Work of one request, begun only when its answer has been sent.

    The order matters for modals: a `views.update` that overtakes the answer with `response_action: update`
    would be overwritten by it.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiting: list[Callable[[], object]] = []

    def do(self, work: Callable[P, Coroutine[Any, Any, None]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run `work(*args)` in a tracked task after the answer."""
        name = getattr(work, "__name__", "after the answer")
        self._waiting.append(lambda: self._tasks.queue(lambda: work(*args, **kwargs), name=name))

    async def begin(self) -> None:
        """The answer is sent: start everything."""
        while self._waiting:
            self._waiting.pop(0)()
