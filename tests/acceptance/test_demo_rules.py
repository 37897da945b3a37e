"""`vistobueno demo --play` with another model than its own: what it asks is what the provider would take."""

import asyncio
import os
import sys

from agent.model import ModelError
from bot.demo.model import respond
from bot.sandbox.model_api import create_model_api
from tests.acceptance.stage import ROOT
from tests.databases import Database
from tests.standins.model import serve
from tests.standins.proxy import ModelProxy


async def test_the_whole_story_breaks_no_rule_of_the_provider(database: Database) -> None:
    async with serve(create_model_api(respond, faults=(ModelError,))) as url, ModelProxy.start(url) as proxy:
        named = {"ANTHROPIC_BASE_URL": proxy.url, "ANTHROPIC_API_KEY": "test"}
        urls = {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.cli", "demo", "--play"), cwd=ROOT, env=os.environ | named | urls
        )
        assert await asyncio.wait_for(process.wait(), 120) == 0
        proxy.assert_no_violations()
        assert proxy.requests
