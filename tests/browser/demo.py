"""The demo as people start it: a process of its own, which prints one address."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.databases import Database

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
STOP_SECONDS = 30.0
HIDDEN = {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
"""A real model would answer in its own words."""


@asynccontextmanager
async def running(database: Database) -> AsyncIterator[str]:
    """The address that `vistobueno demo` prints; ended with Ctrl-C, which it must take well."""
    environ = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "demo"),
        cwd=ROOT,
        env=environ | {"DATABASE_URL": database.url, "DATABASE_OWNER_URL": database.owner_url},
        stdin=DEVNULL,
        stdout=PIPE,
    )
    assert process.stdout is not None
    try:
        first = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        found = re.search(r"http://\S+", first.decode())
        assert found is not None, f"the demo printed {first!r} and no address"
        yield found[0]
    finally:
        if process.returncode is None:
            process.send_signal(2)
        await asyncio.wait_for(process.communicate(), STOP_SECONDS)
    assert process.returncode == 0
