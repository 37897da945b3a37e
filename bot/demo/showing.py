"""Shows one card on the page of a local Slack, where it can be looked at, and its buttons decide nothing."""

import asyncio
import json
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.blocks.bounded import Message
from bot.process import listen, serve, stopped_by_signals
from bot.sandbox import RateLimits, Sandbox
from bot.settings import SlackSettings
from bot.slack import Slack, connect

LOCAL, CHANNEL = "127.0.0.1", "C0APPROVALS"
NOTE = (
    "This is only a preview: nobody has asked for it, and nothing is recorded. The card would look like this:"
)
NOTHING = (
    "This is only a preview: nothing was decided, and nothing runs. `vistobueno demo` has the real ones."
)


async def show(card: Message, deciders: Sequence[str], *, port: int, opened: Callable[[str], None]) -> None:
    """Show a card to whoever may decide, until Ctrl-C; `opened` gets the page's URL. Raises PortTaken."""
    stop = asyncio.Event()
    listen(LOCAL, port).close()  # a sentence, instead of an error of the server
    async with (
        Sandbox.running(port=port, rate_limits=RateLimits.off()) as sandbox,
        connect(_settings(sandbox)) as slack,
        _answering(slack) as url,
    ):
        sandbox.connect(url)
        await slack.once.chat_postMessage(channel=CHANNEL, text=NOTE)
        await slack.once.chat_postMessage(channel=CHANNEL, **card.arguments())
        with stopped_by_signals(stop):
            opened(_address(sandbox, deciders))
            await stop.wait()


def open_browser(url: str) -> None:
    """Open the machine's browser, where there is a screen for one."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)


def _settings(sandbox: Sandbox) -> SlackSettings:
    app = sandbox.workspace.app
    return SlackSettings(app.bot_token, sandbox.api_url)


def _address(sandbox: Sandbox, deciders: Sequence[str]) -> str:
    """The approvals channel, as the first of those who may decide and who is one of the workspace."""
    user = next((user for user in deciders if user in sandbox.workspace.users), "U0MARTA")
    return f"{sandbox.base_url}/?{urlencode({'as': user, 'in': CHANNEL})}"


@asynccontextmanager
async def _answering(slack: Slack) -> AsyncIterator[str]:
    """The URL of an app that answers whatever is pressed, said or commanded: nothing happens here."""

    async def answer(request: Request) -> Response:
        who = _who_and_where(await request.body())
        if who is not None:
            user, channel = who
            await slack.once.chat_postEphemeral(channel=channel, user=user, text=NOTHING)
        return Response()

    app = Starlette(routes=[Route("/slack/events", answer, methods=["POST"])])
    stop = asyncio.Event()
    with listen(LOCAL, 0) as listening:
        serving = asyncio.create_task(serve(app, listening, stop), name="the preview's app")
        try:
            yield f"http://{LOCAL}:{listening.getsockname()[1]}"
        finally:
            stop.set()
            await serving


def _who_and_where(body: bytes) -> tuple[str, str] | None:
    """The person who did something and the channel they did it in; None for what is done in no channel."""
    if body.startswith(b"{"):
        event = json.loads(body).get("event", {})
        spoke = event.get("type") in {"app_mention", "message"} and "bot_id" not in event
        return (event["user"], event["channel"]) if spoke else None
    fields = dict(parse_qsl(body.decode()))
    if "payload" not in fields:
        return fields["user_id"], fields["channel_id"]
    payload = json.loads(fields["payload"])
    return (payload["user"]["id"], payload["channel"]["id"]) if "channel" in payload else None
