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


def world(model: str, *, has_shop: bool = True) -> World:
    here = (Urls("app", "owner"), cast(Sandbox, Somewhere()))
    return World(*here, provider=None, model=model, environ={}, has_shop=has_shop)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tools", "model", "is_said"),
    [("my_tools:TOOLS", SCRIPTED, True), ("my_tools:TOOLS", "claude", False), (None, SCRIPTED, False)],
)
def test_tools_that_the_scripted_model_does_not_know_are_named(
    tools: str | None, model: str, is_said: bool
) -> None:
    settings = Settings.read({"VISTOBUENO_TOOLS": tools} if tools else {})
    said = [
        line
        for line in lines(world(model, has_shop=tools is None), settings)
        if "those of my_tools:TOOLS" in line
    ]
    assert bool(said) is is_said
    assert all("set ANTHROPIC_API_KEY" in line for line in said)


def test_the_story_of_the_shop_is_offered_only_with_its_tools() -> None:
    settings = Settings.read({"VISTOBUENO_TOOLS": "my_tools:TOOLS"})
    said = "\n".join(lines(world("claude", has_shop=False), settings))
    assert "payments" not in said and "--play" not in said and "kill the app" in said
    assert "--play" in "\n".join(lines(world("claude"), settings))
