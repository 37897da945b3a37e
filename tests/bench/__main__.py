"""Measure and print; exit 1 if an approval costs too much, or if work begins or the demo opens too late."""

import argparse
import asyncio
import json
import platform
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from tests.bench.cost import LATER, LIMIT, Cost, measure_cost
from tests.bench.delay import GOAL_MS, Delay, measure_delay
from tests.bench.opening import LIMIT_SECONDS, Opening, measure_opening
from tests.bench.place import place
from tests.bench.report import opens_soon, report, within_goal, within_limit


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=24, help="blocks of each side, alternating (24)")
    parser.add_argument("--n", type=int, default=40, help="approvals in a block, and decisions timed (40)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    return parser.parse_args()


def progress(text: str) -> None:
    """Tell on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)


async def measure(rounds: int, n: int) -> tuple[Cost, Delay]:
    """What one approval costs and how soon work begins, on a server of their own."""
    progress("starting a PostgreSQL in a temporary folder")
    async with place() as server:
        cost = await measure_cost(server, rounds=rounds, n=n, progress=progress)
        return cost, await measure_delay(server, times=n, progress=progress)


def numbers(cost: Cost, delay: Delay, opening: Opening) -> dict[str, object]:
    """All that was measured, with what it is held against and what it was measured with."""
    return {
        "cost": asdict(cost),
        "delay": asdict(delay),
        "opening": asdict(opening),
        "limits": {
            "ratio": LIMIT,
            "later_ratio": LATER,
            "delay_p50_ms": GOAL_MS,
            "opening_s": LIMIT_SECONDS,
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("vistobueno", "psycopg", "sqlalchemy")},
        },
    }


def main() -> int:
    """The command."""
    asked = arguments()
    opening = measure_opening(progress)  # before this process takes one core for itself
    cost, delay = asyncio.run(measure(asked.rounds, asked.n))
    print(report(cost, delay, opening))
    if asked.json:
        asked.json.write_text(json.dumps(numbers(cost, delay, opening), indent=2) + "\n")
    return 0 if within_limit(cost) and within_goal(delay) and opens_soon(opening) else 1


if __name__ == "__main__":
    sys.exit(main())
