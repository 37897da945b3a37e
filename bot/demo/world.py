"""The demo's surroundings: database, shop, refund provider, sandbox Slack, and a model to ask."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from agent.model import ModelError
from agent.policy import PolicyError, load_policy
from agent.tool import Tool
from agent.toolbox import ToolsError, load_tools
from agent.tools.shop.provider import RefundProvider
from agent.tools.shop.refund_payments import refund_payments
from agent.tools.shop.search_payments import search_payments
from agent.tools.shop.seed import NotOurShop, create_shop
from bot.databases import Urls, say_waiting
from bot.demo.errors import DemoFailed
from bot.demo.model import respond
from bot.process import listen, serve
from bot.sandbox import Sandbox
from bot.sandbox.model_api import create_model_api
from bot.settings import Settings
from store import embedded
from store.engine import migrate
from store.errors import NoRight, translated
from store.scratch import scratch_database

LOCAL = "127.0.0.1"
RETRY_DELAYS = (0.0, 5.0, 25.0)  # seconds; Slack waits a minute, then five, and somebody looks at a demo
OF_THE_STORY = frozenset({search_payments.name, refund_payments.name})
"""The tools that the story of the shop is lived with."""
NOT_ITS_OWNER = (
    "The user of the database that DATABASE_URL names may not make the demo's shop there, nor may the one "
    "whose URL a running demo prints: unset DATABASE_URL, and this demo has a database of its own."
)
SCRIPTED = "the scripted model (set ANTHROPIC_API_KEY for a real one)"


@dataclass(frozen=True)
class World:
    """All that the app needs around it; `environ` is what it is started with.

    `has_shop` says whether the agent has the tools of the example shop, which the demo's story is about.
    """

    urls: Urls
    sandbox: Sandbox
    provider: RefundProvider
    model: str
    environ: Mapping[str, str]
    has_shop: bool = True


@asynccontextmanager
async def open_world(settings: Settings, *, port: int, pace: float = 0.0) -> AsyncIterator[World]:
    """Start everything but the app.

    On the embedded server it works in an empty database of its own, because the sandbox starts empty too:
    what an earlier demo left would have no card. A database that DATABASE_URL names is taken as it is.
    The sandbox listens on `port`, and a refund takes `pace` seconds. Raises DemoFailed, EmbeddedError or
    StoreError, each one sentence.
    """
    async with AsyncExitStack() as stack:
        urls = await stack.enter_async_context(_database(settings))
        await _make_shop(urls)
        provider = await stack.enter_async_context(RefundProvider.start(pace=pace))
        tools = _tools(settings)
        has_shop = tools.keys() >= OF_THE_STORY
        sandbox = await _start_sandbox(port)
        stack.push_async_callback(sandbox.stop)
        environ = _environ(settings, urls, sandbox, provider)
        model = SCRIPTED
        if settings.has_model:
            model = settings.model_name(_model_of_policy(settings, tools))
        else:
            environ["ANTHROPIC_BASE_URL"] = await stack.enter_async_context(_scripted_model())
            environ["ANTHROPIC_API_KEY"] = "scripted"
        yield World(urls, sandbox, provider, model, environ, has_shop)


async def _make_shop(urls: Urls) -> None:
    try:
        await migrate(urls.owner)
        with translated():  # the shop is user code, with errors of its own driver
            await create_shop(urls.owner)
    except NotOurShop as error:
        raise DemoFailed(f"The demo cannot make its shop: {error}.") from error
    except NoRight as error:
        raise DemoFailed(NOT_ITS_OWNER) from error


def _tools(settings: Settings) -> Mapping[str, Tool]:
    """The tools that the app will have; none where they cannot be loaded, which the app says as it starts."""
    try:
        return load_tools(settings.tools)
    except ToolsError:
        return {}


def _model_of_policy(settings: Settings, tools: Mapping[str, Tool]) -> str | None:
    """The model that the policy names; a policy that cannot be used is said by the app as it starts."""
    try:
        return load_policy(settings.policy, tools).agent.model
    except PolicyError:
        return None


async def _start_sandbox(port: int) -> Sandbox:
    listen(LOCAL, port).close()  # a sentence, instead of an error of the server
    return await Sandbox.start(port=port, retry_delays=RETRY_DELAYS)


def _environ(settings: Settings, urls: Urls, sandbox: Sandbox, provider: RefundProvider) -> dict[str, str]:
    app = sandbox.workspace.app
    environ = {**os.environ, "LOG_LEVEL": os.environ.get("LOG_LEVEL", "ERROR")}
    for variable in ("SLACK_APP_TOKEN", "STRIPE_API_KEY", "SHOP_PROVIDER_HONOURS_KEYS"):
        environ.pop(variable, None)  # its Slack and its provider are its own: nobody's money moves
    return environ | {
        "DATABASE_URL": urls.app,
        "DATABASE_OWNER_URL": urls.owner,
        "SLACK_BOT_TOKEN": app.bot_token,
        "SLACK_SIGNING_SECRET": app.signing_secret,
        "SLACK_API_URL": sandbox.api_url,
        "SHOP_PROVIDER_URL": provider.url,
        "PORT": "0",
    }


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[Urls]:
    if settings.database_url is not None:
        yield Urls(settings.database_url, settings.database_owner_url or settings.database_url)
        return
    server = await embedded.start(waits=say_waiting)
    try:
        async with scratch_database(server) as (app, owner):
            yield Urls(app, owner)
    finally:
        await embedded.stop(server)


@asynccontextmanager
async def _scripted_model() -> AsyncIterator[str]:
    """The URL of a server that speaks the model's API and answers by the demo's rules."""
    stop = asyncio.Event()
    with listen(LOCAL, 0) as listening:
        url = f"http://{LOCAL}:{listening.getsockname()[1]}"
        api = create_model_api(respond, faults=(ModelError,))
        serving = asyncio.create_task(serve(api, listening, stop), name="scripted model")
        try:
            yield url
        finally:
            stop.set()
            await serving
