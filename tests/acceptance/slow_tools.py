"""Tools for VISTOBUENO_TOOLS that wait: before their effect for a file, or inside it, as bad code does."""

import asyncio
import os
import time
from pathlib import Path

from pydantic import BaseModel, Field

from agent.tool import Context, Risk, Tool


class Wait(BaseModel):
    """Wait, then write down that it was done."""

    seconds: float = Field(title="Seconds", ge=0)


def _folder() -> Path:
    return Path(os.environ["SLOW_TOOLS"])


def _write(ctx: Context) -> str:
    """The effect: one line more, with the key and the process."""
    with (_folder() / "done").open("a") as done:
        done.write(f"{ctx.idempotency_key} {os.getpid()}\n")
    return "written"


async def until_let_go(input: Wait, ctx: Context) -> dict[str, int]:
    """Say that it looks, and look for as long as nobody lets it go on."""
    (_folder() / f"looks-{os.getpid()}").touch()
    while (_folder() / "hold").exists():  # noqa: ASYNC110 - another process makes and removes it
        await asyncio.sleep(0.02)
    return {"wishes": 1}


def block(input: Wait, ctx: Context) -> str:
    """Block a thread."""
    time.sleep(input.seconds)
    return _write(ctx)


async def block_loop(input: Wait, ctx: Context) -> str:
    """Block the loop that all async tools share."""
    time.sleep(input.seconds)  # noqa: ASYNC251 - that is the point
    return _write(ctx)


def _tool(name: str, **values: object) -> Tool:
    shared = {"input": Wait, "risk": Risk.IRREVERSIBLE, "repeatable": True, "timeout": "60s"}
    return Tool(name=name, **{**shared, **values})


TOOLS = (
    _tool("look_first", precondition=until_let_go, execute=block),
    _tool("block", execute=block),
    _tool("block_loop", execute=block_loop),
)
