"""Composition root: settings and the house without Slack → Slack, the bot, Bolt and the HTTP app."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from fastapi import FastAPI
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from agent.house import House
from agent.leases import LEASE_SECONDS
from agent.worker import Worker
from bot.bot import Bot
from bot.health import Health
from bot.house import build_house
from bot.identity import Directory
from bot.listeners import register_all
from bot.metrics import Metrics
from bot.private import PrivateAnswers
from bot.publish import SlackPublisher
from bot.requests import Requests
from bot.settings import RequestSettings, Settings
from bot.slack import Slack, Team, connect
from bot.socket_mode import SocketMode
from bot.tasks import Tasks
from bot.texts import texts
from bot.wake import Wake
from bot.web import create_http
from store.engine import Database

CLICK_STATEMENT_SECONDS = 2.0
CLICK_WAIT_SECONDS = 2.0  # for a connection: then it is certain that nothing was recorded
CLICK_POOL = 10
BACKGROUND_POOL = 4  # apart from the worker's, whose leases must be renewed whatever people press
DRAIN_SECONDS = 1.0  # what is left after the process has already waited for it


@dataclass(frozen=True)
class App:
    """A wired process: its HTTP app and Socket Mode where it serves, and the worker that shares its house."""

    http: FastAPI | None
    worker: Worker
    bot: Bot
    socket_mode: SocketMode | None = None


@asynccontextmanager
async def build(
    settings: Settings, command: str, *, serves: bool = True, lease: float = LEASE_SECONDS
) -> AsyncIterator[App]:
    """All that a process needs, checked: the database's tables and Slack's tokens; HTTP only if it `serves`.

    `lease`: the seconds that the worker's leases last.
    Raises SettingsError, PolicyError, ToolsError, StoreError or SlackRefusedToken, each one sentence.
    """
    database_url, slack_settings = settings.require_database(command), settings.require_slack(command)
    incoming = settings.require_requests(command) if serves else None
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(connect(slack_settings))
        team = await slack.team()
        house = await stack.enter_async_context(build_house(settings, database_url, team_id=team.team_id))
        await house.db.check()
        clicks = Database.open(
            database_url,
            pool_size=CLICK_POOL,
            statement_timeout=CLICK_STATEMENT_SECONDS,
            wait=CLICK_WAIT_SECONDS,
        )
        background = Database.open(database_url, pool_size=BACKGROUND_POOL)
        for db in (clicks, background):
            stack.push_async_callback(db.close)
        tasks = Tasks()
        stack.push_async_callback(tasks.drain, DRAIN_SECONDS)
        bot = make_bot(settings, replace(house, db=background), replace(house, db=clicks), slack, team, tasks)
        stack.push_async_callback(bot.publisher.close)
        await stack.enter_async_context(_publishing(bot))
        working = replace(house, progress=bot.publisher.lines.following)
        worker = Worker(working, bot.publisher, name=bot.publisher.name, lease=lease)
        if incoming is None:
            yield App(None, worker, bot)
            return
        http, socket_mode = make_inlets(bot, incoming, slack_settings.api_url)
        if socket_mode is not None:
            await socket_mode.check_token()
        yield App(http, worker, bot, socket_mode)


def make_inlets(bot: Bot, incoming: RequestSettings, api_url: str) -> tuple[FastAPI, SocketMode | None]:
    """The HTTP app, and Socket Mode if there is a token for it, with Bolt and every listener behind them."""
    bolt = make_bolt(incoming.signing_secret or "", bot.team, api_url)
    register_all(bolt, bot)
    requests, socket_mode = Requests(bot, bolt), None
    if incoming.app_token is not None:
        socket_mode = SocketMode(bot.slack.patient, incoming.app_token, requests)
    health = Health(bot.house.db, bot.slack, bot.house.user_code, bot.tasks, socket_mode)
    return create_http(requests, health, incoming.signing_secret), socket_mode


def make_bot(settings: Settings, house: House, clicks: House, slack: Slack, team: Team, tasks: Tasks) -> Bot:
    """What the listeners are given."""
    words, wake = texts(settings.locale), Wake()
    return Bot(
        clicks=clicks,
        house=house,
        directory=Directory(
            db=clicks.db, slack=slack.quick, policy=house.policy, team_id=team.team_id, tasks=tasks
        ),
        slack=slack,
        team=team,
        texts=words,
        tasks=tasks,
        metrics=Metrics(),
        publisher=SlackPublisher(house, slack, team, words, name=f"process-{uuid4().hex[:12]}", wake=wake),
        private=PrivateAnswers(slack, house.db),
        publishing=wake,
    )


def make_bolt(signing_secret: str, team: Team, api_url: str) -> AsyncApp:
    """Bolt without listeners: an answer waits for its listener, and auth.test is never asked again."""
    logger = logging.getLogger("slack_bolt")
    logger.setLevel(logging.ERROR)  # below, it prints whole payloads

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None,
            team_id=team.team_id,
            bot_id=team.bot_id,
            bot_user_id=team.bot_user_id,
            bot_token="xoxb-unused",  # listeners use clients of their own
        )

    return AsyncApp(
        name="vistobueno",
        logger=logger,
        process_before_response=True,
        signing_secret=signing_secret,
        request_verification_enabled=True,
        client=AsyncWebClient(base_url=api_url),
        authorize=authorize,
    )


@asynccontextmanager
async def _publishing(bot: Bot) -> AsyncIterator[None]:
    """While open, cards and notices are published as soon as a listener calls for it."""

    async def publish() -> None:
        await bot.publisher.publish_cards()
        await bot.publisher.publish_notices()

    serving = asyncio.create_task(bot.publishing.serve(publish), name="publishing")
    try:
        yield
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
