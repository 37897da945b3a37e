"""Kill at every point and at random moments; exit 1 if a cell or a kill is red or missing.

A cell that the machine lacks something for is missing, too, and is named with what it lacks.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

from tests import databases
from tests.crash import children, matrix, report
from tests.crash.kinds import AT_STRIPE, KINDS, lack_of
from tests.crash.matrix import Cell, Place, Played
from tests.crash.points import POINTS, Point

MOMENTS = 100
AT_RANDOM = "moments"


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each point once, and no random moments")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of every cell there")
    parser.add_argument(
        "--only",
        metavar="POINT",
        default="*",
        help=f"these points (a,b; *, ?); {AT_RANDOM}: only random kills",
    )
    parser.add_argument("--kind", default="*", help="these kinds of tools (a,b; *, ?), and no random moments")
    parser.add_argument("--jobs", type=int, default=6, help="cells at a time (6)")
    parser.add_argument("--moments", type=int, default=MOMENTS, help=f"random kills ({MOMENTS})")
    parser.add_argument("--seed", type=int, default=None, help="repeats the random moments of another time")
    parser.add_argument("--until-red", action="store_true", help="stop at the first red cell")
    return parser.parse_args()


def say(text: str) -> None:
    """Tell whoever waits how far it is."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """Counts what has ended, and says it."""

    def __init__(self, total: int, *, until_red: bool) -> None:
        self._total, self._until_red, self._ended = total, until_red, 0
        self.stopped = asyncio.Event()

    def __call__(self, one: Played) -> None:
        self._ended += 1
        outcome = "ok" if one.problem is None else f"RED: {one.problem}"
        say(f"{self._ended:4}/{self._total} {one.seconds:6.1f} s  {one.name}  {outcome}")
        if one.problem is not None and self._until_red:
            self.stopped.set()


async def play_all(place: Place, asked: argparse.Namespace, cells: Sequence[Cell], kills: int) -> "Results":
    """Every cell, then the kills at random moments."""
    progress = Progress(len(cells), until_red=asked.until_red)
    played = await matrix.play_cells(place, cells, asked.jobs, progress, progress.stopped)
    moments: list[Played] = []
    if kills and not progress.stopped.is_set():
        seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
        say(f"{kills} kills at random moments, --seed {seed} …")
        moments = await matrix.play_moments(place, kills, seed, asked.jobs, say)
    return Results(played, moments)


class Results:
    """What was played."""

    def __init__(self, cells: Sequence[Played], moments: Sequence[Played]) -> None:
        self.cells, self.moments = cells, moments

    @property
    def kills(self) -> int:
        """How many kills hit a run that was not over."""
        return sum(len(one.hit) for one in self.moments)

    def are_green(self, wanted: Sequence[Cell], kills: int) -> bool:
        """Whether nothing is red, every cell was played, and so many kills hit a run."""
        names = {one.name for one in self.cells}
        red = [one for one in (*self.cells, *self.moments) if one.problem is not None]
        return not red and all(cell.name in names for cell in wanted) and self.kills >= kills


def chosen(asked: argparse.Namespace) -> tuple[list[Point], list[Cell], int]:
    """The points, the cells and the number of random kills that were asked for."""
    points = [point for point in POINTS if _matches(point.name, asked.only)]
    if asked.quick:
        cells = [cell for cell in matrix.quick_cells(POINTS) if cell.point in points]
    else:
        cells = [*matrix.every_cell(points), *matrix.cells_at_stripe(points)]
    everything = not asked.quick and asked.kind == "*" and asked.only in {"*", AT_RANDOM}
    chosen_cells = [cell for cell in cells if _matches(cell.kind.name, asked.kind)]
    return points, chosen_cells, asked.moments if everything else 0


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns.split(","))


def main() -> int:
    """The command."""
    asked, began = arguments(), time.monotonic()
    points, cells, kills = chosen(asked)
    if not points and not kills:
        say(f"no point is called {asked.only}: {', '.join([*(point.name for point in POINTS), AT_RANDOM])}")
        return 2
    if not cells and not kills:
        kinds = ", ".join(kind.name for kind in (*KINDS, *AT_STRIPE))
        say(f"no cell of these points has a kind of tool that is called {asked.kind}: {kinds}")
        return 2
    say(f"{len(cells)} cells, {asked.jobs} at a time …")
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # tells of connections that a kill cut
    with ExitStack() as stack:
        server = stack.enter_context(databases.running_server())
        template = stack.enter_context(databases.migrated_template(server))
        place = Place(server, template, children.preloaded())
        playable = [cell for cell in cells if lack_of(cell.kind) is None]
        results = asyncio.run(play_all(place, asked, playable, kills))
    seconds = time.monotonic() - began
    show(points, cells, results, kills, seconds)
    if asked.json:
        whole = report.as_json(points, cells, results.cells, results.moments, seconds)
        asked.json.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    return 0 if results.are_green(cells, kills) else 1


def show(
    points: Sequence[Point], cells: Sequence[Cell], results: Results, kills: int, seconds: float
) -> None:
    """Print it all."""
    if points:
        names = [cell.name for cell in cells]
        print(f"{report.legend(points)}\n\n{report.table(points, results.cells, names)}\n")
    everything = [*results.cells, *results.moments]
    green = sum(one.problem is None for one in results.cells)
    said = report.problems(everything)
    print(f"{said}\n" if said else "", end="")
    left_out = report.left_out(cells)
    print(f"{left_out}\n" if left_out else "", end="")
    print(f"{green} of {len(cells)} cells are green", end="")
    if kills:
        red = sum(one.problem is not None for one in results.moments)
        runs = f"{len(results.moments)} runs, {red} of them red"
        print(f"; {results.kills} of {kills} kills at random moments in {runs}", end="")
    print(f"; {seconds:.0f} s.")


if __name__ == "__main__":
    sys.exit(main())
