"""Clients of Slack's Web API: one that retries, one that posts once, one that must answer within 2 s."""

import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
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
from bot.slack_errors import SlackRefusedToken, SlackUnreachable
from bot.slack_json import at, maybe

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


OF_A_TEAM = ("team_id", "url", "user_id")
NO_SLACK = "no_slack"
"""What `error_code` gives for what is no answer of Slack."""
NO_SOCKET_MODE = "forbidden_team"
"""https://docs.slack.dev/reference/methods/apps.connections.open: no Socket Mode for this app here."""


class NotSlack(SlackApiError):
    """What answered a call is no answer of Slack to it; whether it was carried out is not known."""

    def __init__(self, api_url: str) -> None:
        super().__init__("", None)  # type: ignore[no-untyped-call]
        self._base = api_url[: api_url.rfind("/") + 1]

    def __str__(self) -> str:
        return f"What answers at {self._base} is no Slack Web API: check SLACK_API_URL."


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
        team_id, url, user_id = (told(answer, name) for name in OF_A_TEAM)
        return Team(team_id, url, user_id, maybe(_object(answer), "bot_id"))


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
        answer = await client.auth_test()
        for name in OF_A_TEAM:
            told(answer, name)
        return answer


async def open_socket(client: AsyncWebClient, app_token: str) -> str:
    """The URL of a WebSocket for Socket Mode, good for one connection that is made soon.

    Raises SlackRefusedToken or SlackUnreachable.
    """
    with _explained(client.base_url, _app_token_refused):
        answer = await client.apps_connections_open(app_token=app_token)
        url = told(answer, "url")
        if not url.startswith(("wss://", "ws://")):
            raise NotSlack(answer.api_url)
    return url


async def channel_of(client: AsyncWebClient, channel_id: str) -> Mapping[str, Any]:
    """Slack's answer about a channel (conversations.info); raises what the client raises."""
    answer = await client.conversations_info(channel=channel_id)
    channel = at(_object(answer), "channel")
    if not isinstance(channel, Mapping):
        raise NotSlack(answer.api_url)
    return channel


def told(answer: AsyncSlackResponse, *path: str) -> str:
    """The text at a path of Slack's answer; raises NotSlack without one."""
    text = maybe(_object(answer), *path)
    if text is None:
        raise NotSlack(answer.api_url)
    return text


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
    if isinstance(error, NotSlack):
        return NO_SLACK
    response = error.response
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return str(code or f"http_{getattr(response, 'status_code', 'error')}")


@contextmanager
def _explained(url: str, refused: Callable[[str], str]) -> Iterator[None]:
    """Errors as sentences; `refused` says what to do when Slack's code speaks of the token."""
    try:
        yield
    except NotSlack as error:
        raise SlackUnreachable(str(error)) from error
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


def _object(answer: AsyncSlackResponse) -> Mapping[str, Any]:
    return answer.data if isinstance(answer.data, dict) else {}


class _Client(AsyncWebClient):
    """The SDK's client, which takes only objects for answers: it fails at everything else that is JSON."""

    async def _request(self, *, http_verb: str, api_url: str, req_args: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await super()._request(http_verb=http_verb, api_url=api_url, req_args=req_args)
        except (SlackApiError, UnicodeDecodeError, LookupError, RecursionError) as error:
            # a body that is no JSON, or in no known encoding
            if getattr(getattr(error, "response", None), "status", 200) != 200:
                raise
            raise NotSlack(api_url) from error
        data = answer["data"]
        if answer["status_code"] == 200 and not _is_of_slack(data):
            raise NotSlack(api_url)
        return answer if isinstance(data, dict) else {**answer, "data": {}}


def _is_of_slack(data: object) -> bool:
    """https://docs.slack.dev/apis/web-api: it worked, or a code says why not."""
    match data:
        case {"ok": True} | {"ok": False, "error": str()}:
            return True
    return False


def _session(connector: aiohttp.TCPConnector, seconds: float) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=seconds)
    return aiohttp.ClientSession(connector=connector, connector_owner=False, timeout=timeout)


def _client(
    settings: SlackSettings, session: aiohttp.ClientSession, retries: list[AsyncRetryHandler]
) -> AsyncWebClient:
    client = _Client(
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
