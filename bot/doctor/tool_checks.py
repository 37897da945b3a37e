"""Whether what the tools need outside is there, as far as they can tell themselves."""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from agent.tool import Tool, ToolError
from agent.toolbox import ToolsError, load_tools
from bot.databases import reachable
from bot.doctor.finding import Finding, failed, ok
from bot.settings import Settings, SettingsError
from store.embedded import EmbeddedError
from store.errors import StoreError

SECONDS = 10.0
VARIABLE = "DATABASE_URL"


async def check_tools(settings: Settings) -> list[Finding]:
    """One check for each tool that has something to tell; none if the tools cannot be loaded.

    Tools that lack the same are one check, under the name of the first.
    """
    try:
        tools = load_tools(settings.tools)
    except ToolsError:  # which is said elsewhere
        return []
    checked = [tool for tool in tools.values() if tool.check is not None]
    async with _database_of(settings):
        found = await asyncio.gather(*map(_check, checked))
    return _together([finding for finding in found if finding is not None])


def _together(found: list[Finding]) -> list[Finding]:
    alike: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in found:
        what = finding.check if finding.status == "ok" else finding.says
        alike.setdefault((what, finding.do), []).append(finding)
    return [_one_of(same) for same in alike.values()]


def _one_of(same: list[Finding]) -> Finding:
    first, *others = same
    if not others:
        return first
    return replace(first, says=f"{first.says}, nor can {', '.join(other.check for other in others)}")


@asynccontextmanager
async def _database_of(settings: Settings) -> AsyncIterator[None]:
    """While open, DATABASE_URL names the database of the app: the tools are user code and look there."""
    async with AsyncExitStack() as stack:
        try:
            db = await stack.enter_async_context(reachable(settings))
        except (SettingsError, EmbeddedError, StoreError):  # which is said elsewhere
            db = None
        if db is not None:
            stack.callback(_set_variable, os.environ.get(VARIABLE))
            _set_variable(db.url)
        yield


def _set_variable(url: str | None) -> None:
    os.environ.pop(VARIABLE, None)
    if url is not None:
        os.environ[VARIABLE] = url


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
