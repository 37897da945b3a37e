"""Another maker's stand-in for the provider answers as well, behind the rules of the real one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.acceptance.scripts import NOTHING
from tests.acceptance.stage import process_of, staged
from tests.databases import Database
from tests.standins.proxy import ModelProxy


async def test_a_mention_is_answered_by_llmock_and_no_rule_of_the_provider_is_broken(
    database: Database, monkeypatch: pytest.MonkeyPatch, llmock: Any
) -> None:
    llmock.call_tool("search_payments", {"status": "failed"}).reply("There are 38 failed payments.")
    async with (
        staged(database, monkeypatch, NOTHING, processes=0) as stage,
        ModelProxy.start(llmock.base_url("anthropic")) as proxy,
        process_of(replace(stage.settings, anthropic_base_url=proxy.url), work=True) as process,
    ):
        stage.sandbox.connect(process.url)
        asked = await stage.ask("how many payments failed?")
        await stage.said(asked, "There are 38 failed payments.")
        proxy.assert_no_violations()
        assert [exchange.status for exchange in proxy.requests] == [200, 200]
        assert stage.model.requests == []
