"""local-slack, a Slack of other people: one binary with the Web API, both ways of sending, and a page.

It is laxer than Slack: any token will do, a trigger_id lives for half an hour, an envelope goes to every
connection and never comes again, fields that nobody typed into arrive empty, what was typed is lost when the
app updates the modal, one modal is open for everybody, and rich text and tables are shown by their names
alone. Where it differs, the app follows Slack.
"""

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aiohttp

FOLDER, FILE = "tests/browser/outside", "node_modules/local-slack-linux-x64/bin/local-slack"
PROGRAM = Path(__file__).parents[3] / FOLDER / FILE
START_SECONDS = 30.0
BOT_TOKEN, APP_TOKEN = "xoxb-outside", "xapp-outside"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"
Transport = Literal["socket", "events"]


@dataclass(frozen=True)
class LocalSlack:
    """Where it listens, and how it sends."""

    url: str
    transport: Transport

    @property
    def api_url(self) -> str:
        """The base URL of its Web API."""
        return f"{self.url}/api/"

    async def log(self) -> list[dict[str, Any]]:
        """Everything that went to the app and came from it, oldest first."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/_control/log") as answer:
            return list((await answer.json())["log"])


@asynccontextmanager
async def running(folder: Path, transport: Transport, request_url: str) -> AsyncIterator[LocalSlack]:
    """It, with the shop's people and channels; killed at the end."""
    config = folder / "workspace.json"
    config.write_text(json.dumps(_workspace(transport, request_url)), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(str(PROGRAM), "--config", str(config), "--port", "0", "--base-host", "127.0.0.1"),
        *("--files-dir", str(folder / "files")),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        assert process.stdout is not None
        yield LocalSlack(await asyncio.wait_for(_address(process.stdout), START_SECONDS), transport)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _address(output: asyncio.StreamReader) -> str:
    said = []
    async for line in output:
        said.append(line.decode())
        if found := re.search(r"Web UI: +(http://\S+)", said[-1]):
            return found[1]
    raise AssertionError(f"it ended without listening: {''.join(said)}")


def _workspace(transport: Transport, request_url: str) -> dict[str, Any]:
    people = {"U0LEO": "Leo", "U0MARTA": "Marta", "U0ANA": "Ana"}
    channels = {"C0SUPPORT": "support", "C0APPROVALS": "approvals"}
    return {
        "workspace": {"teamId": "T0SHOP", "name": "Shop", "domain": "shop"},
        "app": {
            "appId": "A0VISTO",
            "botUserId": "U0BOT",
            "botName": "vistobueno",
            "botToken": BOT_TOKEN,
            "appToken": APP_TOKEN,
            "signingSecret": SIGNING_SECRET,
            "mode": transport,
            "requestUrl": request_url,
        },
        "users": [
            {"id": user_id, "name": name.lower(), "real_name": name} for user_id, name in people.items()
        ],
        "channels": [
            {"id": channel_id, "name": name, "members": [*people, "U0BOT"]}
            for channel_id, name in channels.items()
        ],
    }
