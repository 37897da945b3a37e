"""The agent's house from the settings; what only Slack needs is in bot/app.py, and takes a while to load."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from agent.house import House
from agent.model import AnthropicModel
from agent.policy import load_policy, warnings
from agent.toolbox import load_tools
from agent.usercode import UserCode
from bot.settings import Settings
from store.engine import Database

log = structlog.get_logger(__name__)


@asynccontextmanager
async def build_house(
    settings: Settings, database_url: str, *, team_id: str | None = None
) -> AsyncIterator[House]:
    """The house: database, tools, policy, user code, and the model if the settings name one."""
    tools = load_tools(settings.tools)
    policy = load_policy(settings.policy, tools, home_team=team_id)
    for warning in warnings(policy):
        log.warning("policy", warning=warning)
    async with AsyncExitStack() as stack:
        db = Database.open(database_url)
        stack.push_async_callback(db.close)
        user_code = await stack.enter_async_context(UserCode())
        model = make_model(settings, policy.agent.model)
        if model is not None:
            stack.push_async_callback(model.close)
        yield House(db=db, tools=tools, policy=policy, user_code=user_code, model=model)


def make_model(settings: Settings, named_by_policy: str | None) -> AnthropicModel | None:
    """The model that the environment or the policy names, or None when there is none to ask."""
    if not settings.has_model:
        return None
    return AnthropicModel(
        settings.model_name(named_by_policy),
        api_key=settings.anthropic_api_key or "none",
        base_url=settings.anthropic_base_url,
    )
