"""What the terminal says when a demo has started."""

from typing import cast

import pytest

from bot.databases import Urls
from bot.demo.command import lines
from bot.demo.world import SCRIPTED, World
from bot.sandbox import Sandbox
from bot.settings import Settings


class Somewhere:
    """A local Slack that nobody asks for more than its address."""

    base_url = "http://127.0.0.1:1"


def world(model: str) -> World:
    return World(Urls("app", "owner"), cast(Sandbox, Somewhere()), provider=None, model=model, environ={})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tools", "model", "is_said"),
    [("my_tools:TOOLS", SCRIPTED, True), ("my_tools:TOOLS", "claude", False), (None, SCRIPTED, False)],
)
def test_tools_that_the_scripted_model_does_not_know_are_named(
    tools: str | None, model: str, is_said: bool
) -> None:
    settings = Settings.read({"VISTOBUENO_TOOLS": tools} if tools else {})
    said = [line for line in lines(world(model), settings) if "those of my_tools:TOOLS" in line]
    assert bool(said) is is_said
    assert all("set ANTHROPIC_API_KEY" in line for line in said)
