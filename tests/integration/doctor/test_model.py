"""The doctor on the model: no key, a refused one, a model nobody has, and a network that is down."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from bot.sandbox.model_api import error_response
from tests.integration.doctor.house import House
from tests.standins.model import serve

NOWHERE = "http://127.0.0.1:1"


@asynccontextmanager
async def counting(response: Response) -> AsyncIterator[str]:
    """A server that answers this when it is to count tokens."""
    app = FastAPI()

    @app.post("/v1/messages/count_tokens")
    async def count_tokens() -> Response:
        return response

    async with serve(app) as url:
        yield url


async def test_without_a_key_there_is_no_model_to_ask(house: House) -> None:
    finding = await house.finding("model", ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
    assert finding.status == "failed"
    assert finding.do is not None
    assert finding.do.startswith("`vistobueno worker` needs a model: set ANTHROPIC_API_KEY")


async def test_a_key_that_is_refused_is_to_be_replaced(house: House) -> None:
    finding = await house.finding("model", ANTHROPIC_API_KEY="sk-wrong")
    assert finding.status == "failed"
    assert finding.do is not None
    assert finding.do.endswith("Set ANTHROPIC_API_KEY to a key that works.")


async def test_a_network_that_is_down_is_a_warning_that_says_so(house: House) -> None:
    finding = await house.finding("model", ANTHROPIC_BASE_URL=NOWHERE)
    assert finding.status == "warning"
    assert finding.says == "the key was not tried: The model could not be reached, or the connection broke"
    assert finding.do is not None
    assert finding.do.startswith("Check the network")


async def test_a_provider_that_is_busy_is_a_warning(house: House) -> None:
    async with counting(error_response(529, "Overloaded")) as url:
        finding = await house.finding("model", ANTHROPIC_BASE_URL=url)
    assert finding.status == "warning"
    assert "The model is busy (529): Overloaded" in finding.says


async def test_a_model_that_the_provider_does_not_have_fails(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with counting(error_response(404, "model: none")) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)  # the provider, as far as the settings know
        finding = await house.finding("model", ANTHROPIC_BASE_URL="", VISTOBUENO_MODEL="none")
    assert finding.status == "failed"
    assert finding.says == "none cannot be asked"
    assert "Name a model that exists in VISTOBUENO_MODEL" in (finding.do or "")


async def test_another_server_may_be_unable_to_count_tokens(house: House) -> None:
    async with counting(error_response(404, "Not found")) as url:
        finding = await house.finding("model", ANTHROPIC_BASE_URL=url)
    assert finding.status == "warning"
    assert "the server of ANTHROPIC_BASE_URL counts no tokens for claude-" in finding.says


@pytest.mark.parametrize("answer", [PlainTextResponse("Hello"), JSONResponse({"input_tokens": None})])
async def test_what_is_no_messages_api_is_named(house: House, answer: Response) -> None:
    async with counting(answer) as url:
        finding = await house.finding("model", ANTHROPIC_BASE_URL=url)
    assert finding.status == "failed"
    assert finding.do == "What answers is no Messages API: check ANTHROPIC_BASE_URL."
