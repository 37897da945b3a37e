"""What the product loads only when it starts, loaded once in the process that its own are forked from."""

import httptools  # noqa: F401
import uvicorn.lifespan.off
import uvicorn.loops.auto
import uvicorn.protocols.http.auto
import uvicorn.protocols.websockets.auto  # noqa: F401

import agent.tools.shop.stripe_client  # noqa: F401
import bot.cli
import bot.commands.processes
import bot.demo.command  # noqa: F401
import tests.crash.children  # noqa: F401
from agent.model import AnthropicModel
from agent.toolbox import load_tools

load_tools("tests.crash.tools:TOOLS")
# its library takes a second, and loads the rest when a client is made and first asked
getattr(AnthropicModel("none", api_key="none", base_url="http://127.0.0.1:1")._client, "messages")  # noqa: B009
