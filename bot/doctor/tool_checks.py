"""Whether what the tools need outside is there, as far as they can tell themselves."""

import asyncio
import inspect

from agent.tool import Tool, ToolError
from agent.toolbox import ToolsError, load_tools
from bot.doctor.finding import Finding, failed, ok
from bot.settings import Settings

SECONDS = 10.0


async def check_tools(settings: Settings) -> list[Finding]:
    """One check for each tool that has something to tell; none if the tools cannot be loaded."""
    try:
        tools = load_tools(settings.tools)
    except ToolsError:  # which is said elsewhere
        return []
    found = [await _check(tool) for tool in tools.values() if tool.check is not None]
    return [finding for finding in found if finding is not None]


async def _check(tool: Tool) -> Finding | None:
    try:
        says = await asyncio.wait_for(_ask(tool), SECONDS)
    except ToolError as error:
        text = error.message.rstrip(".")
        return failed(tool.name, "it cannot do its work", f"{text[0].upper()}{text[1:]}.")
    except TimeoutError:
        do = f"Look at what {tool.name} needs: its check did not answer within {SECONDS:.0f} s."
        return failed(tool.name, "it is not known whether it can do its work", do)
    except Exception as error:  # user code may raise anything
        do = f"Mend the check of {tool.name}: it broke off with {type(error).__name__}."
        return failed(tool.name, "it is not known whether it can do its work", do)
    return None if says is None else ok(tool.name, says.strip().rstrip("."))


async def _ask(tool: Tool) -> str | None:
    assert tool.check is not None
    says = tool.check()
    return await says if inspect.isawaitable(says) else says
