"""How long `make demo` takes, once everything is set up, until the URL that it prints answers."""

import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 5.0
DEADLINE_SECONDS = 120
ROUNDS = 5


@dataclass(frozen=True)
class Opening:
    """Seconds to the first answer; medians, and the range of each.

    `first` makes the database's files, `again` finds them. Root's are in one fixed place, which is not
    cleared away for this: then there is no `first`.
    """

    first_s: float | None
    first_range_s: tuple[float, float] | None
    again_s: float
    again_range_s: tuple[float, float]
    rounds: int


def measure_opening(progress: Callable[[str], None], *, rounds: int = ROUNDS) -> Opening:
    """Open and end the demo twice a round."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environ.pop("DATABASE_URL", None)
    subprocess.run(["make", "setup"], cwd=ROOT, env=environ, check=True, capture_output=True)
    first, again = [], []
    for number in range(1, rounds + 1):
        with tempfile.TemporaryDirectory(prefix="vistobueno-bench-") as folder:
            environ["XDG_DATA_HOME"] = folder
            first.append(_open(environ))
            again.append(_open(environ))
        progress(f"make demo, round {number} of {rounds}: {first[-1]:.1f} s, then {again[-1]:.1f} s")
    if os.geteuid() == 0:
        return Opening(None, None, *_summed([*first, *again]), rounds)
    return Opening(*_summed(first), *_summed(again), rounds)


def _summed(seconds: list[float]) -> tuple[float, tuple[float, float]]:
    return round(median(seconds), 2), (round(min(seconds), 2), round(max(seconds), 2))


def _open(environ: Mapping[str, str]) -> float:
    """Seconds from the command to the first answer; the demo has ended afterwards."""
    begun = perf_counter()
    demo = subprocess.Popen(
        ["make", "demo"],
        cwd=ROOT,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    try:
        url = next((line.split()[1] for line in demo.stdout if line.startswith("Open ")), None)
        assert url is not None, "make demo named no URL: try it by hand"
        with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:
            answer.read()
        return perf_counter() - begun
    finally:
        os.killpg(demo.pid, signal.SIGINT)  # Ctrl-C
        demo.stdout.read()
        demo.wait(DEADLINE_SECONDS)
