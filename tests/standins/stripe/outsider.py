"""stripe-stateful-mock, a Stripe of other people: it remembers idempotency keys, and refuses a second refund.

It knows charges and refunds of them, but no payment intents.
"""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

FOLDER, FILE = "tests/standins/stripe", "node_modules/stripe-stateful-mock/dist/index.js"
INSTALLED = pytest.mark.debian(programs=("node",), npm=(FOLDER, FILE))
START_SECONDS = 30.0

# its own command listens on every address, and does not say which port was free
_SERVE = """
const app = require("stripe-stateful-mock").createExpressApp();
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""


@asynccontextmanager
async def outsiders_stripe() -> AsyncIterator[str]:
    """Its address while it runs; killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *("node", "-e", _SERVE), cwd=Path(__file__).parents[3] / FOLDER, stdin=DEVNULL, stdout=PIPE
    )
    try:
        assert process.stdout is not None
        port = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        assert port, "it ended without listening"
        yield f"http://127.0.0.1:{port.decode().strip()}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
