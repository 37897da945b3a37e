"""Clients of Slack's Web API: one that retries, one that posts once, one that must answer within 2 s."""

import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.settings import SlackSettings

PATIENT_SECONDS = 30.0
ONCE_SECONDS = 8.0
QUICK_SECONDS = 2.0
UNREACHABLE = (aiohttp.ClientError, TimeoutError)
"""What a call that got no answer raises; whether it was carried out is not known."""
RATE_LIMITED = frozenset({"rate_limited", "ratelimited"})
BROKEN = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
"""Slack failed in the middle: "some aspect of the operation" may have succeeded."""
PASSING = RATE_LIMITED | BROKEN
"""https://docs.slack.dev/reference/methods/auth.test: errors that say nothing about the token."""


NO_SOCKET_MODE = "forbidden_team"
"""https://docs.slack.dev/reference/methods/apps.connections.open: no Socket Mode for this app here."""


class SlackRefusedToken(Exception):
    """Slack does not take the bot's token, or the app's; the text says what to do."""


class SlackUnreachable(Exception):
    """Nothing that speaks for Slack answered; the text says what to do.

    `retry_after` is the seconds that Slack asks to wait, if it does.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


@dataclass(frozen=True)
class Team:
    """The workspace the token belongs to, and who the bot is in it."""

    team_id: str
    url: str
    bot_user_id: str
    bot_id: str | None


@dataclass(frozen=True)
class Slack:
    """The three clients, and a plain session for response URLs."""

    patient: AsyncWebClient
    """Retries after 429, server errors and lost connections: only for what may be done twice."""
    once: AsyncWebClient
    """Never retries, 8 s: a lost answer of chat.postMessage must not become two messages."""
    quick: AsyncWebClient
    """Never retries and gives up after 2 s: for what a person waits for."""
    session: aiohttp.ClientSession

    async def team(self) -> Team:
        """Who the token is (auth.test); raises SlackRefusedToken or SlackUnreachable."""
        answer = await introduce(self.patient)
        return Team(answer["team_id"], answer["url"], answer["user_id"], answer.get("bot_id"))


@asynccontextmanager
async def connect(settings: SlackSettings) -> AsyncIterator[Slack]:
    """The clients for the Web API that the settings name; nothing is sent yet."""
    connector = aiohttp.TCPConnector()
    try:
        async with (
            _session(connector, PATIENT_SECONDS) as patient,
            _session(connector, ONCE_SECONDS) as once,
            _session(connector, QUICK_SECONDS) as quick,
        ):
            yield Slack(
                patient=_client(settings, patient, _retries()),
                once=_client(settings, once, []),
                quick=_client(settings, quick, []),
                session=once,
            )
    finally:
        await connector.close()


async def introduce(client: AsyncWebClient) -> AsyncSlackResponse:
    """Slack's answer about the client's token (auth.test); raises SlackRefusedToken or SlackUnreachable."""
    with _explained(client.base_url, _bot_token_refused):
        return await client.auth_test()


async def open_socket(client: AsyncWebClient, app_token: str) -> str:
    """The URL of a WebSocket for Socket Mode, good for one connection that is made soon.

    Raises SlackRefusedToken or SlackUnreachable.
    """
    with _explained(client.base_url, _app_token_refused):
        answer = await client.apps_connections_open(app_token=app_token)
    url = str(answer.get("url"))
    if not url.startswith(("wss://", "ws://")):
        raise SlackUnreachable(f"{client.base_url} does not answer as Slack does: check SLACK_API_URL.")
    return url


def is_direct(url: str) -> bool:
    """Whether a URL is to be reached without the proxy that HTTPS_PROXY or HTTP_PROXY name."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or proxy_bypass(host):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def error_code(error: SlackApiError) -> str:
    """Slack's name for what went wrong, or the HTTP status when the answer had none."""
    response = error.response
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return str(code or f"http_{getattr(response, 'status_code', 'error')}")


@contextmanager
def _explained(url: str, refused: Callable[[str], str]) -> Iterator[None]:
    """Errors as sentences; `refused` says what to do when Slack's code speaks of the token."""
    try:
        yield
    except SlackApiError as error:
        code = error_code(error)
        if code.startswith("http_"):  # not Slack's JSON
            raise SlackUnreachable(
                f"{url} does not answer as Slack does ({code}): check SLACK_API_URL, or try again later."
            ) from error
        if code in PASSING:
            raise SlackUnreachable(
                f"Slack cannot answer now ({code}): try again later.", retry_after(error)
            ) from error
        raise SlackRefusedToken(refused(code)) from error
    except UNREACHABLE as error:
        raise SlackUnreachable(
            f"Slack cannot be reached at {url} ({_reason(error)}): check the network and SLACK_API_URL."
        ) from error


def _bot_token_refused(code: str) -> str:
    return (
        f"Slack does not take SLACK_BOT_TOKEN ({code}): copy the Bot User OAuth Token "
        "from your Slack app's page OAuth & Permissions, and check SLACK_API_URL."
    )


def _app_token_refused(code: str) -> str:
    if code == NO_SOCKET_MODE:
        return (
            f"Slack opens no Socket Mode for this app ({code}): turn it on on your Slack app's page "
            "Socket Mode, or unset SLACK_APP_TOKEN."
        )
    return (
        f"Slack does not take SLACK_APP_TOKEN ({code}): copy the App-Level Token with connections:write "
        "from your Slack app's page Basic Information, or unset it and let Slack send to a request URL."
    )


def retry_after(error: SlackApiError) -> float | None:
    """The seconds that Slack asks to wait (429), or None."""
    if getattr(error.response, "status_code", None) != 429 and error_code(error) not in RATE_LIMITED:
        return None
    headers = {name.lower(): value for name, value in error.response.headers.items()}
    value = headers.get("retry-after", "1")
    return float(value) if value.isdecimal() else 1.0


def message_link(team: Team, channel_id: str, ts: str, thread_ts: str | None = None) -> str:
    """A message's permalink, in the form that chat.getPermalink gives."""
    link = f"{team.url.rstrip('/')}/archives/{channel_id}/p{ts.replace('.', '')}"
    return link if thread_ts in (None, ts) else f"{link}?thread_ts={thread_ts}&cid={channel_id}"


def _reason(error: Exception) -> str:
    cause = getattr(error, "os_error", None)
    if isinstance(cause, socket.gaierror):
        return "its name is not known"
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno)
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__


def _session(connector: aiohttp.TCPConnector, seconds: float) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=seconds)
    return aiohttp.ClientSession(connector=connector, connector_owner=False, timeout=timeout)


def _client(
    settings: SlackSettings, session: aiohttp.ClientSession, retries: list[AsyncRetryHandler]
) -> AsyncWebClient:
    client = AsyncWebClient(
        token=settings.bot_token, base_url=settings.api_url, session=session, retry_handlers=retries
    )
    if is_direct(settings.api_url):
        client.proxy = None  # the SDK takes HTTPS_PROXY and HTTP_PROXY and never looks at NO_PROXY
    return client


def _retries() -> list[AsyncRetryHandler]:
    return [
        AsyncConnectionErrorRetryHandler(max_retry_count=1),
        AsyncRateLimitErrorRetryHandler(max_retry_count=2),
        AsyncServerErrorRetryHandler(max_retry_count=2),
    ]
