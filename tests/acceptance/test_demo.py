"""`vistobueno demo --play`, as people run it: a process of its own, its exit code and its last line."""

import asyncio
import json
import os
import sys

from tests.acceptance.stage import ROOT
from tests.databases import Database


async def test_the_story_is_lived_and_every_fact_holds(database: Database) -> None:
    hidden = {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot.cli", "demo", "--play", "--json"),
        cwd=ROOT,
        env={
            **environ,
            "DATABASE_URL": database.url,
            "DATABASE_OWNER_URL": database.owner_url,
            "STRIPE_API_KEY": "sk_test_that_is_not_for_a_demo",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    *told, line = out.decode().splitlines()
    last = json.loads(line)
    assert process.returncode == 0
    assert "✓ In the thread: Done: 41 payments refunded, €4,375.25 in all." in told
    assert last.pop("clicks") > last["decisions"]
    assert last == {
        "refunds": 41,
        "distinct_payments": 41,
        "approvals": [{"status": "superseded", "count": 38}, {"status": "executed", "count": 41}],
        "decisions": 2,
    }
