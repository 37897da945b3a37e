"""Many runs while web, worker and database are killed at random; exit 1 if anything is lost or done twice."""

import argparse
import asyncio
import json
import random
import secrets
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.chaos import Chaos
from tests.soak.people import People
from tests.soak.place import Place, place
from tests.soak.report import report, to_json
from tests.soak.verdict import Verdict, judge, unfinished

STUCK_SECONDS = 90.0


@dataclass(frozen=True)
class Asked:
    """What the soak is to be like."""

    minutes: float = 10.0
    runs: int = 2000
    seed: int = 0
    webs: int = 2
    workers: int = 2
    lease: float = 15.0
    pause: tuple[float, float] = (1.5, 5.0)


@dataclass
class Soaked:
    """What came of it."""

    asked: Asked
    seconds: float = 0.0
    harm: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    left: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    logs: Path = Path()


async def soak(asked: Asked, logs: Path) -> Soaked:
    """Live through it; what the processes say is written into the folder `logs`."""
    chance, began = random.Random(asked.seed), time.monotonic()
    async with place(
        logs, runs=asked.runs, webs=asked.webs, workers=asked.workers, lease=asked.lease
    ) as here:
        people = People(here, random.Random(chance.random()))
        chaos = Chaos(here, random.Random(chance.random()), asked.pause)
        deciding = asyncio.create_task(people.decide(), name="deciding")
        showing = asyncio.create_task(_show(here, people, chaos, asked, began), name="progress")
        try:
            await _live(asked, people, chaos)
            await _until_all_ended(here, people.asked)
        finally:
            for task in (deciding, showing):
                task.cancel()
            await asyncio.gather(deciding, showing, return_exceptions=True)
        soaked = Soaked(asked, time.monotonic() - began, dict(chaos.done), logs=logs)
        soaked.verdict = await judge(here, people)
        soaked.starts = {kept.name: kept.starts for kept in here.kept}
        soaked.left = sum(kept.left for kept in here.kept)
    return soaked


async def _live(asked: Asked, people: People, chaos: Chaos) -> None:
    """People ask for as long as it rages."""
    seconds, enough = asked.minutes * 60, asyncio.Event()

    async def live() -> None:
        async with asyncio.TaskGroup() as parts:
            parts.create_task(people.ask(asked.runs, seconds * 0.97))
            parts.create_task(asyncio.sleep(seconds))
        enough.set()

    async with asyncio.TaskGroup() as both:
        both.create_task(live())
        both.create_task(chaos.rage(enough))
    await chaos.end()


async def _until_all_ended(here: Place, runs: int) -> None:
    """Wait as long as it goes on; what stands still for long is for the verdict."""
    left, since = None, time.monotonic()
    while time.monotonic() - since < STUCK_SECONDS:
        now = await asyncio.to_thread(unfinished, here, runs)
        if now == 0:
            await asyncio.sleep(1.0)  # cards that were posted twice are still pressed
            if not any_open(here):
                return
        if now != left:
            left, since = now, time.monotonic()
        await asyncio.sleep(0.5)


def any_open(here: Place) -> bool:
    """Whether a card can still be pressed."""
    lead = here.sandbox.person("U0LEAD1")
    return any(lead.buttons(card) for card in here.sandbox.channel("C0APPROVALS").messages)


async def _show(here: Place, people: People, chaos: Chaos, asked: Asked, began: float) -> None:
    """Say how far it is: in one line of a terminal, else every ten seconds."""
    terminal = sys.stderr.isatty()
    while True:
        await asyncio.sleep(1.0 if terminal else 10.0)
        text = (
            f"{time.monotonic() - began:4.0f} s  {people.asked} of {asked.runs} asked, "
            f"{len(here.provider.refunds)} refunds, {len(people.presses)} presses, {chaos.done.total()} blows"
        )
        print(f"\r{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    usual = Asked()
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=usual.minutes, help="how long it rages at least (10)"
    )
    parser.add_argument("--runs", type=int, default=usual.runs, help="how many refunds are asked for (2000)")
    parser.add_argument("--lease", type=float, default=usual.lease, help="the workers' lease, seconds (15)")
    parser.add_argument("--seed", type=int, help="the same seed: the same blows; random if not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there as well")
    return parser.parse_args()


def main() -> int:
    """The command."""
    given = arguments()
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    try:
        logs = Path(tempfile.mkdtemp(prefix="vistobueno-soak-"))
        soaked = asyncio.run(soak(Asked(given.minutes, given.runs, seed, lease=given.lease), logs))
    except KeyboardInterrupt:
        print("\nThe soak was broken off.", file=sys.stderr)
        return 130
    print(f"\n{report(soaked)}")
    if given.json:
        given.json.write_text(json.dumps(to_json(soaked), indent=2) + "\n")
    return 1 if soaked.verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
